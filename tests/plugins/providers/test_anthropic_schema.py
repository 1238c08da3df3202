"""Every request of the messages API is one that the vendor's own schema accepts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

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
    ToolCallContent,
    ToolResultMessage,
    UserMessage,
)
from pi_plugins.providers._anthropic_compat import compat_of
from pi_plugins.providers._anthropic_content import legal_id
from pi_plugins.providers._anthropic_request import build_request
from pi_plugins.providers.anthropic_messages import AnthropicMessagesProvider

from .test_anthropic_wire import DONE
from .vendor_schema import problems
from .wire_cases import WireRunner

PROVIDER = AnthropicMessagesProvider
API = "anthropic-messages"


def as_of_the_schema(body: dict[str, Any]) -> dict[str, Any]:
    """A body without what models newer than the schema understand: threads, fallbacks, efforts between messages."""
    body = {name: value for name, value in body.items() if name not in ("thread", "fallbacks")}
    body["messages"] = [message for message in body["messages"] if "output_config" not in message]
    if "thinking" in body:
        body["thinking"] = {name: value for name, value in body["thinking"].items() if name != "block_binding"}
    return body


def test_requests(wire_case: Path, wire: WireRunner) -> None:
    case = json.loads(wire_case.read_text("utf-8"))
    bodies = wire.sent(case, DONE)
    assert bodies or case.get("no_request")
    for body in bodies:
        assert problems(API, as_of_the_schema(body)) == []


def test_the_schema_refuses() -> None:
    body = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}
    assert problems(API, body) == []
    assert problems(API, {**body, "messages": [{"role": "alien", "content": "x"}]})
    assert problems(API, {**body, "new": 1})
    assert problems(API, {**body, "tools": [{"nme": "x"}]})


# --- histories of every API ---

WRITERS = [
    {"api": API, "provider": "anthropic", "model": "m"},
    {"api": API, "provider": "anthropic", "model": "older"},
    {"api": "openai-completions", "provider": "deepseek", "model": "d"},
    {"api": "openai-responses", "provider": "openai", "model": "g"},
    {"api": "google-generative-ai", "provider": "google", "model": "g"},
]
ids = st.sampled_from(["toolu_1", "call_1|fc_" + "0" * 60, "functions.read:0", "", "0", "é", "x" * 80])
texts = st.sampled_from(["", " ", "said", "half \ud83d"])
signatures = st.sampled_from([None, "", "SIG", "reasoning_content", '{"type":"reasoning","id":"rs_1"}'])
images = st.builds(
    ImageContent, data=st.sampled_from(["AAAA", ""]), mime_type=st.sampled_from(["image/png", "image/bmp"])
)
text_blocks = st.builds(TextContent, text=texts, text_signature=signatures)
said = st.one_of(
    text_blocks,
    st.builds(ThinkingContent, thinking=texts, thinking_signature=signatures, redacted=st.sampled_from([None, True])),
    st.builds(
        ToolCallContent,
        id=ids,
        name=st.sampled_from(["read", "functions.read", ""]),
        arguments=st.sampled_from([{}, {"path": "half \ud83d"}]),
        thought_signature=signatures,
    ),
)


def answer(content: list[Any], writer: dict[str, str], stop: Any) -> AssistantMessage:
    """An answer; what the model itself wrote has ids that its API accepts."""
    if writer is WRITERS[0]:
        content = [
            block.model_copy(update={"id": legal_id(block.id)}) if isinstance(block, ToolCallContent) else block
            for block in content
        ]
    return AssistantMessage(content=content, stop_reason=stop, timestamp=0, **writer)


answers = st.builds(
    answer,
    st.lists(said, max_size=3),
    st.sampled_from(WRITERS),
    st.sampled_from(["stop", "toolUse", "length", "error", "aborted"]),
)
results = st.builds(
    ToolResultMessage,
    tool_call_id=ids,
    tool_name=st.just("read"),
    content=st.lists(text_blocks | images, max_size=2),
    is_error=st.booleans(),
    timestamp=st.just(0),
)
users = st.builds(UserMessage, content=texts | st.lists(text_blocks | images, max_size=2), timestamp=st.just(0))
histories = st.lists(st.one_of(users, answers, answers, results), max_size=10)


@given(histories, st.sampled_from(["none", "long"]), st.sampled_from([["text"], ["text", "image"]]))
def test_any_history_is_accepted(messages: list[Message], retention: Any, sees: Any) -> None:
    model = Model(id="m", api=API, provider="anthropic", base_url="https://api.anthropic.com", input=sees)
    built = build_request(model, compat_of(model), Context("p", messages), StreamOptions(cache_retention=retention))
    # Sent as UTF-8, the text of a lone half of a surrogate pair is cut out.
    body = json.loads(json.dumps(built.payload, ensure_ascii=False).encode("utf-8", "ignore"))
    assert problems(API, body) == []
    waiting: set[str] = set()
    seen: set[str] = set()
    for message in body["messages"]:
        blocks = [] if isinstance(message["content"], str) else message["content"]
        assert message["content"]
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert sorted(answered) == sorted(waiting)
        assert [block["type"] for block in blocks[: len(answered)]] == ["tool_result"] * len(answered)
        asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert len(set(asked)) == len(asked)
        assert not seen & set(asked)
        waiting = set(asked)
        seen |= waiting
        for block in blocks:
            assert block["type"] != "text" or block["text"].strip()
            assert block["type"] != "tool_use" or re.fullmatch("[A-Za-z0-9_-]{1,128}", block["name"])
    assert not waiting
