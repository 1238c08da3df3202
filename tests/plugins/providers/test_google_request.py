"""The request of the Gemini API: what it is made of, and histories that other APIs wrote."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_core import (
    AbortController,
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
from pi_plugins.providers._google_content import build_contents
from pi_plugins.providers._google_request import build_payload, model_path
from pi_plugins.providers.google_generative_ai import GoogleGenerativeAIProvider

PROVIDER = GoogleGenerativeAIProvider
API = "google-generative-ai"
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
NO_SIGNATURE = "skip_thought_signature_validator"


def target(model_id: str = "gemini-2.5-flash", **fields: Any) -> Model:
    given = {"id": model_id, "api": API, "provider": "google", "input": ["text", "image"], **fields}
    return Model.model_validate(given)


def said(
    *content: Any, by: tuple[str, str, str] = ("google", API, "gemini-2.5-flash"), **more: Any
) -> AssistantMessage:
    provider, api, model = by
    return AssistantMessage(content=list(content), provider=provider, api=api, model=model, timestamp=0, **more)


def call(call_id: str = "c1", name: str = "read", **fields: Any) -> ToolCallContent:
    return ToolCallContent(id=call_id, name=name, arguments={"path": "é"}, **fields)


def answered(*content: Any, call_id: str = "c1", name: str = "read", **fields: Any) -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=call_id, tool_name=name, content=list(content), timestamp=0, **fields)


def tool(name: str = "read", **fields: Any) -> Tool:
    return Tool(name, "Reads.", SCHEMA, lambda arguments, context: None, **fields)


def payload(model: Model, *messages: Message, tools: list[Tool] | None = None, **options: Any) -> dict[str, Any]:
    return build_payload(
        model, Context("", messages or [UserMessage(content="x")], tools or []), StreamOptions(**options)
    )


# --- address and key ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model_id", "path"),
    [
        ("gemini-2.5-flash", "models/gemini-2.5-flash"),
        ("models/gemini-2.5-flash", "models/gemini-2.5-flash"),
        ("tunedModels/mine", "tunedModels/mine"),
        ("qwen:1.5b?x#y", "models/qwen:1.5b%3Fx%23y"),
    ],
)
def test_path_of_a_model(model_id: str, path: str) -> None:
    assert model_path(target(model_id)) == path


def test_key_and_address(play: Any, reply: Any) -> None:
    body = b'data: {"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}]}\n\n'
    events, server = play(reply([body]), api_key=" k ")
    assert events[-1].type == "done"
    [request] = server.requests
    assert request.path == "/v1/models/test-model:streamGenerateContent?alt=sse"
    assert request.headers["x-goog-api-key"] == "k"
    _, server = play(reply([body]))
    assert "x-goog-api-key" not in server.requests[0].headers


def test_callbacks_see_request_and_response(play: Any, reply: Any) -> None:
    seen: list[Any] = []

    def respond(response: Any, model: Model) -> None:
        seen.append((response.status, model.id))

    def more(body: Any, model: Model) -> Any:
        return body | {"safetySettings": []}

    body = b'data: {"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}]}\n\n'
    _, server = play(reply([body]), on_payload=more, on_response=respond)
    assert server.requests[0].json == {
        "contents": [{"parts": [{"text": "x"}], "role": "user"}],
        "generationConfig": {},
        "safetySettings": [],
    }
    assert seen == [(200, "test-model")]


def test_abort_closes_the_socket_and_keeps_the_text(serve: Any, reply: Any, model: Any) -> None:
    piece = b'data: {"candidates":[{"content":{"parts":[{"text":"so far"}]}}]}\r\n\r\ndata: {"candid'

    async def go() -> list[Any]:
        async with serve(reply([piece], then="stall")) as server:
            controller = AbortController()
            options = StreamOptions(signal=controller.signal)
            context = Context(messages=[UserMessage(content="x")])
            events = []
            async for event in PROVIDER().stream(model(base_url=server.url), context, options):
                events.append(event)
                if event.type == "text_delta":
                    controller.abort()
            await asyncio.wait_for(server.gone.wait(), 5)
            return events

    events = asyncio.run(go())
    assert [event.type for event in events] == ["start", "text_start", "text_delta", "error"]
    message = events[-1].message
    assert (message.text, message.stop_reason, message.error_message) == ("so far", "aborted", "Request was aborted")


# --- tools --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "calling"),
    [
        (None, None),
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("any", {"mode": "ANY"}),
        ("required", {"mode": "ANY"}),
        ({"type": "tool", "name": "read"}, {"mode": "ANY", "allowedFunctionNames": ["read"]}),
        ({"type": "function", "function": {"name": "read"}}, {"mode": "ANY", "allowedFunctionNames": ["read"]}),
        ({"type": "auto"}, None),
    ],
)
def test_tool_choice(choice: Any, calling: Any) -> None:
    sent = payload(target(), tools=[tool()], tool_choice=choice)
    assert sent.get("toolConfig") == (None if calling is None else {"functionCallingConfig": calling})
    assert "toolConfig" not in payload(target(), tool_choice=choice)


@pytest.mark.parametrize(
    ("choice", "mode"), [(None, "VALIDATED"), ("auto", "VALIDATED"), ("none", "NONE"), ("any", "ANY")]
)
def test_strict_tools_are_validated(choice: Any, mode: str) -> None:
    strict = tool(constrained_sampling={"type": "json_schema", "strict": "require"})
    for model in (target("gemini-3-flash"), target(compat={"supportsStrictMode": True})):
        sent = payload(model, tools=[tool("other"), strict], tool_choice=choice)
        assert sent["toolConfig"] == {"functionCallingConfig": {"mode": mode}}
        declared = sent["tools"][0]["functionDeclarations"]
        assert [part["parametersJsonSchema"].get("additionalProperties") for part in declared] == [None, False]


def test_strict_tools_that_cannot_be() -> None:
    strict = tool(constrained_sampling={"type": "json_schema", "strict": "require"})
    for model in (target(), target("gemini-3-flash", compat={"supportsStrictMode": False})):
        with pytest.raises(ValueError, match="strict tools are unsupported"):
            payload(model, tools=[strict])
    wished = tool(constrained_sampling={"type": "json_schema", "strict": "prefer"})
    assert "toolConfig" not in payload(target(), tools=[wished])


# --- thinking -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model_id", "levels"),
    [
        ("gemini-3-pro-preview", ["LOW", "LOW", "LOW", "HIGH", "HIGH"]),
        ("gemini-3.1-pro-preview", ["LOW", "LOW", "LOW", "MEDIUM", "HIGH"]),
        ("gemini-3-flash", ["MINIMAL", "MINIMAL", "LOW", "MEDIUM", "HIGH"]),
        ("gemini-flash-latest", ["MINIMAL", "MINIMAL", "LOW", "MEDIUM", "HIGH"]),
        ("models/gemini-flash-lite-latest", ["MINIMAL", "MINIMAL", "LOW", "MEDIUM", "HIGH"]),
        ("gemini-4-nano", ["MINIMAL", "MINIMAL", "LOW", "MEDIUM", "HIGH"]),
        ("gemma-4-31b", ["MINIMAL", "MINIMAL", "MINIMAL", "HIGH", "HIGH"]),
        ("gemini-2.5-pro", [0, 128, 2048, 8192, 32768]),
        ("gemini-2.5-flash", [0, 128, 2048, 8192, 24576]),
        ("gemini-2.5-flash-lite", [0, 512, 2048, 8192, 24576]),
        ("gemini-3-image", [0, -1, -1, -1, -1]),
        ("other", [0, -1, -1, -1, -1]),
    ],
)
def test_how_much_to_think(model_id: str, levels: list[Any]) -> None:
    model = target(model_id, reasoning=True)
    for level, wanted in zip((None, "minimal", "low", "medium", "high"), levels, strict=True):
        config = payload(model, reasoning=level)["generationConfig"]["thinkingConfig"]
        assert config.pop("includeThoughts", False) == (level is not None)
        assert list(config.values()) == [wanted]
        assert list(config) == ["thinkingBudget" if isinstance(wanted, int) else "thinkingLevel"]
    assert "thinkingConfig" not in payload(target(model_id), reasoning="high")["generationConfig"]


def test_levels_a_model_names_itself() -> None:
    words = {"off": None, "minimal": None, "low": "minimal", "xhigh": "high", "max": "extreme"}
    model = target("gemma-4-31b", reasoning=True, thinking_level_map=words)

    def level(wish: Any) -> Any:
        return payload(model, reasoning=wish)["generationConfig"]["thinkingConfig"]["thinkingLevel"]

    assert [level(wish) for wish in (None, "minimal", "xhigh", "max")] == ["MINIMAL", "MINIMAL", "HIGH", "HIGH"]
    budgets = target("gemini-2.5-pro", reasoning=True, thinking_level_map=words)
    sent = payload(budgets, reasoning="xhigh", thinking_budgets={"high": 7})
    assert sent["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 7


# --- contents -----------------------------------------------------------------------------------------------------


def test_blocks_that_say_nothing() -> None:
    own = said(
        ThinkingContent(thinking=" ", thinking_signature="not base64!"),
        ThinkingContent(thinking="", thinking_signature="AAAA"),
        ThinkingContent(thinking="t", thinking_signature="AAA"),
        TextContent(text="  "),
        TextContent(text="a", text_signature="BBBB"),
    )
    [turn] = build_contents([own], target())
    assert turn["parts"] == [
        {"text": "", "thought": True, "thoughtSignature": "AAAA"},
        {"text": "t", "thought": True},
        {"text": "a", "thoughtSignature": "BBBB"},
    ]
    silent = said(TextContent(text=""), ThinkingContent(thinking=""))
    assert build_contents([UserMessage(content="x"), silent, UserMessage(content=[])], target()) == [
        {"parts": [{"text": "x"}], "role": "user"}
    ]


@pytest.mark.parametrize(
    "by",
    [
        ("anthropic", "anthropic-messages", "claude"),
        ("openai", "openai-responses", "gpt-5"),
        ("openrouter", "openai-completions", "google/gemini-3-pro"),
        ("google", API, "gemini-2.5-pro"),
    ],
)
def test_what_another_model_wrote(by: tuple[str, str, str]) -> None:
    first, second = f"call_1|fc_{'x' * 80}+/=", f"call_2|fc_{'x' * 80}+/="
    history = [
        said(
            ThinkingContent(thinking="secret", thinking_signature="AAAA"),
            ThinkingContent(thinking="", thinking_signature="BBBB", redacted=True),
            TextContent(text="Looking", text_signature="CCCC"),
            call(first, thought_signature="DDDD"),
            call(second, "not a name"),
            by=by,
        ),
        answered(TextContent(text="B"), call_id=second, name="not a name"),
        answered(TextContent(text="A"), call_id=first),
    ]
    ids: list[list[str]] = []
    for model_id, has_ids in (("gemini-2.5-flash", False), ("gemini-3-pro-preview", True)):
        turn, results = build_contents(history, target(model_id))
        text, *calls = turn["parts"]
        assert text == {"text": "Looking"}
        assert [part["functionCall"]["name"] for part in calls] == ["read", "not_a_name"]
        answers = [part["functionResponse"] for part in results["parts"]]
        assert [(answer["name"], answer["response"]["output"]) for answer in answers] == [
            ("read", "A"),
            ("not_a_name", "B"),
        ]
        signatures = [part.get("thoughtSignature") for part in calls]
        # Gemini 3 refuses calls nobody signed, unless they say that they come from elsewhere.
        assert signatures == ([NO_SIGNATURE, None] if has_ids else [None, None])
        ids = [[part["functionCall"].get("id") for part in calls], [answer.get("id") for answer in answers]]
        assert ids[0] == ids[1]
        if has_ids:
            assert len(set(ids[0])) == 2
            assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", call_id) for call_id in ids[0])
        else:
            assert ids[0] == [None, None]


def test_own_calls_keep_ids_and_signatures() -> None:
    model = target("gemini-3-pro-preview")
    by = ("google", API, model.id)
    turn, _ = build_contents([said(call("any thing", thought_signature="AAAA"), call("c2"), by=by)], model)
    assert [part.get("thoughtSignature") for part in turn["parts"]] == ["AAAA", None]
    assert [part["functionCall"]["id"] for part in turn["parts"]] == ["any thing", "c2"]


def test_calls_without_a_name_or_an_id() -> None:
    by = ("local", "openai-completions", "m")
    turn, results = build_contents([said(call("", ""), by=by), answered(call_id="", name="")], target("gemini-3-pro"))
    assert turn["parts"][0]["functionCall"] == {"args": {"path": "é"}, "name": "unknown", "id": "call"}
    assert results["parts"][0]["functionResponse"] == {"name": "unknown", "response": {"output": ""}, "id": "call"}


def test_failed_turns_and_lonely_results() -> None:
    history = [
        answered(TextContent(text="lost"), call_id="z"),
        said(call("a"), stop_reason="error", error_message="boom"),
        answered(TextContent(text="late"), call_id="a"),
        said(call("b")),
        UserMessage(content="go on"),
    ]
    turn, result, user = build_contents(history, target())
    assert turn["parts"][0]["functionCall"]["name"] == "read"
    assert result["parts"] == [{"functionResponse": {"name": "read", "response": {"error": "No result provided"}}}]
    assert user["parts"] == [{"text": "go on"}]


def test_images() -> None:
    png = ImageContent(data=PNG, mime_type="image/jpg")
    gif = ImageContent(data="R0lGODlhAQABAAAAACw=", mime_type="image/png")
    [turn] = build_contents([UserMessage(content=[png, gif])], target())
    assert turn["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": PNG}},
        {"text": "(image omitted: image/gif is not supported)"},
    ]
    history = [said(call("a"), call("b")), answered(png, call_id="a"), answered(png, call_id="b", is_error=True)]
    old = build_contents(history, target())
    assert [turn["role"] for turn in old] == ["model", "user", "user", "user", "user"]
    new = build_contents(history, target("gemini-3-flash"))
    assert len(new) == 2
    first, second = (part["functionResponse"] for part in new[1]["parts"])
    assert first["response"] == {"output": "(see attached image)"}
    assert second["response"] == {"error": "(see attached image)"}
    assert first["parts"] == [{"inlineData": {"mimeType": "image/png", "data": PNG}}]


def test_halves_of_characters_are_not_sent() -> None:
    bad = call()
    bad = bad.model_copy(update={"arguments": {"a\ud800": ["\ud83d\ude48", "b\udc00"]}})
    turn, _ = build_contents([said(bad, TextContent(text="c\ud800"))], target())
    assert turn["parts"][0]["functionCall"]["args"] == {"a": ["\U0001f648", "b"]}
    assert turn["parts"][1] == {"text": "c"}


writers = st.sampled_from(
    [("google", API, "gemini-2.5-flash"), ("google", API, "gemini-3-pro"), ("anthropic", "anthropic-messages", "c")]
)
ids = st.sampled_from(["0", "a", "a|b", "functions.read:0", "x" * 70, "x" * 71, ""])
blocks = st.one_of(
    ids.map(call),
    st.sampled_from([TextContent(text="t"), TextContent(text=""), TextContent(text="", text_signature="AAAA")]),
    st.sampled_from([ThinkingContent(thinking="h", thinking_signature="AAAA"), ThinkingContent(thinking="h")]),
)
any_message = st.one_of(
    st.just(UserMessage(content="x", timestamp=0)),
    ids.map(lambda call_id: answered(TextContent(text="r"), call_id=call_id)),
    st.builds(
        lambda content, by, stop: said(*content, by=by, stop_reason=stop),
        st.lists(blocks, max_size=4),
        writers,
        st.sampled_from(["stop", "toolUse", "error", "aborted", "length"]),
    ),
)


@given(st.lists(any_message, max_size=10), st.sampled_from(["gemini-2.5-flash", "gemini-3-pro"]))
def test_calls_are_answered_in_the_next_turn(messages: list[Message], model_id: str) -> None:
    contents = build_contents(messages, target(model_id))
    waiting: list[dict[str, Any]] = []
    for turn in contents:
        assert turn["parts"]
        answers = [part["functionResponse"] for part in turn["parts"] if "functionResponse" in part]
        assert [(answer["name"], answer.get("id")) for answer in answers] == [
            (asked["name"], asked.get("id")) for asked in waiting
        ]
        waiting = [part["functionCall"] for part in turn["parts"] if "functionCall" in part]
        assert turn["role"] == ("model" if waiting or turn["role"] == "model" else "user")
        signed = [part.get("thoughtSignature") for part in turn["parts"] if "functionCall" in part]
        assert NO_SIGNATURE not in signed[1:]
    assert not waiting
