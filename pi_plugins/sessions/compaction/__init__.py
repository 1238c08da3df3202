"""Compaction: old messages of a session replaced by a summary, so that the rest fits the model."""

from __future__ import annotations

from .types import CompactionPreparation, CompactionResult

__all__ = ["CompactionPreparation", "CompactionResult"]
