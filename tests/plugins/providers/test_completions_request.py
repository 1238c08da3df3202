"""The request of the chat completions API: the switches of servers that differ."""

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
from pi_plugins.providers import _headers
from pi_plugins.providers._completions_compat import compat_of
from pi_plugins.providers._completions_request import build_payload, session_headers
from pi_plugins.providers._strict_schema import strict_schema

IMAGE = ImageContent(data="AAAA", mime_type="image/png")
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def said(*content: Any, **fields: Any) -> AssistantMessage:
    given = {"api": "openai-completions", "provider": "local", "model": "test-model", **fields}
    return AssistantMessage(content=list(content), **given)


def asked(call_id: str = "c1", **fields: Any) -> AssistantMessage:
    return said(ToolCallContent(id=call_id, name="read", arguments={"path": "é"}, **fields))


def answered(*content: Any, call_id: str = "c1") -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=call_id, tool_name="read", content=list(content))


@pytest.fixture
def payload(model: Any) -> Any:
    def build(
        messages: list[Message], compat: dict[str, Any] | None = None, tools: list[Tool] | None = None, **given: Any
    ) -> dict[str, Any]:
        names = StreamOptions.__dataclass_fields__
        options = StreamOptions(**{name: value for name, value in given.items() if name in names})
        fields = {name: value for name, value in given.items() if name not in names}
        target = model(compat=compat, input=["text", "image"], **fields)
        return build_payload(target, compat_of(target), Context("", messages, tools or []), options)

    return build


USER = UserMessage(content="x")


def test_thoughts_go_back_where_they_came_from(payload: Any) -> None:
    message = said(
        ThinkingContent(thinking="a", thinking_signature="reasoning"),
        ThinkingContent(thinking="b", thinking_signature="reasoning"),
        ThinkingContent(thinking="c", thinking_signature='[{"type":"reasoning.text","text":"c"}]'),
        ThinkingContent(thinking="d", thinking_signature="[broken"),
        ThinkingContent(thinking="e", thinking_signature="[3]"),
        ThinkingContent(thinking="f"),
        TextContent(text="t"),
    )
    [sent] = payload([message])["messages"]
    assert sent == {
        "role": "assistant",
        "content": "t",
        "reasoning": "a\nb",
        "reasoning_details": [{"type": "reasoning.text", "text": "c"}],
    }


def test_thoughts_as_text(payload: Any) -> None:
    thoughts = [ThinkingContent(thinking="a"), ThinkingContent(thinking="b", thinking_signature="reasoning")]
    compat = {"requiresThinkingAsText": True}
    history = [said(*thoughts, TextContent(text="t")), said(*thoughts, *asked().content), answered()]
    first, second, _ = payload(history, compat)["messages"]
    assert first["content"] == [{"type": "text", "text": "a\n\nb"}, {"type": "text", "text": "t"}]
    assert second["content"] == [{"type": "text", "text": "a\n\nb"}]
    assert "reasoning" not in first


def test_message_of_thoughts_alone_is_left_out(payload: Any) -> None:
    assert payload([said(ThinkingContent(thinking="a", thinking_signature="reasoning"))])["messages"] == []


def test_fillers_that_some_servers_need(payload: Any) -> None:
    history = [asked(), answered(TextContent(text="r")), USER]
    assert payload(history)["messages"][0]["content"] is None
    sent = payload(history, {"requiresNonNullAssistantContent": True})["messages"]
    assert sent[0]["content"] == ""
    sent = payload(history, {"requiresReasoningContentOnAssistantMessages": True})["messages"]
    assert sent[0]["reasoning_content"] == ""
    sent = payload(history, {"requiresToolResultName": True})["messages"]
    assert sent[1]["name"] == "read"
    sent = payload(history, {"requiresAssistantAfterToolResult": True})["messages"]
    assert [message["role"] for message in sent] == ["assistant", "tool", "assistant", "user"]
    pictured = [asked(), answered(IMAGE), USER]
    sent = payload(pictured, {"requiresAssistantAfterToolResult": True})["messages"]
    assert [message["role"] for message in sent] == ["assistant", "tool", "assistant", "user", "assistant", "user"]
    assert sent[1]["content"] == "(see attached image)"


def test_images_of_several_results_follow_together(payload: Any) -> None:
    first = said(*asked("a").content, *asked("b").content)
    sent = payload([first, answered(IMAGE, call_id="a"), answered(IMAGE, TextContent(text="r"), call_id="b"), USER])
    assert [message["role"] for message in sent["messages"]] == ["assistant", "tool", "tool", "user", "user"]
    assert len(sent["messages"][3]["content"]) == 3


def test_signature_of_a_call_goes_back(payload: Any) -> None:
    [call] = payload([asked(thought_signature="SIG"), answered()])["messages"][0]["tool_calls"]
    assert call["extra_content"] == {"google": {"thought_signature": "SIG"}}
    assert call["function"]["arguments"] == '{"path":"é"}'
    [foreign] = payload([asked(thought_signature="SIG").model_copy(update={"model": "other"})])["messages"][0][
        "tool_calls"
    ]
    assert "extra_content" not in foreign


def test_half_characters_are_never_sent(payload: Any) -> None:
    call = ToolCallContent(id="c", name="read", arguments={"\ud800k": ["v\udc00"]})
    sent = payload([said(TextContent(text="a\ud800"), call), answered(TextContent(text="\udc00b"), call_id="c")])
    assert sent["messages"][0]["content"] == "a"
    assert sent["messages"][0]["tool_calls"][0]["function"]["arguments"] == '{"k":["v"]}'
    assert sent["messages"][1]["content"] == "b"


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("any", "required"),
        ({"type": "tool", "name": "read"}, {"type": "function", "function": {"name": "read"}}),
        ({"type": "function", "function": {"name": "read"}}, {"type": "function", "function": {"name": "read"}}),
    ],
)
def test_tool_choice(payload: Any, choice: Any, sent: Any) -> None:
    tools = [Tool("read", "", SCHEMA, print)]
    assert payload([USER], tools=tools, tool_choice=choice)["tool_choice"] == sent
    assert "tool_choice" not in payload([USER], tool_choice=choice)


def test_strict_tools(payload: Any) -> None:
    wish = {"type": "json_schema", "strict": "prefer"}
    tools = [Tool("read", "", SCHEMA, print, constrained_sampling=wish), Tool("ls", "", SCHEMA, print)]
    sent = payload([USER], {"supportsStrictMode": True}, tools)["tools"]
    assert [tool["function"]["strict"] for tool in sent] == [True, False]
    assert sent[0]["function"]["parameters"]["additionalProperties"] is False


def test_strict_arrays() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {}}}}}
    [items, null] = strict_schema(schema)["properties"]["a"]["anyOf"]
    assert items["items"] == {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    assert null == {"type": "null"}
    with pytest.raises(ValueError, match="must be objects"):
        strict_schema({"type": "object", "properties": {"a": True}})
    for union in (["object", "null"], ["array", "string"]):
        with pytest.raises(ValueError, match="unions"):
            strict_schema({"type": "object", "properties": {"a": {"type": union}}})


def test_grammars(payload: Any) -> None:
    compat = {"supportsOpenAIGrammarTools": True}
    regex = {"type": "grammar", "variants": {"openai_regex": "[a-z]+"}}
    [sent] = payload([USER], compat, [Tool("p", "", SCHEMA, print, constrained_sampling=regex)])["tools"]
    assert sent["custom"]["format"] == {"type": "grammar", "grammar": {"syntax": "regex", "definition": "[a-z]+"}}
    other = {"type": "grammar", "variants": {"someone_else": "x"}}
    [sent] = payload([USER], compat, [Tool("p", "", SCHEMA, print, constrained_sampling=other)])["tools"]
    assert sent["type"] == "function"
    optional = {"type": "object", "properties": {"path": {"type": "string"}}}
    with pytest.raises(ValueError, match="exactly one required string parameter"):
        payload([USER], compat, [Tool("p", "", optional, print, constrained_sampling=regex)])


def test_session(payload: Any, model: Any) -> None:
    long_id = "é" * 70
    sent = payload([USER], {"promptCacheKeyMode": "enabled"}, session_id=long_id)
    assert sent["prompt_cache_key"] == "é" * 64
    assert "prompt_cache_key" not in payload(
        [USER], {"promptCacheKeyMode": "disabled"}, session_id="s", cache_retention="long"
    )
    styles = {
        True: ["session_id", "x-client-request-id", "x-session-affinity"],
        "openai": ["session_id", "x-client-request-id", "x-session-affinity"],
        "openai-nosession": ["x-client-request-id", "x-session-affinity"],
        "openrouter": ["x-session-id"],
        False: [],
    }
    for style, names in styles.items():
        compat = compat_of(model(compat={"sendSessionAffinityHeaders": style}))
        assert session_headers(compat, StreamOptions(session_id="s")) == dict.fromkeys(names, "s")
        assert session_headers(compat, StreamOptions(session_id="s", cache_retention="none")) == {}
        assert session_headers(compat, StreamOptions()) == {}


def test_retention_from_the_environment(payload: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_CACHE_RETENTION", "long")
    assert payload([USER])["prompt_cache_retention"] == "24h"
    assert "prompt_cache_retention" not in payload([USER], cache_retention="short")
    monkeypatch.delenv("PI_CACHE_RETENTION")
    assert payload([USER], env={"PI_CACHE_RETENTION": "long"})["prompt_cache_retention"] == "24h"


def test_cache_marks(payload: Any) -> None:
    compat = {"cacheControlFormat": "anthropic"}
    mark = {"type": "ephemeral"}
    sent = payload([USER, asked(), answered(TextContent(text="r"))], compat)
    assert sent["messages"][-1]["content"] == [{"type": "text", "text": "r", "cache_control": mark}]
    sent = payload([UserMessage(content=[TextContent(text="a"), TextContent(text="b"), IMAGE])], compat)
    assert [part.get("cache_control") for part in sent["messages"][0]["content"]] == [None, mark, None]
    assert "cache_control" not in str(payload([USER], compat, cache_retention="none"))


def test_routing_and_extras(payload: Any) -> None:
    compat = {
        "openRouterRouting": {"order": ["a"]},
        "vercelGatewayRouting": {"only": ["b"], "order": [], "other": 1},
        "vllmPriority": 3,
        "zaiToolStream": True,
        "supportsUsageInStreaming": False,
        "unknownSwitch": True,
    }
    sent = payload([USER], compat, [Tool("read", "", SCHEMA, print)])
    assert sent["provider"] == {"order": ["a"]}
    assert sent["providerOptions"] == {"gateway": {"only": ["b"]}}
    assert (sent["priority"], sent["tool_stream"]) == (3, True)
    assert "stream_options" not in sent


def test_most_tokens(payload: Any) -> None:
    assert "max_completion_tokens" not in payload([USER])
    assert payload([USER], max_tokens=5)["max_completion_tokens"] == 5
    assert payload([USER], max_tokens=50, maxTokens=20)["max_completion_tokens"] == 20
    assert payload([USER], maxTokens=20, contextWindow=1)["max_completion_tokens"] == 1


@pytest.mark.parametrize(
    ("style", "level", "words", "fields"),
    [
        (
            "zai",
            "high",
            {"high": "H"},
            {"thinking": {"type": "enabled", "clear_thinking": False}, "reasoning_effort": "H"},
        ),
        ("deepseek", None, {"off": None}, {}),
        ("deepseek", "low", {}, {"thinking": {"type": "enabled"}, "reasoning_effort": "low"}),
        ("qwen", "low", {}, {"enable_thinking": True, "reasoning_effort": "low"}),
        (
            "qwen-chat-template",
            "low",
            {},
            {"chat_template_kwargs": {"enable_thinking": True, "preserve_thinking": True}},
        ),
        ("together", "low", {}, {"reasoning": {"enabled": True}, "reasoning_effort": "low"}),
        ("together", None, {}, {"reasoning": {"enabled": False}}),
        ("openrouter", None, {"off": None}, {}),
        ("string-thinking", "low", {}, {"thinking": "low"}),
        ("string-thinking", None, {"off": None}, {}),
        ("qwen", None, {}, {"enable_thinking": False}),
        ("baseten", "low", {}, {"chat_template_args": {"enable_thinking": True}, "reasoning_effort": "low"}),
        ("chat-template", None, {}, {"chat_template_kwargs": {"on": False, "effort": "none"}}),
        ("openai", None, {"off": None}, {}),
        ("ant-ling", None, {"low": "l"}, {}),
    ],
)
def test_thinking_formats(model: Any, style: str, level: Any, words: Any, fields: dict[str, Any]) -> None:
    template = {
        "on": {"$var": "thinking.enabled"},
        "effort": {"$var": "thinking.effort"},
        "budget": {"$var": "thinking.budget"},
        "gone": {"$var": "thinking.effort", "omitWhenOff": True},
    }
    compat = {"thinkingFormat": style, "chatTemplateKwargs": template}
    target = model(compat=compat, reasoning=True, thinkingLevelMap=words)
    sent = build_payload(target, compat_of(target), Context(), StreamOptions(reasoning=level))
    usual = ("model", "messages", "stream", "stream_options", "store")
    assert {name: value for name, value in sent.items() if name not in usual} == fields


def test_budgets_of_the_caller(model: Any) -> None:
    target = model(compat={"thinkingTokenBudgetField": "thinking_budget"}, reasoning=True)
    options = StreamOptions(reasoning="low", thinking_budgets={"low": 77})
    assert build_payload(target, compat_of(target), Context(), options)["thinking_budget"] == 77


def test_user_agent_without_an_installed_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata

    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    _headers._user_agent.cache_clear()
    try:
        assert (_headers.default_headers()["user-agent"] or "").startswith("pi/dev (")
    finally:
        _headers._user_agent.cache_clear()


def test_registering_the_plugin_imports_no_http_library() -> None:
    code = (
        "import sys; from pi_plugins.providers.openai_completions import OpenAICompletionsPlugin as P;"
        "[provider] = P().register_providers(); assert provider.api == 'openai-completions';"
        "print(*sorted({'httpx', 'httpcore', 'anyio', 'h11', 'ssl'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
