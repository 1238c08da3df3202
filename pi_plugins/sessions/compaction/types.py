"""What a compaction is about, and what it gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pi_core import AgentMessage, Usage

CompactionReason: TypeAlias = Literal["manual", "threshold", "overflow"]
"""Why a session is compacted."""


@dataclass(frozen=True, slots=True)
class CompactionPreparation:
    """What is to be summarised, and what is kept.

    :param messages: what the summary is about, oldest first.
    :param split_prefix: the beginning of the kept turn, when that turn alone is larger than what is to be kept; it is
        summarised by itself.
    :param first_kept_entry_id: the entry with which the kept part begins.
    :param previous_summary: the summary of the compaction before.
    :param tokens_before: estimated tokens of the context so far.
    :param focus: what the user wants the summary to attend to.
    """

    messages: tuple[AgentMessage, ...]
    first_kept_entry_id: str
    tokens_before: int
    split_prefix: tuple[AgentMessage, ...] = ()
    previous_summary: str | None = None
    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()
    focus: str | None = None


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The summary that takes the place of what was before the kept part.

    :param usage: what making it cost; ``None`` when no model was asked.
    :param details: kept in the session; ``readFiles`` and ``modifiedFiles`` among it.
    """

    summary: str
    first_kept_entry_id: str
    tokens_before: int
    estimated_tokens_after: int = 0
    usage: Usage | None = None
    details: dict[str, Any] = field(default_factory=dict)
