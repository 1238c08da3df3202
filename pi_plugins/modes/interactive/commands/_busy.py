"""What is said of a change while the agent works."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pi_plugins.coding_agent import AgentSession


def when(session: AgentSession) -> str:
    """Return from when on a change counts: nothing to say when no run goes on."""
    return ", from the next request on" if session.runs.active else ""


__all__ = ["when"]
