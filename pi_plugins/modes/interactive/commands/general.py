"""``/help`` and ``/quit``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pi_plugins.coding_agent import SlashCommand
from pi_plugins.prompt import commands as resource_commands

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
        pairs = [*INPUTS, ("", "")]
        offered = session.commands.items()
        counts = Counter(command.name for _, command in offered)
        for owner, command in offered:
            name = command.name if counts[command.name] == 1 else f"{owner.plugin}/{command.name}"
            pairs.append((f"/{name}", command.description))
        pairs += [(f"/{command.name}", command.description) for command in resource_commands(session.resources)]
        self._ui.show(rows(pairs))

    def leave(self, text: str, session: AgentSession) -> None:
        """Leave the interactive mode."""
        self._ui.exit()


__all__ = ["GeneralCommands"]
