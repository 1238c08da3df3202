"""``/help`` and ``/quit``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pi_plugins.coding_agent import SlashCommand

from ..typed import offered_commands
from ._rows import rows

if TYPE_CHECKING:
    from pi_plugins.coding_agent import AgentSession

    from ..ui import Ui

INPUTS: Final = (
    ("/command", "what is listed below"),
    ("@path", "names a file of the project"),
    ("!command", "runs in the shell; the model reads what it prints"),
    ("!!command", "the same, and the model does not"),
)
"""What can be typed beside a message."""


class GeneralCommands:
    """What can be typed, and the way out."""

    def __init__(self, ui: Ui) -> None:
        self._ui = ui

    def commands(self) -> list[SlashCommand]:
        """Return the commands."""
        return [
            SlashCommand("help", "What can be typed", self.help),
            SlashCommand("quit", "Leave", self.leave),
            SlashCommand("exit", "Leave", self.leave),
        ]

    def help(self, text: str, session: AgentSession) -> None:
        """Show what can be typed, of plugins and resources too."""
        pairs = [*INPUTS, ("", ""), *((f"/{one.name}", one.about) for one in offered_commands(session))]
        self._ui.show(rows(pairs))

    def leave(self, text: str, session: AgentSession) -> None:
        """Leave the interactive mode."""
        self._ui.exit()


__all__ = ["GeneralCommands"]
