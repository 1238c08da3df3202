"""Messages and their JSON form."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pi_core import (
    AssistantMessage,
    CustomMessage,
    ErrorDetails,
    ImageContent,
    OpaqueContent,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultMessage,
    Usage,
    UserMessage,
    now_ms,
    parse_message,
    user_message,
)
from pi_core.messages import custom_role

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
EXTRA = st.dictionaries(st.sampled_from(["someField", "x", "newThing"]), JSON, max_size=2)
TEXT = st.builds(lambda text, extra: {"type": "text", "text": text, **extra}, st.text(max_size=5), EXTRA)
IMAGE = st.just({"type": "image", "data": "QUJD", "mimeType": "image/png"})
UNKNOWN = st.builds(lambda extra: {"type": "video", **extra}, EXTRA)
CALL = st.builds(
    lambda arguments: {"type": "toolCall", "id": "c", "name": "n", "arguments": arguments, "thoughtSignature": "s"},
    st.dictionaries(st.text(max_size=5), JSON, max_size=3),
)
THINKING = st.just({"type": "thinking", "thinking": "", "thinkingSignature": "enc", "redacted": True})
USAGE = {
    "input": 1,
    "output": 2,
    "cacheRead": 0,
    "cacheWrite": 3,
    "cacheWrite1h": 1,
    "totalTokens": 6,
    "cost": {"input": 0.5, "output": 0.0, "cacheRead": 0.0, "cacheWrite": 0.0, "total": 0.5, "totalFromProvider": True},
}
MESSAGE = st.one_of(
    st.builds(
        lambda content, extra: {"role": "user", "content": content, "timestamp": 1, **extra},
        st.text(max_size=5) | st.lists(TEXT | IMAGE | UNKNOWN, max_size=3),
        EXTRA,
    ),
    st.builds(
        lambda content, extra: {
            "role": "assistant",
            "content": content,
            "api": "a",
            "provider": "p",
            "model": "m",
            "usage": USAGE,
            "stopReason": "error",
            "responseId": "r",
            "errorMessage": "no",
            "errorDetails": {"status": 529, "retryAfterMs": 10, "theirs": None},
            "timestamp": 1,
            **extra,
        },
        st.lists(TEXT | THINKING | CALL | UNKNOWN, max_size=4),
        EXTRA,
    ),
    st.builds(
        lambda content, details, extra: {
            "role": "toolResult",
            "toolCallId": "c",
            "toolName": "n",
            "content": content,
            **({} if details is None else {"details": details}),
            "isError": False,
            "durationMs": 0,
            "timestamp": 1,
            **extra,
        },
        st.lists(TEXT | IMAGE, max_size=2),
        JSON,
        EXTRA,
    ),
    st.builds(lambda extra: {"role": "note", "timestamp": 1, **extra}, EXTRA),
)


@given(MESSAGE)
def test_the_json_form_survives_a_round_trip(data: dict[str, Any]) -> None:
    message = parse_message(data)
    assert message.to_json() == data
    assert parse_message(message.to_json()) == message


class Note(CustomMessage):
    role: Literal["note"] = "note"
    text: str


def test_roles() -> None:
    assert isinstance(parse_message({"role": "user", "content": "hi"}), UserMessage)
    note = {"role": "note", "text": "x", "timestamp": 1}
    assert type(parse_message(note)) is CustomMessage
    assert parse_message(note, {"note": Note}) == Note(text="x", timestamp=1)
    assert list(parse_message(note).to_llm()) == []  # type: ignore[union-attr]
    assert custom_role(Note) == "note"
    with pytest.raises(TypeError, match="needs a role of its own"):
        custom_role(CustomMessage)


@pytest.mark.parametrize(
    "data",
    [
        {"role": "user"},
        {"role": "assistant", "content": [], "api": "a", "provider": "p"},
        {"role": "toolResult", "content": [], "toolCallId": "c"},
        {"role": "user", "content": [{"type": "text"}]},
        {"role": "assistant", "content": [{"type": "toolCall", "id": "c"}], "api": "a", "provider": "p", "model": "m"},
        {"role": ""},
        {"role": 3},
        {},
    ],
)
def test_a_malformed_message_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        parse_message(data)


def test_a_role_of_a_built_in_message_is_not_for_custom_ones() -> None:
    with pytest.raises(ValidationError, match="malformed message of role 'user'"):
        CustomMessage(role="user")


def test_a_block_of_an_unknown_type_is_kept_and_a_malformed_one_refused() -> None:
    message = UserMessage.model_validate({"content": [{"type": "video", "url": "u", "cut": None}]})
    [block] = message.content
    assert isinstance(block, OpaqueContent)
    assert block.to_json() == {"type": "video", "url": "u", "cut": None}  # type: ignore[union-attr]
    with pytest.raises(ValidationError, match="malformed image block"):
        UserMessage.model_validate({"content": [{"type": "image", "data": "QUJD"}]})


def test_messages_are_frozen() -> None:
    message = user_message("hi")
    with pytest.raises(ValidationError, match="frozen"):
        message.content = "changed"  # type: ignore[misc]


def test_messages_of_one_shape_share_the_set_of_their_fields() -> None:
    one, other = user_message("one"), user_message("other")
    assert one.model_fields_set is other.model_fields_set
    assert one.content[0].model_fields_set is other.content[0].model_fields_set  # type: ignore[union-attr]


def test_a_changed_copy_has_a_set_of_fields_of_its_own() -> None:
    message = user_message("one")
    assert message.model_copy(update={"timestamp": 1}).model_fields_set == {"content", "timestamp"}
    assert message.model_fields_set == {"content"}


def test_what_json_cannot_hold_becomes_text() -> None:
    class Handle:
        def __repr__(self) -> str:
            return "<handle 7>"

    details = {"path": Path("/tmp/x"), "handle": Handle(), "nothing": None, "set": {1}}
    message = ToolResultMessage(tool_call_id="c", tool_name="t", content=[], details=details)
    assert message.to_json()["details"] == {"path": "/tmp/x", "handle": "<handle 7>", "nothing": None, "set": [1]}


def test_parts_of_a_response() -> None:
    call = ToolCallContent(id="c", name="t", arguments={"a": 1})
    message = AssistantMessage(
        content=[ThinkingContent(thinking="hm"), TextContent(text="a"), call, TextContent(text="b")],
        api="a",
        provider="p",
        model="m",
        error_details=ErrorDetails(status=429, retryable=True),
    )
    assert message.text == "ab"
    assert message.tool_calls == [call]
    assert message.usage == Usage()
    assert message.to_json()["errorDetails"] == {"status": 429, "retryable": True}


def test_the_message_of_a_prompt() -> None:
    before = now_ms()
    image = ImageContent(data="QUJD", mime_type="image/png")
    message = user_message("look", [image])
    assert message.content == [TextContent(text="look"), image]
    assert before <= message.timestamp <= now_ms()


def test_what_people_read() -> None:
    class Shown(CustomMessage):
        role: Literal["shown"] = "shown"
        body: str

        def to_text(self) -> str:
            return self.body

    assert Shown(body="Hello.").to_text() == "Hello."
    opaque = parse_message(Shown(body="Höflich").to_json())
    assert isinstance(opaque, CustomMessage)
    assert opaque.to_text() == '[shown] {"body": "Höflich"}'
    assert CustomMessage(role="bare").to_text() == "[bare]"
