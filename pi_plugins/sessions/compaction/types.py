"""What a compaction is about, and what it gives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pi_core import AgentMessage, AssistantMessage, Context, PiError, StreamOptions, Usage

CompactionReason: TypeAlias = Literal["manual", "threshold", "overflow"]
"""Why a session is compacted."""

Complete: TypeAlias = Callable[[Context, StreamOptions], Awaitable[AssistantMessage]]
"""Makes one request with the model of the session and returns the response, retried as the caller sees fit."""


class CompactionError(PiError):
    """No summary could be made; the session is as it was.

    :param aborted: whether it was given up on purpose.
    """

    def __init__(self, message: str, *, aborted: bool = False) -> None:
        super().__init__(message)
        self.aborted = aborted


@dataclass(frozen=True, slots=True)
class CompactionPreparation:
    """What is to be summarised, and what is kept.

    :param messages: what the summary is about, oldest first.
    :param split_prefix: the beginning of the kept turn, when that turn alone is larger than what is to be kept; it is
        summarised by itself.
    :param first_kept_entry_id: the entry with which the kept part begins.
    :param previous_summary: the summary of the compaction before, without its lists of files.
    :param tokens_before: estimated tokens of the context so far.
    :param tokens_kept: estimated tokens of the kept part.
    :param summarized_entry_ids: the entries that the summary stands for, oldest first; they stay in the session.
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
    tokens_kept: int = 0
    summarized_entry_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The summary that takes the place of what was before the kept part.

    :param usage: what making it cost; ``None`` when no model was asked.
    :param details: kept in the session: ``readFiles``, ``modifiedFiles``, and ``summarizedEntries``, the first and the
        last entry that the summary stands for.
    """

    summary: str
    first_kept_entry_id: str
    tokens_before: int
    estimated_tokens_after: int = 0
    usage: Usage | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BranchSummaryResult:
    """What was done on a branch that was left.

    :param usage: what making it cost.
    :param details: kept in the session: ``readFiles`` and ``modifiedFiles``.
    """

    summary: str
    usage: Usage | None = None
    details: dict[str, Any] = field(default_factory=dict)
