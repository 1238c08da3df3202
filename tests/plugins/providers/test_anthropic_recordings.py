"""Real traffic of the messages API, from a folder given with ``--recordings-dir``, as the official SDK reads it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pi_core import AssistantMessage, ThinkingContent
from pi_plugins.providers._errors import is_overflow
from pi_plugins.providers.anthropic_messages import AnthropicMessagesProvider

from .recorded import Replay

PROVIDER = AnthropicMessagesProvider
OVERFLOW = re.compile("prompt is too long|exceed context limit")
RETRYABLE = frozenset({408, 409, 429, 500, 502, 503, 504, 529})


def _check(recording: dict[str, Any], message: AssistantMessage) -> None:
    expected = recording["expected"]
    assert message.text == expected["text"]
    thoughts = [block for block in message.content if isinstance(block, ThinkingContent)]
    assert "".join(block.thinking for block in thoughts if not block.redacted) == expected["thinking"]
    signatures = [block.thinking_signature for block in thoughts if not block.redacted and block.thinking_signature]
    assert signatures == expected.get("thinking_signatures", [])
    redacted = [block for block in thoughts if block.redacted]
    assert len(redacted) == expected.get("redacted_thinking_blocks", 0)
    assert all(block.thinking_signature for block in redacted)
    given = [(call.id, call.name, call.arguments) for call in message.tool_calls]
    assert given == [(call["id"], call["name"], call["arguments"] or {}) for call in expected["tool_calls"]]
    for call, wanted in zip(message.tool_calls, expected["tool_calls"], strict=True):
        if wanted.get("arguments_status") == "invalid_json":
            assert (call.arguments_error or "").endswith(wanted["arguments_raw"])
        else:
            assert call.arguments_error is None
    assert message.raw_stop_reason == expected["stop_reason"]
    if error := expected.get("error"):
        assert message.stop_reason == "error"
        assert error["body"]["error"]["message"] in (message.error_message or "")
        assert message.error_details is not None
        assert message.error_details.type == error["body"]["error"]["type"]
    elif expected["stop_reason"] == "refusal":
        assert message.stop_reason == "error"
    else:
        assert message.stop_reason in ("stop", "length", "toolUse"), message.error_message
    usage, own = expected["usage"] or {}, message.usage
    creation = usage.get("cache_creation") or {}
    wanted_tokens = {
        "input": usage.get("input_tokens"),
        "output": usage.get("output_tokens"),
        "cache_read": usage.get("cache_read_input_tokens"),
        "cache_write": usage.get("cache_creation_input_tokens"),
        "cache_write1h": creation.get("ephemeral_1h_input_tokens"),
    }
    assert {name: getattr(own, name) or 0 for name in wanted_tokens} == {
        name: tokens or 0 for name, tokens in wanted_tokens.items()
    }
    details = usage.get("output_tokens_details") or {}
    assert own.reasoning == details.get("thinking_tokens")
    assert own.total_tokens == own.input + own.output + own.cache_read + own.cache_write


def _last_message(body: str) -> str | None:
    """The body from where a second message begins in the midst of a first one."""
    starts = list(re.finditer(r"^(?:event: ?message_start\r?\n)?data: ?(\{.*\"message_start\".*)$", body, re.MULTILINE))
    ids = {json.loads(start[1])["message"]["id"] for start in starts}
    return body[starts[-1].start() :] if len(ids) > 1 else None


def test_recorded_stream(recorded_stream: Path, replay: Replay) -> None:
    recording = json.loads(recorded_stream.read_text("utf-8"))
    finals = replay.finals(recording)
    rest = _last_message(recording["response_body"])
    if rest is None:
        for message in finals:
            _check(recording, message)
        return
    # The SDK mixes the two messages; the second one alone is what the server meant.
    [meant, *_] = replay.finals({**recording, "response_body": rest})
    assert meant.stop_reason != "error"
    for message in finals:
        assert message.to_json() | {"timestamp": 0} == meant.to_json() | {"timestamp": 0}


def test_recorded_sequence(recorded_sequence: Path, replay: Replay) -> None:
    recording = json.loads(recorded_sequence.read_text("utf-8"))
    for step in recording["steps"]:
        for message in replay.finals({"model": recording["model"], **step}):
            _check(step, message)


def test_recorded_error(recorded_error: Path, replay: Replay) -> None:
    recording = json.loads(recorded_error.read_text("utf-8"))
    expected = recording["expected"]
    body = json.loads(recording["response_body"])
    for message in replay.finals(recording):
        assert message.stop_reason == "error"
        text = message.error_message or ""
        status, _, shown = text.partition(" ")
        assert status == str(expected["status"])
        assert json.loads(shown) == body
        details = message.error_details
        assert details is not None
        assert (details.status, details.type) == (expected["status"], expected.get("type"))
        assert details.request_id == body.get("request_id")
        assert details.retryable == (expected["status"] in RETRYABLE)
        assert is_overflow(message) == bool(OVERFLOW.search(text))
