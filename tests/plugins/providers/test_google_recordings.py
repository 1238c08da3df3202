"""Real traffic of the Gemini API, from a folder given with ``--recordings-dir``, as the official SDK reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pi_core import AssistantMessage, TextContent, ThinkingContent, ToolCallContent
from pi_plugins.providers._errors import is_overflow
from pi_plugins.providers.google_generative_ai import GoogleGenerativeAIProvider

from .recorded import Replay

PROVIDER = GoogleGenerativeAIProvider
REASONS = {"STOP": "stop", "MAX_TOKENS": "length"}


def _check(recording: dict[str, Any], message: AssistantMessage) -> None:
    expected = recording["expected"]
    assert message.text == expected["text"]
    thoughts = "".join(block.thinking for block in message.content if isinstance(block, ThinkingContent))
    assert thoughts == expected["thinking"]
    _check_calls(expected["tool_calls"], message.tool_calls)
    signed, parts = sum(map(_is_signed, message.content)), expected.get("thought_signatures", 0)
    # A block has the last signature of its parts.
    assert min(parts, 1) <= signed <= parts
    stop = expected["stop_reason"]
    assert message.raw_stop_reason == stop
    if stop in REASONS:
        calls = expected["tool_calls"]
        assert message.stop_reason == ("toolUse" if calls and stop == "STOP" else REASONS[stop])
    else:
        # The SDK takes these for answers: one that broke off, and one the provider stopped.
        text = f"Provider stopped with: {stop}" if stop else "Google stream ended without a finish reason"
        assert (message.stop_reason, message.error_message) == ("error", text)
    usage, own = expected["usage"] or {}, message.usage
    assert own.cache_read == usage.get("cachedContentTokenCount", 0)
    prompt = usage.get("promptTokenCount", 0) + usage.get("toolUsePromptTokenCount", 0)
    assert own.input + own.cache_read == prompt
    assert (own.reasoning or 0) == usage.get("thoughtsTokenCount", 0)
    assert own.output == usage.get("candidatesTokenCount", 0) + usage.get("thoughtsTokenCount", 0)
    assert own.total_tokens == (usage.get("totalTokenCount") or own.input + own.cache_read + own.output)


def _check_calls(wanted: list[dict[str, Any]], calls: list[ToolCallContent]) -> None:
    """The SDK gives each fragment of a call that came in several; here they are one."""
    whole = [call for call in wanted if call["name"]]
    assert [call.name for call in calls] == [call["name"] for call in whole]
    assert len({call.id for call in calls}) == len(calls)
    for call, expected in zip(calls, whole, strict=True):
        assert call.arguments_error is None
        assert call.id == expected["id"] or (expected["id"] is None and call.id.startswith(f"{call.name}_"))
        if expected.get("partial"):
            assert call.arguments
        else:
            assert call.arguments == expected["arguments"]


def _is_signed(block: Any) -> bool:
    if isinstance(block, TextContent):
        return bool(block.text_signature)
    if isinstance(block, ThinkingContent):
        return bool(block.thinking_signature)
    return isinstance(block, ToolCallContent) and bool(block.thought_signature)


def test_recorded_stream(recorded_stream: Path, replay: Replay) -> None:
    recording = json.loads(recorded_stream.read_text("utf-8"))
    for message in replay.finals(recording):
        _check(recording, message)


def test_recorded_sequence(recorded_sequence: Path, replay: Replay) -> None:
    recording = json.loads(recorded_sequence.read_text("utf-8"))
    for step in recording["steps"]:
        step = {"model": recording["model"], **step}
        for message in replay.finals(step):
            _check(step, message)


def test_recorded_error(recorded_error: Path, replay: Replay) -> None:
    recording = json.loads(recorded_error.read_text("utf-8"))
    expected = recording["expected"]
    body = json.loads(recording["response_body"])
    for message in replay.finals(recording):
        assert message.stop_reason == "error"
        assert json.loads(message.error_message or "") == body
        details = message.error_details
        assert details is not None
        assert (details.status, details.type) == (expected["status"], expected["google_status"])
        assert details.retryable == (expected["status"] == 429)
        delays = [detail["retryDelay"] for detail in body["error"].get("details", ()) if "retryDelay" in detail]
        assert (details.retry_after_ms is not None) == bool(delays)
        assert is_overflow(message) == ("exceeds the maximum number of tokens" in expected["message"])
