"""The request of the responses API: histories of every origin, and the switches of servers that differ."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_core import (
    AssistantMessage,
    Context,
    ImageContent,
    Message,
    Model,
    StreamOptions,
    TextContent,
    ThinkingContent,
    Tool,
    ToolCallContent,
    ToolResultMessage,
    UserMessage,
)
from pi_plugins.providers._grammar import grammar_arguments
from pi_plugins.providers._responses_compat import compat_of
from pi_plugins.providers._responses_input import HOSTED_ITEMS, legal_id
from pi_plugins.providers._responses_request import build_headers, build_payload
from pi_plugins.providers._text import short_hash
from pi_plugins.providers.openai_responses import OpenAIResponsesProvider

PROVIDER = OpenAIResponsesProvider
OWN = {"api": "openai-responses", "provider": "openai", "model": "m"}
SCHEMA = {"type": "object", "properties": {"patch": {"type": "string"}}, "required": ["patch"]}
GRAMMAR = {"type": "grammar", "variants": {"openai_regex": "[a-z]+"}}
PATCH = Tool("apply_patch", "", SCHEMA, print, constrained_sampling=GRAMMAR)
READ = Tool("read", "", {"type": "object", "properties": {}}, print)
IMAGE = ImageContent(data="AAAA", mime_type="image/png")
USER = UserMessage(content="x")
FREE_TEXT = {"supportsOpenAIGrammarTools": True}


def target(**fields: Any) -> Model:
    given = {"id": "m", "api": "openai-responses", "provider": "openai", "baseUrl": "https://api.openai.com/v1"}
    return Model.model_validate({**given, "input": ["text", "image"], **fields})


def payload(messages: list[Message], tools: Any = (), **given: Any) -> dict[str, Any]:
    names = StreamOptions.__dataclass_fields__
    options = StreamOptions(**{name: value for name, value in given.items() if name in names})
    fields = {"reasoning" if name == "thinks" else name: value for name, value in given.items() if name not in names}
    model = target(**fields)
    compat = compat_of(model)
    grammar_tools = grammar_arguments(tools, supported=compat.supports_openai_grammar_tools)
    return build_payload(model, compat, Context("", messages, tools), options, grammar_tools)


def items(*messages: Message, **given: Any) -> list[dict[str, Any]]:
    return payload(list(messages), **given)["input"]


def said(*content: Any, **fields: Any) -> AssistantMessage:
    return AssistantMessage(content=list(content), **{**OWN, **fields})


def text(words: str = "t", item_id: str | None = None, **more: Any) -> TextContent:
    signature = None if item_id is None else json.dumps({"v": 1, "id": item_id, **more})
    return TextContent(text=words, text_signature=signature)


def thought(item_id: str = "rs_1", **more: Any) -> ThinkingContent:
    item = {"type": "reasoning", "id": item_id, "summary": [], "encrypted_content": "E", **more}
    return ThinkingContent(thinking="", thinking_signature=json.dumps(item))


def call(call_id: str = "c1|fc_1", name: str = "read", **fields: Any) -> ToolCallContent:
    return ToolCallContent(id=call_id, name=name, arguments={"patch": "é"}, **fields)


def result(*content: Any, call_id: str = "c1|fc_1") -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=call_id, tool_name="read", content=list(content) or [TextContent(text="r")])


def shape(made: list[dict[str, Any]]) -> list[Any]:
    """Each item as its type or role, with its id if it has one."""
    return [(item.get("type") or item["role"], *([item["id"]] if "id" in item else [])) for item in made]


# --- reasoning ---


def test_own_items_come_back_as_they_were() -> None:
    message = said(thought("rs_1"), text("a", "msg_1", phase="commentary"), thought("rs_2"), call(), call("c2|fc_2"))
    made = items(USER, message, result(), result(call_id="c2|fc_2"))
    assert shape(made)[1:] == [
        ("reasoning", "rs_1"),
        ("message", "msg_1"),
        ("reasoning", "rs_2"),
        ("function_call", "fc_1"),
        ("function_call", "fc_2"),
        ("function_call_output",),
        ("function_call_output",),
    ]
    assert made[1] == json.loads(message.content[0].thinking_signature or "")
    assert made[2]["phase"] == "commentary"
    assert made[4]["arguments"] == '{"patch":"é"}'
    assert [item["call_id"] for item in made[4:]] == ["c1", "c2", "c1", "c2"]


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_reasoning_that_led_to_nothing_is_left_out(reason: Any) -> None:
    assert shape(items(USER, said(thought(), stop_reason=reason), USER)) == [("user",), ("user",)]
    made = items(USER, said(text("a", "msg_1"), thought(), thought("rs_2"), text(" "), stop_reason=reason), USER)
    assert shape(made) == [("user",), ("message", "msg_1"), ("user",)]


def test_failed_messages_are_left_out_with_their_reasoning() -> None:
    failed = [said(thought(), call(), stop_reason=reason) for reason in ("error", "aborted")]
    assert shape(items(USER, failed[0], result(), USER, failed[1], USER)) == [("user",)] * 3


@pytest.mark.parametrize(
    "lost",
    [thought(encrypted_content=None), thought(encrypted_content="", content=[]), thought(type="other")]
    + [ThinkingContent(thinking="a", thinking_signature=signature) for signature in ("x", "[1]", "{", "[" * 100_000)],
)
def test_without_its_reasoning_a_message_goes_back_without_ids(lost: ThinkingContent) -> None:
    made = items(USER, said(lost, text("a", "msg_1", phase="final_answer"), call()), result())
    assert shape(made)[1:3] == [("message", "msg_pi_1"), ("function_call",)]
    assert made[1]["phase"] == "final_answer"


def test_plain_reasoning_needs_no_encryption() -> None:
    plain = thought(encrypted_content=None, content=[{"type": "reasoning_text", "text": "deep"}])
    assert shape(items(said(plain, text("a", "msg_1")))) == [("reasoning", "rs_1"), ("message", "msg_1")]


def test_ids_are_used_once() -> None:
    twice = said(thought(), text("a", "msg_1"), call())
    again = said(thought(), text("a", "msg_1"), call("c2|fc_1"))
    made = items(twice, result(), again, result(call_id="c2|fc_1"))
    assert shape(made)[4:6] == [("message", "msg_pi_2"), ("function_call",)]
    without_reasoning = items(said(call("c1|fc_1")), result(), said(call("c2|fc_1")), result(call_id="c2|fc_1"))
    assert shape(without_reasoning) == [
        ("function_call", "fc_1"),
        ("function_call_output",),
        ("function_call",),
        ("function_call_output",),
    ]


# --- texts ---


@pytest.mark.parametrize(
    ("signature", "item_id", "phase"),
    [
        (None, "msg_pi_1", None),
        ("msg_legacy", "msg_legacy", None),
        ("{broken", "{broken", None),
        ('{"v":2,"id":"a"}', '{"v":2,"id":"a"}', None),
        ('{"v":1,"id":"a","phase":"new"}', "a", None),
        ('{"v":1,"id":"a","phase":[]}', "a", None),
        ('{"v":1,"id":"","phase":"commentary"}', "msg_pi_1", "commentary"),
        ('{"v":1,"id":"%s"}' % ("x" * 65), f"msg_{short_hash('x' * 65)}", None),
    ],
)
def test_ids_and_phases_of_texts(signature: str | None, item_id: str, phase: str | None) -> None:
    message = said(TextContent(text="a", text_signature=signature))
    made = items(USER, message)[1]
    assert (made["id"], made.get("phase")) == (item_id, phase)


def test_several_texts_without_ids() -> None:
    message = said(text("a"), text("b"), TextContent(text=""), text("c"))
    assert shape(items(USER, message, USER, said(text()))) == [
        ("user",),
        ("message", "msg_pi_1"),
        ("message", "msg_pi_1_1"),
        ("message", "msg_pi_1_3"),
        ("user",),
        ("message", "msg_pi_3"),
    ]


def test_a_signed_text_is_kept_though_it_is_empty() -> None:
    assert shape(items(said(thought(), text("", "msg_1")))) == [("reasoning", "rs_1"), ("message", "msg_1")]


# --- calls ---


@pytest.mark.parametrize(
    ("provider", "call_id", "legal"),
    [
        ("openai", "call_1|fc_1", f"call_1|fc_{short_hash('fc_1')}"),
        ("openai", "functions.read:0", "functions_read_0"),
        ("openai", "a" * 70, "a" * 64),
        ("openai", "a.b_|x/y", f"a_b|fc_{short_hash('x/y')}"),
        ("openai", "", "call"),
        ("openai", "...", "call"),
        ("xai", "call_1|fc_1", "call_1_fc_1"),
        ("xai", "toolu_01AbC", "toolu_01AbC"),
    ],
)
def test_foreign_ids(provider: str, call_id: str, legal: str) -> None:
    assert legal_id(call_id, target(provider=provider)) == legal


@pytest.mark.parametrize(
    ("by", "call_id", "item"),
    [
        ({}, "c1|fc_1", {"call_id": "c1", "id": "fc_1"}),
        ({}, "c1|x_1", {"call_id": "c1"}),
        ({}, f"c1|fc_{'x' * 64}", {"call_id": "c1"}),
        ({}, "odd.id/1", {"call_id": "odd.id/1"}),
        ({"model": "other"}, "c1|fc_1", {"call_id": "c1"}),
        ({"provider": "azure"}, "c1|fc_1", {"call_id": "c1", "id": f"fc_{short_hash('fc_1')}"}),
        ({"api": "anthropic-messages"}, "toolu.1", {"call_id": "toolu_1"}),
    ],
)
def test_ids_of_calls(by: dict[str, str], call_id: str, item: dict[str, Any]) -> None:
    asked, answered = items(said(call(call_id), **by), result(call_id=call_id))
    assert {name: asked[name] for name in ("call_id", "id") if name in asked} == item
    assert answered["call_id"] == item["call_id"]


def test_ids_that_a_server_uses_again() -> None:
    turns = [said(call("call_0|fc_1")), said(call("call_0|fc_2")), said(call("call_0", name="ls"))]
    history = [part for turn in turns for part in (turn, result(call_id=turn.tool_calls[0].id))]
    made = items(*history)
    ids = [item["call_id"] for item in made]
    assert ids[0] == ids[1] == "call_0"
    assert ids[2] == ids[3]
    assert ids[4] == ids[5]
    assert len(set(ids)) == 3
    assert items(*history) == made


def test_free_text() -> None:
    own = said(call("c1|ctc_1", "apply_patch"), call("c2|fc_2", "apply_patch"))
    history = [own, result(call_id="c1|ctc_1"), result(call_id="c2|fc_2")]
    made = payload(history, [PATCH], compat=FREE_TEXT, tool_choice={"type": "tool", "name": "apply_patch"})
    assert shape(made["input"]) == [
        ("custom_tool_call", "ctc_1"),
        ("custom_tool_call",),
        ("custom_tool_call_output",),
        ("custom_tool_call_output",),
    ]
    assert made["input"][0]["input"] == "é"
    assert made["tools"][0]["format"] == {"type": "grammar", "syntax": "regex", "definition": "[a-z]+"}
    assert made["tool_choice"] == {"type": "custom", "name": "apply_patch"}
    plain = payload(history, [PATCH], tool_choice={"type": "tool", "name": "apply_patch"})
    assert shape(plain["input"])[:2] == [("function_call",), ("function_call", "fc_2")]
    assert plain["tools"][0]["type"] == "function"
    assert plain["tool_choice"] == {"type": "function", "name": "apply_patch"}


def test_namespaces_are_for_the_model_that_named_them() -> None:
    named = call(namespace="crm")
    assert items(said(named), result())[0]["namespace"] == "crm"
    assert "namespace" not in items(said(named, model="other"), result())[0]


@pytest.mark.parametrize(
    ("content", "output"),
    [
        ([TextContent(text="a"), TextContent(text="b\ud83d")], "a\nb"),
        ([TextContent(text="")], "(no tool output)"),
        ([ImageContent(data="", mime_type="image/png")], "(image omitted: it is empty)"),
    ],
)
def test_results(content: list[Any], output: str) -> None:
    assert items(said(call()), result(*content))[1]["output"] == output


def test_images() -> None:
    url = "data:image/png;base64,AAAA"
    image = {"type": "input_image", "detail": "auto", "image_url": url}
    said_and_shown = [TextContent(text="look"), IMAGE]
    asked, _, answered = items(UserMessage(content=said_and_shown), said(call()), result(*said_and_shown))
    assert asked["content"] == answered["output"] == [{"type": "input_text", "text": "look"}, image]
    blind = items(UserMessage(content=[IMAGE]), input=["text"])
    assert blind[0]["content"][0]["text"] == "(image omitted: model does not support images)"


# --- what tools of the server left ---


def hosted(*content: Any, before: int, **fields: Any) -> AssistantMessage:
    item = {"type": "web_search_call", "id": "ws_1"}
    return said(*content, **{HOSTED_ITEMS: [{"before": before, "item": item}, {"before": "x"}, 3]}, **fields)


def test_hosted_items_keep_their_place() -> None:
    made = items(USER, hosted(thought(), thought("rs_2"), text("a", "msg_1"), before=1))
    assert shape(made)[1:] == [
        ("reasoning", "rs_1"),
        ("web_search_call", "ws_1"),
        ("reasoning", "rs_2"),
        ("message", "msg_1"),
    ]
    assert shape(items(hosted(thought(), before=1)))[-1] == ("web_search_call", "ws_1")


def test_hosted_items_stay_with_their_model_and_their_reasoning() -> None:
    assert shape(items(hosted(text(), before=0, model="other"))) == [("message", "msg_pi_0")]
    bare = thought(encrypted_content=None)
    assert shape(items(hosted(bare, text(), before=1))) == [("message", "msg_pi_0")]


# --- any history ---

ids = st.sampled_from(["0", "a", "a|fc_1", "a|fc_2", "functions.read:0", "x" * 70, "x" * 71, ""])
blocks = st.one_of(
    st.sampled_from(
        [thought(), thought("rs_2"), thought(encrypted_content=None), text(), text("", "msg_1"), text(" ")]
    ),
    st.builds(call, ids),
)
makers = st.sampled_from([OWN, {**OWN, "model": "n"}, {**OWN, "provider": "azure"}, {**OWN, "api": "other"}])
histories = st.lists(
    st.one_of(
        st.just(USER),
        st.builds(lambda call_id: result(call_id=call_id), ids),
        st.builds(
            lambda content, by, reason: said(*content, stop_reason=reason, **by),
            st.lists(blocks, max_size=4),
            makers,
            st.sampled_from(["stop", "toolUse", "error", "aborted", "length"]),
        ),
    ),
    max_size=10,
)


@given(histories, st.sampled_from(["openai", "xai"]))
def test_every_history_is_accepted(messages: list[Message], provider: str) -> None:
    made = items(*messages, provider=provider)
    seen: list[str] = []
    waiting: list[str] = []
    for position, item in enumerate(made):
        kind = item.get("type") or item["role"]
        if kind == "function_call_output":
            assert item["call_id"] == waiting.pop(0)
            continue
        if kind == "function_call":
            waiting.append(item["call_id"])
            seen.append(item["call_id"])
        if kind == "user":
            assert not waiting
        if kind == "reasoning":
            assert item["encrypted_content"]
            assert made[position + 1].get("type") in ("reasoning", "message", "function_call")
    assert not waiting
    assert len(seen) == len(set(seen))
    assert all(seen)
    named = [item["id"] for item in made if "id" in item]
    assert len(named) == len(set(named))


# --- other fields ---


@pytest.mark.parametrize(
    ("given_fields", "wanted"),
    [
        ({"compat": {"supportsMaxOutputTokens": False}, "maxTokens": 100}, {"max_output_tokens": None}),
        ({"maxTokens": 100, "max_tokens": 200}, {"max_output_tokens": 100}),
        ({"session_id": "s", "compat": {"promptCacheKeyMode": "disabled"}}, {"prompt_cache_key": None}),
        ({"session_id": "s", "cache_retention": "long"}, {"prompt_cache_key": "s", "prompt_cache_retention": "24h"}),
        (
            {"cache_retention": "long", "compat": {"supportsLongCacheRetention": False}},
            {"prompt_cache_retention": None},
        ),
        ({"thinks": True, "provider": "github-copilot"}, {"reasoning": None, "include": None}),
        ({"thinks": True, "thinkingLevelMap": {"off": "minimal"}}, {"reasoning": {"effort": "minimal"}}),
        (
            {"thinks": True, "compat": {"supportsMidConvoEffort": True}},
            {"reasoning": {"effort": "medium", "summary": "auto"}},
        ),
        (
            {"compat": {"supportsExplicitPromptCacheMode": True}, "cache_retention": "none"},
            {"prompt_cache_options": {"mode": "explicit"}},
        ),
        ({"compat": {"supportsExplicitPromptCacheMode": True}}, {"prompt_cache_options": None}),
        ({"compat": {"unknownSwitch": True}}, {"model": "m"}),
        ({"samplingParams": {"top_p": 0.5, "store": True}}, {"top_p": 0.5, "store": True}),
    ],
)
def test_fields(given_fields: dict[str, Any], wanted: dict[str, Any]) -> None:
    made = payload([USER], **given_fields)
    assert {name: made.get(name) for name in wanted} == wanted


@pytest.mark.parametrize(("choice", "sent"), [("any", "required"), ("none", "none"), ("auto", "auto")])
def test_tool_choice(choice: str, sent: str) -> None:
    assert payload([USER], [READ], tool_choice=choice)["tool_choice"] == sent
    assert "tool_choice" not in payload([USER], tool_choice=choice)


@pytest.mark.parametrize(
    ("reasoning", "compat", "role"),
    [(True, {}, "developer"), (False, {}, "system"), (True, {"supportsDeveloperRole": False}, "system")],
)
def test_who_says_the_system_prompt(reasoning: bool, compat: dict[str, Any], role: str) -> None:
    model = target(reasoning=reasoning, compat=compat)
    made = build_payload(model, compat_of(model), Context("be\ud83d good"), StreamOptions(), {})
    assert made["input"] == [{"role": role, "content": "be good"}]


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({}, {"session-id", "x-client-request-id"}),
        ({"compat": {"sendSessionAffinityHeaders": "openai-nosession"}}, {"x-client-request-id"}),
        ({"compat": {"sendSessionAffinityHeaders": False}}, set()),
        ({"compat": {"sendSessionAffinityHeaders": "new"}}, set()),
        ({"provider": "openrouter"}, {"x-session-id"}),
        (
            {"provider": "openrouter", "compat": {"sendSessionAffinityHeaders": True}},
            {"session-id", "x-client-request-id"},
        ),
    ],
)
def test_session_headers(fields: dict[str, Any], names: set[str]) -> None:
    model = target(**fields)
    made = build_headers(model, compat_of(model), Context(), StreamOptions(session_id="s"))
    assert {name for name, value in made.items() if value == "s"} == names


def test_copilot_is_told_who_asks() -> None:
    model = target(provider="github-copilot")
    context = Context(messages=[UserMessage(content=[IMAGE])])
    made = build_headers(model, compat_of(model), context, StreamOptions(api_key="k"))
    assert made["x-initiator"] == "user"
    assert made["copilot-vision-request"] == "true"
    assert made["authorization"] == "Bearer k"


# --- a server that cannot read its own reasoning ---

REFUSALS = [
    "The encrypted content gAAAAB could not be verified.",
    "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
    "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
]
ANSWER = b'data: {"type":"response.completed","response":{"id":"r","status":"completed"}}\n\n'


def ask(serve: Any, reply: Any, messages: list[Message], *replies: Any, model: Any) -> Any:
    async def go() -> Any:
        async with serve(*replies) as server:
            stream = PROVIDER().stream(
                model(id="m", provider="openai", base_url=server.url), Context(messages=messages), StreamOptions()
            )
            return [event async for event in stream][-1].message, server.requests

    return asyncio.run(go())


def test_a_refusal_names_the_provider(serve: Any, reply: Any, model: Any) -> None:
    refusal = reply([b'{"error":{"message":"no"}}'], 400, {"content-type": "application/json"})
    made, _ = ask(serve, reply, [USER], refusal, model=lambda **fields: model(**{**fields, "provider": "a{0}"}))
    assert made.error_message == 'a{0} API error (400): {"message":"no"}'


@pytest.mark.parametrize("words", REFUSALS)
def test_it_is_asked_again_without(serve: Any, reply: Any, model: Any, words: str) -> None:
    body = json.dumps({"error": {"message": words, "type": "invalid_request_error"}}).encode()
    refusal = reply([body], 400, {"content-type": "application/json"})
    history = [USER, said(thought(), text("a", "msg_1"), call()), result(), USER]
    made, requests = ask(serve, reply, history, refusal, reply([ANSWER]), model=model)
    assert made.stop_reason == "stop"
    first, second = (request.json["input"] for request in requests)
    assert ("reasoning", "rs_1") in shape(first)
    assert shape(second) == [
        ("user",),
        ("message", "msg_pi_1"),
        ("function_call",),
        ("function_call_output",),
        ("user",),
    ]


def test_it_is_asked_again_only_once_and_only_if_that_helps(serve: Any, reply: Any, model: Any) -> None:
    body = json.dumps({"error": {"message": REFUSALS[0]}}).encode()
    refusal = reply([body], 400, {"content-type": "application/json"})
    made, requests = ask(serve, reply, [USER, said(thought(), text()), USER], refusal, model=model)
    assert (made.stop_reason, len(requests)) == ("error", 2)
    assert made.error_message == f'OpenAI API error (400): {{"message":"{REFUSALS[0]}"}}'
    _, requests = ask(serve, reply, [USER], refusal, model=model)
    assert len(requests) == 1
    other = reply([b'{"error":{"message":"no such model"}}'], 400, {"content-type": "application/json"})
    _, requests = ask(serve, reply, [USER, said(thought(), text()), USER], other, model=model)
    assert len(requests) == 1
