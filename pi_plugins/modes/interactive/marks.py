"""The signs in the margin."""

from __future__ import annotations

from typing import Final

PROMPT: Final = "\u203a"
"""What the user says."""

CHOSEN: Final = "\u276f"
"""The choice that Enter takes."""

CALL: Final = "•"
"""A call of a tool."""

FAILED: Final = "✗"
"""What went wrong."""

THOUGHT: Final = "∴"
"""What the model thinks."""

NOTE: Final = "◆"
"""What neither user nor model said."""

SHELL: Final = "!"
"""A command of the user."""

QUESTION: Final = "?"
"""What the user is asked."""

UNFOLDED: Final = "▾"
"""What was folded."""

SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
"""Something goes on."""
