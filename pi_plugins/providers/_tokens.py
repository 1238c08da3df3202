"""Estimates of how many tokens a context has, and the cap on an answer that follows."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Final

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
    Usage,
)

_CHARACTERS_PER_TOKEN: Final = 3.5
_IMAGE_CHARACTERS: Final = 4800
_RESERVE_TOKENS: Final = 4096
_RESERVE_SHARE: Final = 0.15
_SMALL_ROOM: Final = 32768


def estimate_message(message: Message) -> int:
    """Estimate the tokens of one message from its characters; an image counts as 4800 of them."""
    return _tokens(count_characters(message))


def count_characters(message: Message) -> int:
    """Return how many characters of text a message counts as; an image counts as 4800 of them."""
    content = message.content
    if isinstance(content, str):
        return len(content)
    return sum(_characters(block) for block in content)


def estimate_context(context: Context) -> int:
    """Estimate the tokens of a whole request.

    What the last response reported is taken as it is, and only what came after it is estimated. A report does not
    count when the history before it was changed later.
    """
    messages = context.messages
    position = _last_report(messages)
    if position is not None:
        report = messages[position]
        assert isinstance(report, AssistantMessage)
        known = report.usage.total_tokens or _sum(report.usage)
        return known + sum(estimate_message(message) for message in messages[position + 1 :])
    system = len(context.system_prompt)
    if context.tools:
        system += len(_json([tool.declaration() for tool in context.tools]))
    return _tokens(system) + sum(estimate_message(message) for message in messages)


def cap_output(model: Model, requested: int, used: int) -> int:
    """Return how many of the requested output tokens fit the window beside ``used`` tokens of input; at least 1.

    Some room stays free because ``used`` is an estimate. A window of 0 is unknown and caps nothing.
    """
    window = model.context_window
    if window <= 0:
        return requested
    room = window - used - max(_RESERVE_TOKENS, math.ceil(_RESERVE_SHARE * used))
    if room < _SMALL_ROOM:
        room = min(_SMALL_ROOM, window - used - _RESERVE_TOKENS)
    return min(requested, max(1, room))


def output_limit(model: Model, context: Context, options: StreamOptions) -> int | None:
    """Return the most tokens to ask of an answer; ``None`` when neither the request nor the model says."""
    wanted = options.max_tokens or model.max_tokens
    if not wanted:
        return None
    if model.max_tokens:
        wanted = min(wanted, model.max_tokens)
    return cap_output(model, wanted, estimate_context(context)) if model.context_window > 0 else wanted


def _last_report(messages: Sequence[Message]) -> int | None:
    newest = -math.inf
    found = None
    for position, message in enumerate(messages):
        if (
            isinstance(message, AssistantMessage)
            and message.stop_reason not in ("error", "aborted")
            and message.timestamp >= newest
            and (message.usage.total_tokens or _sum(message.usage))
        ):
            found = position
        newest = max(newest, message.timestamp)
    return found


def _sum(usage: Usage) -> int:
    return usage.input + usage.output + usage.cache_read + usage.cache_write


def _tokens(characters: int) -> int:
    return math.ceil(characters / _CHARACTERS_PER_TOKEN)


def _characters(block: Any) -> int:
    if isinstance(block, TextContent):
        return len(block.text)
    if isinstance(block, ThinkingContent):
        return len(block.thinking)
    if isinstance(block, ToolCallContent):
        return len(block.name) + len(_json(block.arguments))
    return _IMAGE_CHARACTERS if isinstance(block, ImageContent) else 0


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
