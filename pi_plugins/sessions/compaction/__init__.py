"""Compaction: old messages of a session replaced by a summary, so that the rest fits the model."""

from __future__ import annotations

from .branch import summarize_branch
from .estimate import TokenMeter, context_tokens, message_tokens, should_compact
from .limits import ModelLimits, limits_for
from .prepare import prepare
from .summarise import summarize
from .types import (
    BranchSummaryResult,
    CompactionError,
    CompactionPreparation,
    CompactionReason,
    CompactionResult,
    Complete,
)

__all__ = [
    "BranchSummaryResult",
    "CompactionError",
    "CompactionPreparation",
    "CompactionReason",
    "CompactionResult",
    "Complete",
    "ModelLimits",
    "TokenMeter",
    "context_tokens",
    "limits_for",
    "message_tokens",
    "prepare",
    "should_compact",
    "summarize",
    "summarize_branch",
]
