"""How full the context is, and when that is too full."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from pi_core import AgentMessage, AssistantMessage, CustomMessage, Model, Usage
from pi_plugins.providers.tokens import count_characters

from .limits import limits_for

if TYPE_CHECKING:
    from pi_plugins.config.settings import CompactionSettings

_CHARACTERS_PER_TOKEN: Final = 4
_COMPACTION_ROLE: Final = "compactionSummary"


def message_tokens(message: AgentMessage) -> int:
    """Estimate the tokens of one message as a model reads it: four characters each, an image as 4800 characters."""
    parts = message.to_llm() if isinstance(message, CustomMessage) else (message,)
    return text_tokens(sum(count_characters(part) for part in parts))


def text_tokens(characters: int) -> int:
    """Estimate the tokens of a text.

    :param characters: its length.
    """
    return math.ceil(characters / _CHARACTERS_PER_TOKEN)


def context_tokens(messages: Sequence[AgentMessage], *, fixed: int = 0) -> int:
    """Return how many tokens the next request has.

    What the last response reported is taken as it is, and what came after it is estimated. A response from before
    the last compaction says nothing about the context that followed it.

    :param fixed: estimated tokens of the system prompt and the tools; a report includes them.
    """
    position = _last_report(messages)
    if position is None:
        return fixed + _sum(messages)
    report = messages[position]
    assert isinstance(report, AssistantMessage)
    return used_tokens(report.usage) + _sum(messages[position + 1 :])


def used_tokens(usage: Usage) -> int:
    """Return the tokens of a request and its answer together."""
    return usage.total_tokens or usage.input + usage.output + usage.cache_read + usage.cache_write


def should_compact(tokens: int, model: Model, settings: CompactionSettings) -> bool:
    """Return whether a context of ``tokens`` leaves less room than is to be kept free.

    A model whose window is unknown is never compacted by itself, nor is one for which the user switched it off.
    """
    limits = limits_for(settings, model)
    return limits.enabled and model.context_window > 0 and tokens > model.context_window - limits.reserve_tokens


def _last_report(messages: Sequence[AgentMessage]) -> int | None:
    since = max((message.timestamp for message in messages if message.role == _COMPACTION_ROLE), default=-1)
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if (
            isinstance(message, AssistantMessage)
            and message.stop_reason not in ("error", "aborted")
            and message.timestamp > since
            and used_tokens(message.usage)
        ):
            return position
    return None


def _sum(messages: Iterable[AgentMessage]) -> int:
    return sum(message_tokens(message) for message in messages)
