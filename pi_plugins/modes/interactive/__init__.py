"""The interactive mode: a conversation in the terminal's own scrollback, an editor below it, and dialogs."""

from __future__ import annotations

from .ui import Choice, CompletionSource, Level, Ui

__all__ = ["Choice", "CompletionSource", "Level", "Ui"]
