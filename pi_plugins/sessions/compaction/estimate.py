"""How full the context is, and when that is too full."""

from __future__ import annotations

import math
from collections.abc import Sequence
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


class TokenMeter:
    """Tells how many tokens the next request has; of messages that only grow it looks at each once.

    What the last response reported is taken as it is, and what came after it is estimated. A response from before the
    last compaction says nothing about the context that followed it.
    """

    def __init__(self) -> None:
        self._source: Sequence[AgentMessage] | None = None
        self._seen = 0
        self._compacted = -1
        self._reported: int | None = None
        self._estimated = 0

    def tokens(self, messages: Sequence[AgentMessage], *, fixed: int = 0) -> int:
        """Return the tokens of a request with these messages.

        :param messages: the same list as in the last call, when it is only longer now.
        :param fixed: estimated tokens of the system prompt and the tools; a report includes them.
        """
        if messages is not self._source or len(messages) < self._seen:
            self._source, self._seen, self._reported, self._estimated = messages, 0, None, 0
            times = (message.timestamp for message in messages if message.role == _COMPACTION_ROLE)
            self._compacted = max(times, default=-1)
        for position in range(self._seen, len(messages)):
            self._add(messages[position])
        self._seen = len(messages)
        return (fixed if self._reported is None else self._reported) + self._estimated

    def _add(self, message: AgentMessage) -> None:
        if (
            isinstance(message, AssistantMessage)
            and message.stop_reason not in ("error", "aborted")
            and message.timestamp > self._compacted
            and (used := used_tokens(message.usage))
        ):
            self._reported, self._estimated = used, 0
        else:
            self._estimated += message_tokens(message)


def context_tokens(messages: Sequence[AgentMessage], *, fixed: int = 0) -> int:
    """Return how many tokens the next request has, as :class:`TokenMeter` tells it.

    :param fixed: estimated tokens of the system prompt and the tools; a report includes them.
    """
    return TokenMeter().tokens(messages, fixed=fixed)


def used_tokens(usage: Usage) -> int:
    """Return the tokens of a request and its answer together."""
    return usage.total_tokens or usage.input + usage.output + usage.cache_read + usage.cache_write


def should_compact(tokens: int, model: Model, settings: CompactionSettings) -> bool:
    """Return whether a context of ``tokens`` leaves less room than is to be kept free.

    A model whose window is unknown is never compacted by itself, nor is one for which the user switched it off.
    """
    limits = limits_for(settings, model)
    return limits.enabled and model.context_window > 0 and tokens > model.context_window - limits.reserve_tokens
