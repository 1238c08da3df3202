"""Histories as an API accepts them."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pi_core import (
    AssistantMessage,
    ImageContent,
    Message,
    Model,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultMessage,
    UserMessage,
    parse_message,
)
from pi_plugins.providers._history import NO_RESULT, HistoryRules, has_tool_traffic, prepare_history

TARGET = Model(id="m", api="anthropic-messages", provider="anthropic", input=["text", "image"])
OWN = {"api": "anthropic-messages", "provider": "anthropic", "model": "m"}
FOREIGN = {"api": "other", "provider": "elsewhere", "model": "n"}


def safe(call_id: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", call_id)[:64]


def user(text: str = "x") -> UserMessage:
    return UserMessage(content=text, timestamp=0)


def assistant(*content: Any, by: dict[str, str] = OWN, **fields: Any) -> AssistantMessage:
    return AssistantMessage(content=list(content), timestamp=0, **by, **fields)


def call(call_id: str, **fields: Any) -> ToolCallContent:
    return ToolCallContent(id=call_id, name="read", arguments={}, **fields)


def result(call_id: str, text: str = "r") -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=call_id, tool_name="read", content=[TextContent(text=text)], timestamp=0)


def shape(messages: list[Message]) -> list[str]:
    shown = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            shown.append("assistant " + ",".join(call.id for call in message.tool_calls))
        elif isinstance(message, ToolResultMessage):
            shown.append(f"result {message.tool_call_id} {message.content[0].text}")
        else:
            shown.append("user")
    return shown


def test_recorded_transformations(units: Callable[[str], list[Any]]) -> None:
    rules = HistoryRules(safe)
    for case in units("transform-messages"):
        target = Model.model_validate(case["model"])
        given = [message for message in case["messages"] if message["role"] != "system"]
        wanted = [message for message in case["out"] if message["role"] != "system"]
        if case["name"] == "errored-assistant-with-result":
            # The original keeps a result whose call it drops, which strict servers refuse.
            wanted = [message for message in wanted if message["role"] != "toolResult"]
        given = [{**message, "content": message["content"] or []} for message in given]
        prepared = prepare_history([parse_message(message) for message in given], target, rules)
        assert [message.to_json() for message in prepared] == wanted, case["name"]


def test_result_behind_a_user_message_goes_to_its_call() -> None:
    messages = [user(), assistant(call("a"), call("b")), result("b", "B"), user(), result("a", "A")]
    assert shape(prepare_history(messages, TARGET)) == ["user", "assistant a,b", "result a A", "result b B", "user"]


def test_orphans() -> None:
    messages = [result("z"), user(), assistant(call("a")), assistant(TextContent(text="t")), result("a"), user()]
    assert shape(prepare_history(messages, TARGET)) == [
        "user",
        "assistant a",
        f"result a {NO_RESULT}",
        "assistant ",
        "user",
    ]


def test_second_result_of_a_call_is_left_out() -> None:
    messages = [assistant(call("a")), result("a", "first"), result("a", "second")]
    assert shape(prepare_history(messages, TARGET)) == ["assistant a", "result a first"]


def test_failed_message_goes_with_its_results() -> None:
    messages = [user(), assistant(call("a"), stop_reason="aborted"), result("a"), user()]
    assert shape(prepare_history(messages, TARGET)) == ["user", "user"]


def test_result_of_a_failed_message_is_not_taken_by_an_earlier_call() -> None:
    messages = [assistant(call("0")), assistant(call("0"), stop_reason="error"), result("0", "late")]
    assert shape(prepare_history(messages, TARGET)) == ["assistant 0", f"result 0 {NO_RESULT}"]


def test_repeated_ids_become_different_and_keep_their_results() -> None:
    messages = [
        assistant(call("0"), call("0")),
        result("0", "first"),
        result("0", "second"),
        assistant(call("0")),
        result("0", "third"),
    ]
    prepared = prepare_history(messages, TARGET)
    ids = [call.id for message in prepared if isinstance(message, AssistantMessage) for call in message.tool_calls]
    assert ids[0] == "0"
    assert len(set(ids)) == 3
    results = [message for message in prepared if isinstance(message, ToolResultMessage)]
    assert [message.tool_call_id for message in results] == ids
    assert [message.content[0].text for message in results] == ["first", "second", "third"]
    assert prepare_history(messages, TARGET) == prepared


def test_legal_ids_do_not_collide() -> None:
    rules = HistoryRules(lambda call_id: call_id[:4], id_limit=12)
    messages = [assistant(call("call-1"), call("call-2"), by=FOREIGN), assistant(call("call"))]
    prepared = prepare_history(messages, TARGET, rules)
    ids = [call.id for message in prepared if isinstance(message, AssistantMessage) for call in message.tool_calls]
    assert len(set(ids)) == 3
    assert ids[2] == "call"
    assert all(len(new_id) <= 12 for new_id in ids)


def test_calls_that_the_target_tells_apart_by_a_part_of_their_ids() -> None:
    rules = HistoryRules(lambda call_id: f"{call_id}|other", call_part=lambda call_id: call_id.partition("|")[0])
    messages = [
        assistant(call("a"), by=FOREIGN),
        assistant(call("a|1")),
        assistant(call("a|2")),
        assistant(call("b|2")),
    ]
    prepared = prepare_history(messages, TARGET, rules)
    ids = [call.id for message in prepared if isinstance(message, AssistantMessage) for call in message.tool_calls]
    assert ids[1] == "a|1"
    assert ids[3] == "b|2"
    assert len({call_id.partition("|")[0] for call_id in ids}) == 4


def test_a_call_without_an_id_gets_one() -> None:
    prepared = prepare_history([assistant(call(""), call("")), result("", "first"), result("", "second")], TARGET)
    ids = [call.id for call in prepared[0].tool_calls]
    assert all(ids)
    assert [f"result {call_id} {text}" for call_id, text in zip(ids, ["first", "second"], strict=True)] == shape(
        prepared[1:]
    )


def test_what_another_model_thought_and_signed() -> None:
    content = [
        ThinkingContent(thinking="deep", thinking_signature="SIG"),
        ThinkingContent(thinking="", thinking_signature="SIG"),
        ThinkingContent(thinking=" "),
        TextContent(text="said", text_signature="T"),
        call("a", thought_signature="S"),
    ]
    [foreign, _] = prepare_history([assistant(*content, by=FOREIGN)], TARGET)
    assert [block.to_json() for block in foreign.content] == [
        {"type": "text", "text": "said"},
        {"type": "toolCall", "id": "a", "name": "read", "arguments": {}},
    ]
    [own, _] = prepare_history([assistant(*content)], TARGET)
    assert [block.type for block in own.content] == ["thinking", "thinking", "text", "toolCall"]
    assert own.content[1].thinking_signature == "SIG"
    assert own.content[3].thought_signature == "S"


def test_images_for_a_model_that_cannot_see() -> None:
    image = ImageContent(data="AAAA", mime_type="image/png")
    blind = TARGET.model_copy(update={"input": ["text"]})
    [message] = prepare_history([UserMessage(content=[image, image, TextContent(text="?"), image])], blind)
    assert len(message.content) == 3
    assert all(isinstance(block, TextContent) for block in message.content)
    [seen] = prepare_history([UserMessage(content=[image])], TARGET)
    assert seen.content == [image]


def test_tool_traffic() -> None:
    assert not has_tool_traffic([user(), assistant(TextContent(text="t"))])
    assert has_tool_traffic([assistant(call("a"))])
    assert has_tool_traffic([result("a")])


ids = st.sampled_from(["0", "a", "a|b", "functions.read:0", "x" * 70, "x" * 71])
any_message = st.one_of(
    st.just(user()),
    st.builds(result, ids),
    st.builds(
        lambda calls, by, stop: assistant(*map(call, calls), by=by, stop_reason=stop),
        st.lists(ids, max_size=3),
        st.sampled_from([OWN, FOREIGN]),
        st.sampled_from(["stop", "toolUse", "error", "aborted", "length"]),
    ),
)


@given(st.lists(any_message, max_size=12))
def test_every_call_has_its_result_right_behind_it(messages: list[Message]) -> None:
    before = copy.deepcopy(messages)
    prepared = prepare_history(messages, TARGET, HistoryRules(safe))
    assert messages == before
    assert [m for m in prepared if isinstance(m, UserMessage)] == [m for m in messages if isinstance(m, UserMessage)]
    waiting: list[str] = []
    seen: set[str] = set()
    for message in prepared:
        if isinstance(message, ToolResultMessage):
            assert message.tool_call_id == waiting.pop(0)
            continue
        assert not waiting
        if isinstance(message, AssistantMessage):
            assert message.stop_reason not in ("error", "aborted")
            waiting = [call.id for call in message.tool_calls]
            assert not seen & set(waiting)
            assert len(set(waiting)) == len(waiting)
            seen |= set(waiting)
    assert not waiting
