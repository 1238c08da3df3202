"""The system prompt: sections, context files, skills and prompt templates."""

from __future__ import annotations

from pi_core import hookimpl

from . import hookspecs


class PromptPlugin:
    """Offers the hooks with which plugins change the system prompt and bring skills and templates."""

    @hookimpl
    def register_hookspecs(self) -> list[object]:
        """Offer the hooks of this package."""
        return [hookspecs]
