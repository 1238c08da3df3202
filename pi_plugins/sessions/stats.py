"""What a session has used: messages, tokens and money, on all of its branches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pi_core import AssistantMessage, ToolResultMessage, Usage

from .bodies import BranchSummary, Compaction, ExtraUsage
from .entries import Entry


@dataclass(slots=True)
class SessionStats:
    """Counts over every entry of a session.

    :param total_messages: entries of type message, of every role.
    :param input: tokens that were read and not cached.
    :param cost: US dollars.
    """

    user_messages: int = 0
    assistant_messages: int = 0
    tool_calls: int = 0
    tool_results: int = 0
    total_messages: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float = 0.0

    @property
    def total_tokens(self) -> int:
        """All tokens together."""
        return self.input + self.output + self.cache_read + self.cache_write

    def to_json(self) -> dict[str, Any]:
        """Return the counts as the original's RPC has them."""
        return {
            "userMessages": self.user_messages,
            "assistantMessages": self.assistant_messages,
            "toolCalls": self.tool_calls,
            "toolResults": self.tool_results,
            "totalMessages": self.total_messages,
            "tokens": {
                "input": self.input,
                "output": self.output,
                "cacheRead": self.cache_read,
                "cacheWrite": self.cache_write,
                "total": self.total_tokens,
            },
            "cost": self.cost,
        }


class StatsCounter:
    """Counts entries once, however often it is asked."""

    def __init__(self) -> None:
        self._stats = SessionStats()
        self._seen = 0

    def stats(self, entries: Sequence[Entry]) -> SessionStats:
        """Return the counts.

        :param entries: all entries of the session; those of the last call are not looked at again.
        """
        for at in range(self._seen, len(entries)):
            self._count(entries[at])
        self._seen = len(entries)
        return replace(self._stats)

    def _count(self, entry: Entry) -> None:
        stats = self._stats
        if entry.type == "message":
            stats.total_messages += 1
            stats.user_messages += entry.role == "user"
            if entry.role not in ("assistant", "toolResult"):
                return
        body = entry.body
        if isinstance(body, AssistantMessage):
            stats.assistant_messages += 1
            stats.tool_calls += len(body.tool_calls)
            self._add(body.usage)
        elif isinstance(body, ToolResultMessage):
            stats.tool_results += 1
            self._add(body.usage)
        elif isinstance(body, ExtraUsage | Compaction | BranchSummary):
            self._add(body.usage)

    def _add(self, usage: Usage | None) -> None:
        if usage is not None:
            self._stats.input += usage.input
            self._stats.output += usage.output
            self._stats.cache_read += usage.cache_read
            self._stats.cache_write += usage.cache_write
            self._stats.cost += usage.cost.total
