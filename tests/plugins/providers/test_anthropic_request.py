"""The request of the messages API: histories, thinking, tools, cache marks, and the switches of servers that differ."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from pi_core import (
    AssistantMessage,
    Context,
    ImageContent,
    Message,
    StreamOptions,
    TextContent,
    ThinkingContent,
    Tool,
    ToolCallContent,
    ToolResultMessage,
    UserMessage,
)
from pi_plugins.providers._anthropic_compat import compat_of
from pi_plugins.providers._anthropic_request import DEFAULT_MAX_TOKENS, build_request, session_headers
from pi_plugins.providers.anthropic_messages import AnthropicMessagesProvider

PROVIDER = AnthropicMessagesProvider
IMAGE = ImageContent(data="AAAA", mime_type="image/png")
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
USER = UserMessage(content="x")


def said(*content: Any, **fields: Any) -> AssistantMessage:
    given = {"api": "anthropic-messages", "provider": "local", "model": "test-model", **fields}
    return AssistantMessage(content=list(content), **given)


def asked(*call_ids: str, **fields: Any) -> AssistantMessage:
    return said(*(ToolCallContent(id=call_id, name="read", arguments={"path": "é"}) for call_id in call_ids), **fields)


def answered(*content: Any, call_id: str = "c1", is_error: bool = False) -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=call_id, tool_name="read", content=list(content), is_error=is_error)


def tool(schema: dict[str, Any] | None = None, **fields: Any) -> Tool:
    return Tool("read", "Reads a file.", schema or SCHEMA, lambda arguments, context: None, **fields)


@pytest.fixture
def build(model: Any) -> Any:
    def request(messages: list[Message] | None = None, **given: Any) -> Any:
        context = Context(given.pop("system", ""), messages or [USER], given.pop("tools", []))
        lenient = given.pop("lenient", False)
        names = StreamOptions.__dataclass_fields__.keys() - {"reasoning"}
        options = {"cache_retention": "none", **{name: value for name, value in given.items() if name in names}}
        fields = {name: value for name, value in given.items() if name not in names}
        level = fields.pop("level", None)
        target = model(**{"input": ["text", "image"], **fields})
        made = StreamOptions(reasoning=level, **options)
        return build_request(target, compat_of(target), context, made, lenient=lenient)

    return request


@pytest.fixture
def payload(build: Any) -> Any:
    return lambda *messages, **given: build(list(messages), **given).payload


# --- messages ---


@pytest.mark.parametrize("content", ["", " \n", [], [TextContent(text="")], [TextContent(text=" ")]])
def test_messages_that_say_nothing(payload: Any, content: Any) -> None:
    assert payload(UserMessage(content=content), USER)["messages"] == [{"role": "user", "content": "x"}]


def test_answers_that_say_nothing(payload: Any) -> None:
    empty = said(TextContent(text=" "), ThinkingContent(thinking=""), ThinkingContent(thinking="r", redacted=True))
    assert payload(USER, empty, USER)["messages"] == [{"role": "user", "content": "x"}] * 2


def test_thinking_goes_back(payload: Any) -> None:
    message = said(
        ThinkingContent(thinking="", thinking_signature="SIG"),
        ThinkingContent(thinking="shown", thinking_signature="OPAQUE", redacted=True),
        ThinkingContent(thinking="unsigned"),
        TextContent(text="a"),
    )
    plain = [
        {"type": "thinking", "thinking": "", "signature": "SIG"},
        {"type": "redacted_thinking", "data": "OPAQUE"},
        {"type": "text", "text": "unsigned"},
        {"type": "text", "text": "a"},
    ]
    assert payload(USER, message)["messages"][1]["content"] == plain
    allowed = payload(USER, message, compat={"allowEmptySignature": True})["messages"][1]["content"]
    assert allowed[2] == {"type": "thinking", "thinking": "unsigned", "signature": ""}


def test_what_other_models_thought_stays_away(payload: Any) -> None:
    for fields in ({"model": "other"}, {"provider": "other"}, {"api": "openai-responses"}):
        message = said(ThinkingContent(thinking="t", thinking_signature="SIG"), TextContent(text="a"), **fields)
        assert payload(USER, message)["messages"][1]["content"] == [{"type": "text", "text": "a"}]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("functions.read:0", "functions_read_0"),
        ("call|item", "call_item"),
        ("x" * 70, "x" * 64),
        ("é", "_"),
        ("", "call"),
    ],
)
def test_ids_of_other_models(payload: Any, given: str, sent: str) -> None:
    messages = payload(USER, asked(given, model="other"), answered(TextContent(text="r"), call_id=given))["messages"]
    assert messages[1]["content"][0]["id"] == sent
    assert messages[2]["content"][0]["tool_use_id"] == sent


def test_names_no_server_accepts(payload: Any) -> None:
    calls = [ToolCallContent(id=f"c{at}", name=name) for at, name in enumerate(("functions.read", "", "x" * 200))]
    parts = payload(USER, said(*calls))["messages"][1]["content"]
    assert [part["name"] for part in parts] == ["functions_read", "unknown", "x" * 128]


def test_results_of_a_turn_are_one_message(payload: Any) -> None:
    results = [answered(TextContent(text="A"), TextContent(text="B"), call_id="c1"), answered(call_id="c2")]
    messages = payload(USER, asked("c1", "c2"), *results, USER)["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "user"]
    assert messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "A\nB", "is_error": False},
        {"type": "tool_result", "tool_use_id": "c2", "content": "", "is_error": False},
    ]


def test_images_in_results(payload: Any) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    shown = payload(USER, asked("c1"), answered(TextContent(text=" "), IMAGE))["messages"][2]["content"]
    assert shown[0]["content"] == [{"type": "text", "text": "(see attached image)"}, image]
    result = answered(IMAGE, IMAGE, TextContent(text="no"), IMAGE, TextContent(text="end"), is_error=True)
    failed = payload(USER, asked("c1"), result)["messages"][2]["content"]
    note = "(image attached after the tool results)"
    assert failed[0]["content"] == f"{note}\nno\n{note}\nend"
    caption = {"type": "text", "text": "Images from the error result of tool call c1 (read):"}
    assert failed[1:] == [caption, image, image, image]


def test_images_nobody_accepts(payload: Any) -> None:
    bitmap = ImageContent(data="AAAA", mime_type="image/bmp")
    [message] = payload(UserMessage(content=[bitmap, IMAGE]))["messages"]
    assert message["content"][0] == {"type": "text", "text": "(image omitted: image/bmp is not supported)"}
    assert message["content"][1]["type"] == "image"


def test_halves_of_surrogate_pairs(payload: Any) -> None:
    sent = payload(
        UserMessage(content="a\ud83d"),
        said(TextContent(text="b\udcaf"), ThinkingContent(thinking="t\ud83d", thinking_signature="SIG")),
        UserMessage(content=[TextContent(text="\ud83d\ude00")]),
        system="s\ud83d",
    )
    assert [part["text"] for part in sent["system"]] == ["s"]
    assert sent["messages"][0]["content"] == "a"
    assert [part.get("text", part.get("thinking")) for part in sent["messages"][1]["content"]] == ["b", "t"]
    assert sent["messages"][2]["content"][0]["text"] == "😀"


def test_no_system_prompt(payload: Any) -> None:
    for system in ("", " \n"):
        assert "system" not in payload(system=system)


# --- limits and thinking ---


def test_most_tokens(payload: Any) -> None:
    message = UserMessage(content="x" * 35)
    assert payload(message)["max_tokens"] == DEFAULT_MAX_TOKENS
    assert payload(message, contextWindow=6000)["max_tokens"] == 6000 - 10 - 4096


def test_most_tokens_of_the_model(build: Any, model: Any) -> None:
    target = model(maxTokens=50)
    for wanted, tokens in ((None, 50), (20, 20), (90, 50)):
        options = StreamOptions(max_tokens=wanted)
        built = build_request(target, compat_of(target), Context(messages=[USER]), options)
        assert built.payload["max_tokens"] == tokens


def _thinking(model: Any, level: Any, options: dict[str, Any], **fields: Any) -> dict[str, Any]:
    target = model(reasoning=True, **fields)
    built = build_request(
        target, compat_of(target), Context(messages=[USER]), StreamOptions(reasoning=level, **options)
    )
    names = ("max_tokens", "thinking", "output_config", "temperature")
    return {name: built.payload[name] for name in names if name in built.payload}


def budget(tokens: int) -> dict[str, Any]:
    return {"type": "enabled", "budget_tokens": tokens, "display": "summarized"}


@pytest.mark.parametrize(
    ("level", "options", "fields", "wanted"),
    [
        (None, {}, {"maxTokens": 9000}, {"max_tokens": 9000, "thinking": {"type": "disabled"}}),
        ("off", {}, {"maxTokens": 9000}, {"max_tokens": 9000, "thinking": {"type": "disabled"}}),
        (None, {}, {"maxTokens": 9000, "thinkingLevelMap": {"off": None}}, {"max_tokens": 9000}),
        ("low", {}, {"maxTokens": 9000}, {"max_tokens": 9000, "thinking": budget(2048)}),
        ("low", {"max_tokens": 500}, {"maxTokens": 9000}, {"max_tokens": 2548, "thinking": budget(1524)}),
        ("high", {"max_tokens": 500}, {"maxTokens": 9000}, {"max_tokens": 9000, "thinking": budget(7976)}),
        ("low", {}, {}, {"max_tokens": DEFAULT_MAX_TOKENS + 2048, "thinking": budget(2048)}),
        ("low", {"thinking_budgets": {"low": 10}}, {"maxTokens": 9000}, {"max_tokens": 9000, "thinking": budget(1024)}),
        ("low", {}, {"maxTokens": 2047}, {"max_tokens": 2047, "thinking": {"type": "disabled"}}),
        ("low", {}, {"maxTokens": 2048}, {"max_tokens": 2048, "thinking": budget(1024)}),
        ("low", {}, {"maxTokens": 9000, "contextWindow": 6000}, {"max_tokens": 1903, "thinking": {"type": "disabled"}}),
        ("high", {}, {"maxTokens": 9000, "contextWindow": 8000}, {"max_tokens": 3903, "thinking": budget(2879)}),
        ("low", {"temperature": 0.5}, {"maxTokens": 9000}, {"max_tokens": 9000, "thinking": budget(2048)}),
    ],
)
def test_thinking_with_a_budget(model: Any, level: Any, options: Any, fields: Any, wanted: Any) -> None:
    assert _thinking(model, level, options, **fields) == wanted


@pytest.mark.parametrize(
    ("level", "words", "effort"),
    [
        ("minimal", {}, "low"),
        ("low", {}, "low"),
        ("medium", {}, "medium"),
        ("high", {}, "high"),
        ("high", {"high": "max"}, "max"),
        ("max", {"max": "max"}, "max"),
        ("max", {}, "high"),
    ],
)
def test_thinking_by_effort(model: Any, level: Any, words: dict[str, str], effort: str) -> None:
    fields = {"maxTokens": 50, "thinkingLevelMap": words, "compat": {"forceAdaptiveThinking": True}}
    assert _thinking(model, level, {"temperature": 0.5}, **fields) == {
        "max_tokens": 50,
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": effort},
    }


def test_effort_in_the_conversation(build: Any) -> None:
    own = said(TextContent(text="a"), provider_thinking_level="high")
    other = said(TextContent(text="b"), provider_thinking_level="xhigh", model="other")
    fields = {"reasoning": True, "compat": {"supportsMidConvoEffort": True}}
    built = build([USER, own, USER, other, USER], level="minimal", temperature=0.5, **fields)
    shown = [message.get("output_config", {}).get("effort", message["role"]) for message in built.payload["messages"]]
    assert shown == ["user", "high", "assistant", "user", "assistant", "user", "low"]
    assert (built.effort, built.payload["output_config"]) == ("low", {"effort": "low"})
    assert "temperature" not in built.payload
    silent = build([USER, own, USER], **fields)
    assert [message["role"] for message in silent.payload["messages"]] == ["user", "assistant", "user"]
    assert (silent.effort, silent.payload["thinking"]) == (None, {"type": "disabled"})
    assert silent.betas == built.betas


def test_temperature(payload: Any) -> None:
    assert payload(temperature=0.5)["temperature"] == 0.5
    assert "temperature" not in payload(temperature=0.5, compat={"supportsTemperature": False})


def test_metadata(payload: Any) -> None:
    assert payload(metadata={"user_id": "u", "x": 1})["metadata"] == {"user_id": "u"}
    assert "metadata" not in payload(metadata={"user_id": 3})


# --- tools ---


def test_schema_of_parameters(payload: Any) -> None:
    def sent(schema: dict[str, Any]) -> Any:
        return payload(tools=[tool(schema)])["tools"][0]["input_schema"]

    assert sent({"type": "object"}) == {"type": "object", "properties": {}, "required": []}
    definitions = {"A": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"]}}
    wanted = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"], "$defs": definitions}
    assert sent({"$ref": "#/$defs/A", "$defs": definitions}) == wanted
    assert sent({"$ref": "#/$defs/B", "$defs": {}, "title": "t"})["properties"] == {}
    kept = {"additionalProperties": False, "definitions": {"B": {}}}
    assert sent({**SCHEMA, **kept, "oneOf": [], "description": "d"}) == {**SCHEMA, **kept}


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", {"type": "auto"}),
        ("none", {"type": "none"}),
        ("any", {"type": "any"}),
        ("required", {"type": "any"}),
        ({"type": "tool", "name": "read"}, {"type": "tool", "name": "read"}),
        ({"type": "function", "function": {"name": "read"}}, {"type": "tool", "name": "read"}),
        ({"type": "function", "name": "read"}, {"type": "tool", "name": "read"}),
        ({"type": "auto", "disable_parallel_tool_use": True}, {"type": "auto", "disable_parallel_tool_use": True}),
    ],
)
def test_tool_choice(payload: Any, choice: Any, sent: Any) -> None:
    assert payload(tools=[tool()], tool_choice=choice)["tool_choice"] == sent
    assert "tool_choice" not in payload(tool_choice=choice)


PREFER = {"type": "json_schema", "strict": "prefer"}
REQUIRE = {"type": "json_schema", "strict": "require"}


@pytest.mark.parametrize(
    ("sampling", "supported", "lenient", "strict", "recoverable"),
    [
        (PREFER, True, False, True, True),
        (PREFER, True, True, False, False),
        (PREFER, False, False, False, False),
        (REQUIRE, True, False, True, False),
        (REQUIRE, True, True, True, False),
        (None, True, False, False, False),
        (False, True, False, False, False),
    ],
)
def test_strict_tools(
    build: Any, sampling: Any, supported: bool, lenient: bool, strict: bool, recoverable: bool
) -> None:
    compat = {"supportsStrictTools": supported}
    built = build(tools=[tool(constrained_sampling=sampling)], compat=compat, lenient=lenient)
    [sent] = built.payload["tools"]
    assert sent.get("strict", False) is strict
    assert built.strict_tools is recoverable


def test_a_tool_that_must_be_strict(build: Any) -> None:
    with pytest.raises(ValueError, match="supportsStrictTools"):
        build(tools=[tool(constrained_sampling=REQUIRE)])


def test_eager_input(build: Any) -> None:
    assert build(tools=[tool()]).payload["tools"][0]["eager_input_streaming"] is True
    built = build(tools=[tool()], compat={"supportsEagerToolInputStreaming": False})
    assert "eager_input_streaming" not in built.payload["tools"][0]
    assert built.betas == ["fine-grained-tool-streaming-2025-05-14"]
    assert build(compat={"supportsEagerToolInputStreaming": False}).betas == []


def test_a_place_for_later_tools(build: Any) -> None:
    compat = {"supportsMidConvoToolChanges": True, "somethingNew": 1}
    built = build(tools=[tool()], compat=compat, cache_retention="short")
    own, place = built.payload["tools"]
    assert (own["name"], place["defer_loading"]) == ("read", True)
    assert "cache_control" in own
    assert "cache_control" not in place
    assert built.betas == ["inline-tools-2026-09-15"]
    assert "tools" not in build(compat=compat).payload


# --- cache marks ---


@pytest.mark.parametrize(
    ("retention", "compat", "mark"),
    [
        ("none", {}, None),
        ("short", {}, {"type": "ephemeral"}),
        (None, {}, {"type": "ephemeral"}),
        ("long", {}, {"type": "ephemeral", "ttl": "1h"}),
        ("long", {"supportsLongCacheRetention": False}, {"type": "ephemeral"}),
    ],
)
def test_cache_marks(payload: Any, retention: Any, compat: Any, mark: Any) -> None:
    tools = [tool(), Tool("write", "", SCHEMA, lambda arguments, context: None)]
    sent = payload(USER, asked("c1"), answered(), system="s", tools=tools, cache_retention=retention, compat=compat)
    marks = [
        sent["system"][0].get("cache_control"),
        *(entry.get("cache_control") for entry in sent["tools"]),
        sent["messages"][2]["content"][0].get("cache_control"),
    ]
    assert marks == [mark, None, mark, mark]
    assert sent["messages"][0]["content"] == "x"


def test_cache_marks_from_the_environment(payload: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("PI_CACHE_RETENTION", "long")
    [message] = payload(cache_retention=None)["messages"]
    assert message["content"][0]["cache_control"]["ttl"] == "1h"


def test_a_mark_goes_on_what_a_user_said(payload: Any) -> None:
    sent = payload(USER, said(TextContent(text="a")), cache_retention="short")
    assert "cache_control" in sent["messages"][0]["content"][0]
    assert "cache_control" not in sent["messages"][1]["content"][0]


def test_the_history_itself_gets_no_marks(payload: Any) -> None:
    message = UserMessage(content=[TextContent(text="x")])
    payload(message, cache_retention="short")
    assert message.to_json()["content"] == [{"type": "text", "text": "x"}]


# --- headers ---


@pytest.mark.parametrize(
    ("fields", "options", "wanted"),
    [
        ({}, {"session_id": "s"}, {}),
        ({"compat": {"sendSessionAffinityHeaders": True}}, {"session_id": "s"}, {"x-session-affinity": "s"}),
        ({"compat": {"sendSessionAffinityHeaders": True}}, {}, {}),
        ({"provider": "openrouter"}, {"session_id": "s"}, {"x-session-id": "s"}),
        ({"base_url": "https://openrouter.ai/api"}, {"session_id": "s"}, {"x-session-id": "s"}),
        ({"provider": "openrouter"}, {"session_id": "s", "cache_retention": "none"}, {}),
    ],
)
def test_session_headers(model: Any, fields: Any, options: Any, wanted: Any) -> None:
    assert session_headers(compat_of(model(**fields)), StreamOptions(**options)) == wanted


def test_registering_the_plugin_imports_no_http_library() -> None:
    code = (
        "import sys; from pi_plugins.providers.anthropic_messages import AnthropicMessagesPlugin as P;"
        "[provider] = P().register_providers(); assert provider.api == 'anthropic-messages';"
        "print(*sorted({'httpx', 'httpcore', 'anyio', 'h11', 'ssl'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
