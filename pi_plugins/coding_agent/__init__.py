"""The coding agent: an agent with a session, a prompt, retries and compaction, as every mode of ``pi`` runs it."""

from __future__ import annotations

from pi_core import hookimpl

from . import hookspecs


class CodingAgentPlugin:
    """Offers the hooks of the session's life, of what the user types, and of questions to the user."""

    @hookimpl
    def register_hookspecs(self) -> list[object]:
        """Offer the hooks of this package."""
        return [hookspecs]
