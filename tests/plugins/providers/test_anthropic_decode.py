"""Dialects of the messages API's stream: what each event means."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from pi_core import AssistantMessage, Context, ImageContent, StreamEvent, ThinkingContent, user_message
from pi_plugins.providers._anthropic_content import REDACTED
from pi_plugins.providers.anthropic_messages import AnthropicMessagesProvider

PROVIDER = AnthropicMessagesProvider
Run = Callable[..., list[StreamEvent]]


def begin(identity: str = "msg_1", model: str = "test-model", **usage: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {"id": identity, "model": model, "usage": usage}}


def opened(kind: str, index: Any = 0, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}}


def grown(kind: str, index: Any = 0, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": f"{kind}_delta", **fields}}


def closed(index: Any = 0) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def ended(reason: str | None = "end_turn", usage: Any = None, **delta: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason, **delta}, "usage": usage or {}}


STOP = {"type": "message_stop"}
PING = {"type": "ping"}
TEXT = [opened("text", text=""), grown("text", text="a"), closed()]


def sse(*events: Any) -> bytes:
    lines = [event if isinstance(event, bytes) else json.dumps(event).encode() for event in events]
    return b"".join(b"data: " + line + b"\n\n" for line in lines)


@pytest.fixture
def run(played: Any, reply: Any, calls: Any, model: Any) -> Run:
    """Plays a body and returns the events; the last one is the final event."""

    def play(body: bytes, headers: dict[str, str] | None = None, **fields: Any) -> list[StreamEvent]:
        given = reply([body], headers=headers or {"content-type": "text/event-stream"})
        provider, _ = played(given)
        context = Context(messages=[user_message("x")])
        return asyncio.run(calls.collect(provider.stream(model(**fields), context, calls.options({"maxRetries": 0}))))

    return play


def final(events: list[StreamEvent]) -> AssistantMessage:
    assert [event.type for event in events if event.type in ("done", "error")] == [events[-1].type]
    return events[-1].message


def made(message: AssistantMessage) -> list[tuple[str, str, dict[str, Any]]]:
    return [(call.id, call.name, call.arguments) for call in message.tool_calls]


def types(events: list[StreamEvent]) -> list[str]:
    return [event.type for event in events]


# --- blocks ---


@pytest.mark.parametrize(
    "events",
    [
        [PING, begin(), PING, *TEXT, PING, ended(), STOP, PING],
        [begin(), {"type": "new_event", "x": 1}, *TEXT, [], 3, None, ended(), STOP],
        [begin(), opened("text"), grown("text", text="a"), closed(), ended(), STOP],
        [begin(), grown("text", text="a"), closed(), ended(), STOP],
        [begin(), opened("text", text=""), grown("text", text="a"), ended(), STOP],
        [begin(), opened("text", text=""), grown("text", text=None), grown("text", text="a"), ended(), STOP],
        [begin(), opened("text", None, text="a"), closed(None), ended(), STOP],
        [begin(), *TEXT, closed(), closed(7), ended(), STOP],
        [begin(), *TEXT, opened("compaction", 1), grown("compaction", 1, content="c"), closed(1), ended(), STOP],
        [begin(), opened("text", text="a"), grown("citations", citation={"type": "x"}), closed(), ended(), STOP],
        [begin(), *TEXT, ended(), b"[DONE]"],
        [*TEXT, ended(), STOP],
    ],
    ids=[
        "pings",
        "unknown events",
        "no text at the start",
        "no start",
        "no stop",
        "a delta without text",
        "no index",
        "stops of nothing",
        "unknown blocks",
        "unknown deltas",
        "ends as gateways do",
        "no message start",
    ],
)
def test_text(run: Run, events: list[Any]) -> None:
    message = final(run(sse(*events)))
    assert (message.text, message.stop_reason, len(message.content)) == ("a", "stop", 1)


def test_events_are_told_apart_by_name_if_they_have_no_type(run: Run) -> None:
    def named(event: dict[str, Any]) -> bytes:
        rest = {name: value for name, value in event.items() if name != "type"}
        return f"event: {event['type']}\ndata: {json.dumps(rest)}\n\n".encode()

    events = [begin(), *TEXT, ended(), STOP]
    assert final(run(b"".join(map(named, events)))).text == "a"


def test_blocks_side_by_side(run: Run) -> None:
    events = [
        opened("text", 0, text=""),
        opened("tool_use", 5, id="t", name="read", input={}),
        grown("text", 0, text="a"),
        grown("input_json", 5, partial_json='{"p":'),
        grown("text", 0, text="b"),
        grown("input_json", 5, partial_json="1}"),
        closed(5),
        closed(0),
    ]
    message = final(run(sse(begin(), *events, ended("tool_use"), STOP)))
    assert message.text == "ab"
    assert made(message) == [("t", "read", {"p": 1})]


def test_an_index_used_again_is_another_block(run: Run) -> None:
    again = [opened("text", 0, text=""), grown("text", 0, text="b"), closed()]
    assert [block.text for block in final(run(sse(begin(), *TEXT, *again, ended(), STOP))).content] == ["a", "b"]


def test_a_delta_of_another_kind_opens_a_block_of_its_own(run: Run) -> None:
    events = [opened("text", text="a"), grown("thinking", thinking="t"), grown("text", text="b"), closed()]
    message = final(run(sse(begin(), *events, ended(), STOP)))
    assert [block.type for block in message.content] == ["text", "thinking", "text"]
    assert message.text == "ab"


def test_thinking(run: Run) -> None:
    events = [
        opened("thinking", thinking="", signature=""),
        grown("thinking", thinking="let "),
        grown("thinking", thinking="me"),
        grown("signature", signature="SI"),
        grown("signature", signature="G"),
        closed(),
    ]
    [block] = final(run(sse(begin(), *events, ended(), STOP))).content
    assert block == ThinkingContent(thinking="let me", thinking_signature="SIG")


def test_a_signature_without_thinking(run: Run) -> None:
    events = [opened("thinking", thinking=""), grown("signature", signature="SIG"), closed()]
    [block] = final(run(sse(begin(), *events, ended(), STOP))).content
    assert block == ThinkingContent(thinking="", thinking_signature="SIG")


def test_a_signature_with_the_start_or_of_nothing(run: Run) -> None:
    events = [grown("signature", 4, signature="X"), opened("thinking", thinking="t", signature="SIG"), closed()]
    [block] = final(run(sse(begin(), *events, ended(), STOP))).content
    assert block == ThinkingContent(thinking="t", thinking_signature="SIG")


def test_hidden_thinking(run: Run) -> None:
    events = run(sse(begin(), opened("redacted_thinking", data="OPAQUE"), closed(), ended(), STOP))
    assert types(events) == ["start", "thinking_start", "thinking_end", "done"]
    [block] = final(events).content
    assert block == ThinkingContent(thinking=REDACTED, thinking_signature="OPAQUE", redacted=True)


# --- tool calls ---


@pytest.mark.parametrize(
    ("given", "pieces", "arguments"),
    [
        ({}, [""], {}),
        ({}, [], {}),
        (None, [], {}),
        ({"p": 1}, [], {"p": 1}),
        ({"p": 1}, [""], {"p": 1}),
        ({"p": 1}, ["", '{"q"', ":2}"], {"q": 2}),
        ({}, ['{"p":"\\ud83d\\ude00"}'], {"p": "😀"}),
        ({}, ['{"p":"\\ud83d"}'], {"p": ""}),
    ],
)
def test_arguments(run: Run, given: Any, pieces: list[str], arguments: Any) -> None:
    deltas = [grown("input_json", partial_json=piece) for piece in pieces]
    start = opened("tool_use", id="t", name="read", input=given)
    events = run(sse(begin(), start, *deltas, closed(), ended("tool_use"), STOP))
    message = final(events)
    assert made(message) == [("t", "read", arguments)]
    assert message.stop_reason == "toolUse"
    text = "".join(event.delta for event in events if event.type == "toolcall_delta")
    assert json.loads(text or "{}").keys() == arguments.keys()


def test_arguments_that_were_cut(run: Run) -> None:
    start = opened("tool_use", id="t", name="write", input={})
    cut = grown("input_json", partial_json='{"path":"a","content":"half')
    message = final(run(sse(begin(), start, cut, ended("max_tokens"), STOP)))
    [call] = message.tool_calls
    assert message.stop_reason == "length"
    assert call.arguments == {}
    assert (call.arguments_error or "").endswith('Received arguments:\n{"path":"a","content":"half')


def test_a_call_without_an_id_gets_one(run: Run) -> None:
    starts = [opened("tool_use", index, name="read", input={}) for index in (0, 1)]
    message = final(run(sse(begin(), *starts, ended("tool_use"), STOP)))
    ids = [call.id for call in message.tool_calls]
    assert all(call_id.startswith("toolu_") for call_id in ids)
    assert len(set(ids)) == 2


def test_arguments_of_no_call_are_passed_over(run: Run) -> None:
    events = [grown("input_json", 3, partial_json="{}"), *TEXT, grown("input_json", partial_json="{}")]
    assert final(run(sse(begin(), *events, ended(), STOP))).text == "a"


# --- how it ends ---


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "stop"),
        ("pause_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "toolUse"),
    ],
)
def test_stop_reasons(run: Run, reason: str, stop: str) -> None:
    message = final(run(sse(begin(), *TEXT, ended(reason), STOP)))
    assert (message.stop_reason, message.raw_stop_reason) == (stop, reason)
    assert message.text == "a"


def test_an_unknown_stop_reason_is_noted(run: Run) -> None:
    message = final(run(sse(begin(), *TEXT, ended("new"), STOP)))
    assert (message.stop_reason, message.raw_stop_reason, message.text) == ("stop", "new", "a")
    [note] = message.to_json()["diagnostics"]
    assert (note["type"], note["details"]) == ("unknown_stop_reason", {"reason": "new"})
    call = [opened("tool_use", id="t", name="read", input={}), closed()]
    assert final(run(sse(begin(), *call, ended("new"), STOP))).stop_reason == "toolUse"


@pytest.mark.parametrize(
    ("reason", "details", "text"),
    [
        ("refusal", {"explanation": "Policy X"}, "Policy X"),
        ("refusal", {"explanation": " "}, "The model refused to answer"),
        ("refusal", None, "The model refused to answer"),
        ("sensitive", None, "The provider withheld the answer because of its content"),
    ],
)
def test_refusals(run: Run, reason: str, details: Any, text: str) -> None:
    message = final(run(sse(begin(), *TEXT, ended(reason, stop_details=details), STOP)))
    assert (message.stop_reason, message.error_message, message.raw_stop_reason) == ("error", text, reason)
    assert message.text == "a"
    assert message.error_details is not None
    assert (message.error_details.type, message.error_details.retryable) == (reason, False)


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([begin(), *TEXT], "Anthropic stream ended before message_stop"),
        ([begin(), *TEXT, ended()], "Anthropic stream ended before message_stop"),
        ([begin(), *TEXT, b"[DONE]"], "Anthropic stream ended before message_stop"),
        ([begin(), *TEXT, ended(None), STOP], "Anthropic stream ended without a stop reason"),
        ([PING], "Anthropic stream ended before message_stop"),
    ],
)
def test_an_end_that_is_none(run: Run, events: list[Any], text: str) -> None:
    message = final(run(sse(*events)))
    assert (message.stop_reason, message.error_message) == ("error", text)
    assert message.error_details is not None
    assert message.error_details.retryable is True


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded_error", True),
        ({"type": "api_error", "message": "Something"}, "api_error", True),
        ({"type": "timeout_error", "message": "Something"}, "timeout_error", True),
        ({"type": "rate_limit_error", "message": "your credit balance is too low"}, "rate_limit_error", False),
        ({"type": "invalid_request_error", "message": "internal server error"}, "invalid_request_error", False),
        ({"type": "new_error"}, "new_error", False),
        ("it broke", "error", False),
    ],
)
def test_errors_in_the_stream(run: Run, error: Any, kind: str, retryable: bool) -> None:
    event = {"type": "error", "error": error, "request_id": "req_1"}
    for before in ([], [begin(input_tokens=3), *TEXT]):
        message = final(run(sse(*before, event)))
        assert message.stop_reason == "error"
        assert json.loads(message.error_message or "") == event
        assert message.text == ("a" if before else "")
        assert message.usage.input == (3 if before else 0)
        details = message.error_details
        assert details is not None
        assert (details.type, details.request_id, details.retryable) == (kind, "req_1", retryable)


@pytest.mark.parametrize(
    "body",
    [
        b'event: error\ndata: {"error":{"type":"overloaded_error","message":"no"}}\n\n',
        b'data: {"error":{"type":"overloaded_error","message":"no"}}\n\n',
        b'{"type":"error","error":{"type":"overloaded_error","message":"no"}}',
        b'{"error":{"type":"overloaded_error","message":"no"}}',
    ],
)
def test_errors_of_every_shape(run: Run, body: bytes) -> None:
    message = final(run(body))
    assert message.stop_reason == "error"
    assert message.error_details is not None
    assert message.error_details.type == "overloaded_error"


def test_an_error_that_is_no_object(run: Run) -> None:
    message = final(run(b'event: error\ndata: "it broke"\n\n'))
    assert (message.stop_reason, message.error_message) == ("error", "it broke")


def test_an_answer_in_one_piece(run: Run) -> None:
    content = [
        {"type": "thinking", "thinking": "t", "signature": "SIG"},
        {"type": "text", "text": "a"},
        {"type": "tool_use", "id": "t1", "name": "read", "input": {"p": 1}},
    ]
    body = {
        "type": "message",
        "id": "msg_1",
        "model": "test-model",
        "content": content,
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 2, "output_tokens": 3},
    }
    events = run(json.dumps(body).encode(), {"content-type": "application/json"})
    message = final(events)
    assert types(events)[:-1] == [
        "start",
        "thinking_start",
        "thinking_end",
        "text_start",
        "text_end",
        "toolcall_start",
        "toolcall_delta",
        "toolcall_end",
    ]
    assert made(message) == [("t1", "read", {"p": 1})]
    assert (message.text, message.stop_reason, message.response_id) == ("a", "toolUse", "msg_1")
    assert (message.usage.input, message.usage.output) == (2, 3)


# --- a message that begins twice ---


def test_the_same_start_twice(run: Run) -> None:
    for events in ([begin(), begin(), *TEXT], [begin(), *TEXT[:2], begin(), closed()]):
        message = final(run(sse(*events, ended(), STOP)))
        assert (message.text, len(message.content)) == ("a", 1)


@pytest.mark.parametrize("identity", ["msg_1", "msg_2"])
def test_a_message_in_the_midst_of_another(run: Run, identity: str) -> None:
    first = [
        begin(input_tokens=9),
        opened("text", 0, text="no"),
        closed(0),
        opened("tool_use", 1, id="no", name="no", input={}),
        grown("input_json", 1, partial_json='{"va'),
        ended("tool_use"),
    ]
    second = [begin(identity, input_tokens=2), opened("text", 0, text=""), grown("text", 0, text="yes"), closed(0)]
    message = final(run(sse(*first, *second, ended(), STOP)))
    assert (message.text, message.stop_reason, message.response_id) == ("yes", "stop", identity)
    assert message.tool_calls == []
    assert message.usage.input == 2


# --- usage and models ---


def test_usage_comes_in_parts(run: Run) -> None:
    creation = {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 4}
    start = begin(input_tokens=10, output_tokens=1, cache_read_input_tokens=3, cache_creation=creation)
    more = {"input_tokens": None, "output_tokens": 7, "output_tokens_details": {"thinking_tokens": 2}}
    usage = final(
        run(sse(start, *TEXT, ended(usage=more), STOP), cost={"input": 1, "output": 2, "cacheWrite": 1})
    ).usage
    counts = (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.cache_write1h, usage.reasoning)
    assert counts == (10, 7, 3, 5, 4, 2)
    assert usage.total_tokens == 25
    # One of the five cached tokens at its own price, the four that stay an hour at twice the price of input.
    assert usage.cost.cache_write == pytest.approx(9e-6)


def test_nonsense_for_usage(run: Run) -> None:
    start = begin(input_tokens="many", output_tokens=-1, cache_creation=[], output_tokens_details=3)
    usage = final(run(sse(start, *TEXT, ended(usage={"output_tokens": True}), STOP))).usage
    assert usage.total_tokens == 0


def test_nonsense_for_words(run: Run) -> None:
    odd = [begin(3, 4), *TEXT, ended(5, stop_details=[]), ended("", stop_details={"explanation": 3}), begin("", "")]  # type: ignore[arg-type]
    message = final(run(sse(*odd, ended(), STOP)))
    assert (message.text, message.raw_stop_reason, message.response_model) == ("a", "end_turn", None)
    assert message.response_id is None


def test_the_model_that_answered(run: Run) -> None:
    fallback = {"provider": "anthropic", "model": "b", "cost": {"input": 10, "output": 0}}
    compat = {"allowedFallbackModels": [fallback, {"model": "c"}, {}, 3]}
    million = {"input_tokens": 1_000_000}
    moved = opened("fallback", **{"from": {"model": "test-model"}, "to": {"model": "b"}})
    price = {"input": 1, "output": 0}
    for events, served, cost in (
        ([begin(**million), *TEXT], None, 1),
        ([begin(model="b", **million), *TEXT], "b", 10),
        ([begin(**million), moved, closed(), *TEXT], "b", 10),
        ([begin(model="c", **million), *TEXT], "c", 1),
    ):
        message = final(run(sse(*events, ended(), STOP), cost=price, compat=compat))
        assert (message.response_model, message.usage.cost.input, message.text) == (served, cost, "a")


def test_another_model_in_the_midst_of_an_answer(run: Run) -> None:
    message = final(run(sse(begin(), *TEXT, opened("fallback", 1, to={"model": "b"}), closed(1), ended(), STOP)))
    assert (message.stop_reason, message.text) == ("error", "a")
    assert message.error_message == "The server went on with another model in the midst of the answer"


# --- text ---


def test_halves_of_surrogate_pairs(run: Run) -> None:
    def escaped(kind: str, name: str, text: str) -> bytes:
        return json.dumps(grown(kind, **{name: "@"})).replace("@", text).encode()

    for kind, name in (("text", "text"), ("thinking", "thinking")):
        start = opened(kind, **{name: ""})
        pieces = [escaped(kind, name, text) for text in ("a\\ud83d", "\\ude00b", "\\udcaf", "c\\ud83d")]
        events = run(sse(begin(), start, *pieces, closed(), ended(), STOP))
        [block] = final(events).content
        assert getattr(block, name) == "a😀b\ufffdc\ufffd"
        deltas = [event.delta for event in events if event.type == f"{kind}_delta"]
        assert "".join(deltas) == getattr(block, name)


def test_many_deltas_alike(run: Run) -> None:
    texts = [f'piece {at} \\ " é\n' for at in range(50)]
    padded = [json.dumps(grown("text", text=text)).encode()[:-1] + b" " * at + b"}" for at, text in enumerate(texts)]
    two = [opened("text", 0, text=""), *padded, closed(0), opened("text", 1, text=""), grown("text", 1, text="z")]
    message = final(run(sse(begin(), *two, ended(), STOP)))
    assert [block.text for block in message.content] == ["".join(texts), "z"]


def test_images_are_no_part_of_an_answer(run: Run) -> None:
    message = final(run(sse(begin(), opened("image", source={}), closed(), *TEXT, ended(), STOP)))
    assert not any(isinstance(block, ImageContent) for block in message.content)
    assert message.text == "a"
