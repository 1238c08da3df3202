"""Real traffic of many servers, from a folder given with ``--recordings-dir``, as an official SDK reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pi_core import AssistantMessage, ThinkingContent
from pi_plugins.providers._errors import is_overflow

from .recorded import Replay

OVERFLOWS = ("43c965", "259c86", "59610a")


def _check(recording: dict[str, Any], message: AssistantMessage) -> None:
    expected = recording["expected"]
    assert message.text == expected["text"] + (expected.get("refusal") or "")
    thoughts = "".join(block.thinking for block in message.content if isinstance(block, ThinkingContent))
    assert thoughts == expected["thinking"]
    given = [(call.id, call.name, call.arguments) for call in message.tool_calls]
    assert given == [(call["id"], call["name"] or "", call["arguments"]) for call in expected["tool_calls"]]
    assert message.raw_stop_reason == expected["stop_reason"]
    if expected.get("error"):
        assert message.stop_reason == "error"
        assert message.error_message is not None
        assert message.error_message.startswith(expected["error"]["message"])
    else:
        assert message.stop_reason in ("stop", "length", "toolUse"), message.error_message
    usage = expected["usage"] or (expected.get("x_groq") or {}).get("usage") or {}
    own = message.usage
    assert own.input + own.cache_read + own.cache_write == (usage.get("prompt_tokens") or 0)
    assert own.output == (usage.get("completion_tokens") or 0)


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
    for message in replay.finals(recording):
        assert message.stop_reason == "error"
        assert message.error_message.startswith(str(expected["status"]))
        words = expected["message"].partition(" - ")[2]
        assert json.dumps(words, ensure_ascii=False)[1:-1] in message.error_message
        assert message.error_details.status == expected["status"]
        assert message.error_details.retryable == (expected["status"] in (429, 500))
        kind = expected.get("type")
        assert kind is None or message.error_details.type == kind
        assert is_overflow(message) == recorded_error.stem.endswith(OVERFLOWS)
