"""Real traffic of the responses API, from a folder given with ``--recordings-dir``, as the official SDK reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pi_core import AssistantMessage, Context, Model, TextContent, ThinkingContent, ToolResultMessage, user_message
from pi_plugins.providers._errors import is_overflow
from pi_plugins.providers._responses_input import HOSTED_ITEMS, InputRules, build_input
from pi_plugins.providers.openai_responses import OpenAIResponsesProvider

from .recorded import Replay

PROVIDER = OpenAIResponsesProvider


def _check(recording: dict[str, Any], message: AssistantMessage) -> None:
    expected = recording["expected"]
    assert message.text == expected["text"] + (expected.get("refusal") or "")
    thoughts = [block for block in message.content if isinstance(block, ThinkingContent)]
    assert "\n\n".join(block.thinking for block in thoughts if block.thinking) == expected["thinking"]
    encrypted = [block for block in thoughts if json.loads(block.thinking_signature or "{}").get("encrypted_content")]
    assert len(encrypted) == expected.get("encrypted_reasoning_items", 0)
    given = [(*call.id.split("|"), call.name, call.arguments) for call in message.tool_calls]
    wanted = [(call["id"], call["item_id"], call["name"], call["arguments"]) for call in expected["tool_calls"]]
    assert given == wanted
    assert all(call.arguments_error is None for call in message.tool_calls)
    hosted = [entry["item"]["type"] for entry in (message.model_extra or {}).get(HOSTED_ITEMS, [])]
    assert hosted == expected.get("other_items", [])
    if error := expected.get("error"):
        assert message.stop_reason == "error"
        assert error["body"]["message"] in (message.error_message or "")
        assert message.error_details is not None
        assert message.error_details.type == error["body"]["code"]
        assert message.error_details.retryable == ("Rate limit" in error["body"]["message"])
    else:
        assert message.raw_stop_reason == expected["stop_reason"].replace(":", ".")
        calls = expected["tool_calls"]
        assert message.stop_reason == (
            "length" if "incomplete" in expected["stop_reason"] else "toolUse" if calls else "stop"
        )
    usage, own = expected["usage"] or {}, message.usage
    assert own.input + own.cache_read + own.cache_write == (usage.get("input_tokens") or 0)
    assert own.cache_read == ((usage.get("input_tokens_details") or {}).get("cached_tokens") or 0)
    assert own.output == (usage.get("output_tokens") or 0)
    assert (own.reasoning or 0) == ((usage.get("output_tokens_details") or {}).get("reasoning_tokens") or 0)
    assert own.total_tokens == (usage.get("total_tokens") or 0)


def _check_replay(messages: list[AssistantMessage], **target: str) -> None:
    """What the server said goes back in an order it accepts, to the model that said it and to another one."""
    history: list[Any] = [user_message("x")]
    for message in messages:
        results = (
            ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=[TextContent(text="r")])
            for call in message.tool_calls
        )
        history += [message, *results]
    model = Model(api="openai-responses", provider="recorded", **target)
    items = build_input(Context(messages=history), model, InputRules({}), system_role="system")
    kinds = [item.get("type") or item["role"] for item in items]
    for kind, following in zip(kinds, [*kinds[1:], ""], strict=True):
        assert kind != "reasoning" or following not in ("", "user", "function_call_output")
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    assert calls == [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    assert len(calls) == len(set(calls)) == sum(len(message.tool_calls) for message in messages)
    own = all(message.model == model.id for message in messages)
    assert ("reasoning" in kinds) <= own
    encrypted = [item for item in items if item.get("type") == "reasoning" and item.get("encrypted_content")]
    assert own or not encrypted


def test_recorded_stream(recorded_stream: Path, replay: Replay) -> None:
    recording = json.loads(recorded_stream.read_text("utf-8"))
    for message in replay.finals(recording):
        _check(recording, message)
    if message.stop_reason != "error":
        _check_replay([message], id=message.model)
        _check_replay([message], id="other")


def test_recorded_sequence(recorded_sequence: Path, replay: Replay) -> None:
    recording = json.loads(recorded_sequence.read_text("utf-8"))
    said = []
    for step in recording["steps"]:
        step = {**step, "model": recording["model"]}
        for message in replay.finals(step):
            _check(step, message)
        said.append(message)
    _check_replay(said, id=recording["model"])
    _check_replay(said, id="other")


def test_recorded_error(recorded_error: Path, replay: Replay) -> None:
    recording = json.loads(recorded_error.read_text("utf-8"))
    expected = recording["expected"]
    for message in replay.finals(recording):
        assert message.stop_reason == "error"
        assert message.error_message is not None
        assert message.error_message.startswith(f"recorded API error ({expected['status']}): ")
        words = expected["message"].partition(" - ")[2]
        assert json.dumps(words, ensure_ascii=False)[1:-1] in message.error_message
        assert message.error_details is not None
        assert message.error_details.status == expected["status"]
        assert message.error_details.type == expected["type"]
        assert message.error_details.retryable == (expected["status"] in (429, 500))
        assert is_overflow(message) == (expected.get("code") == "context_length_exceeded")
