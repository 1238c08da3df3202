"""What servers of other makes answered, from a folder given with ``--captures-dir``: nothing they send breaks a run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pi_plugins.providers.anthropic_messages import AnthropicMessagesProvider
from pi_plugins.providers.google_generative_ai import GoogleGenerativeAIProvider
from pi_plugins.providers.openai_completions import OpenAICompletionsProvider
from pi_plugins.providers.openai_responses import OpenAIResponsesProvider

from .recorded import Replay

PROVIDERS = {
    "anthropic": AnthropicMessagesProvider,
    "chat": OpenAICompletionsProvider,
    "gemini": GoogleGenerativeAIProvider,
    "responses": OpenAIResponsesProvider,
}
_HEAD = re.compile(r"^HTTP/[\d.]+ (\d+)[^\n]*\n((?:[^\n]+\n)*)\r?\n", re.M)


def parts_of(text: str) -> tuple[int, dict[str, str], str]:
    """Return status, headers and body; the lines before them are the request."""
    head = _HEAD.search(text)
    assert head is not None
    lines = (line.partition(":") for line in head[2].splitlines())
    headers = {name.lower(): value.strip() for name, _, value in lines}
    framing = {"transfer-encoding", "content-length", "content-encoding", "connection", "keep-alive"}
    return int(head[1]), {name: headers[name] for name in headers.keys() - framing}, text[head.end() :]


@pytest.fixture
def provider_type(capture: Path) -> Any:
    return PROVIDERS[capture.stem.split("-")[1]]


def test_captures(capture: Path, replay: Replay) -> None:
    status, headers, body = parts_of(capture.read_bytes().decode().replace("\r\n", "\n"))
    recording = {"response_body": body, "response_status": status, "response_headers": headers, "model": "captured"}
    message = replay.finals(recording)[0]
    if status >= 400:
        assert message.stop_reason == "error"
        assert message.error_details is not None
        assert message.error_details.status == status
        assert message.error_message
    elif "event-stream" in headers["content-type"]:
        wanted = {"tool": {"toolUse"}, "multitool": {"toolUse"}}
        allowed = wanted.get(capture.stem.split("-")[-1], {"stop", "length", "toolUse"})
        assert message.stop_reason in allowed, message.error_message
        assert message.content or message.stop_reason == "length"
        assert all(call.arguments_error is None for call in message.tool_calls)
