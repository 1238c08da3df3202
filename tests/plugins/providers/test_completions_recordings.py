"""Real traffic of many servers, from a folder given with ``--recordings-dir``, as an official SDK reads it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from pi_core import AssistantMessage, Context, ThinkingContent, user_message
from pi_plugins.providers._errors import is_overflow

OVERFLOWS = ("43c965", "259c86", "59610a")


def _finals(recording: dict[str, Any], model: Any, reply: Any, played: Any, calls: Any, cuts: Any) -> list[Any]:
    """The final messages of the recording's ways to arrive, and the deltas that made them."""
    body = recording["response_body"].encode()
    target = model(id=recording["model"] or "unknown", provider="recorded")
    made = []
    for cut in cuts(body, recording.get("wire_chunk_lengths_bytes")).values():
        provider, _ = played(reply(cut, recording["response_status"], recording["response_headers"]))
        stream = provider.stream(target, Context(messages=[user_message("x")]), calls.options({"maxRetries": 0}))
        events = asyncio.run(calls.collect(stream))
        assert [event.type for event in events if event.type in ("done", "error")] == [events[-1].type]
        message = events[-1].message
        texts: dict[int, str] = {}
        for event in events:
            if event.type in ("text_delta", "thinking_delta"):
                texts[event.content_index] = texts.get(event.content_index, "") + event.delta
        for index, text in texts.items():
            block = message.content[index]
            assert text == (block.thinking if isinstance(block, ThinkingContent) else block.text)
        made.append((message, [event.to_json() for event in events[:-1]]))
    first = made[0]
    for other in made[1:]:
        assert other[1] == first[1]
        assert other[0].to_json() | {"timestamp": 0} == first[0].to_json() | {"timestamp": 0}
    return [message for message, _ in made]


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


def test_recorded_stream(recorded_stream: Path, model: Any, reply: Any, played: Any, calls: Any, cuts: Any) -> None:
    recording = json.loads(recorded_stream.read_text("utf-8"))
    for message in _finals(recording, model, reply, played, calls, cuts):
        _check(recording, message)


def test_recorded_sequence(recorded_sequence: Path, model: Any, reply: Any, played: Any, calls: Any, cuts: Any) -> None:
    recording = json.loads(recorded_sequence.read_text("utf-8"))
    for step in recording["steps"]:
        step = {"model": recording["model"], **step}
        for message in _finals(step, model, reply, played, calls, cuts):
            _check(step, message)


def test_recorded_error(recorded_error: Path, model: Any, reply: Any, played: Any, calls: Any, cuts: Any) -> None:
    recording = json.loads(recorded_error.read_text("utf-8"))
    expected = recording["expected"]
    for message in _finals(recording, model, reply, played, calls, cuts):
        assert message.stop_reason == "error"
        assert message.error_message.startswith(str(expected["status"]))
        words = expected["message"].partition(" - ")[2]
        assert json.dumps(words, ensure_ascii=False)[1:-1] in message.error_message
        assert message.error_details.status == expected["status"]
        assert message.error_details.retryable == (expected["status"] in (429, 500))
        kind = expected.get("type")
        assert kind is None or message.error_details.type == kind
        assert is_overflow(message) == recorded_error.stem.endswith(OVERFLOWS)
