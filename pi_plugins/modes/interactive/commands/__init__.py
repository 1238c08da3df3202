"""The slash commands of the interactive mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pi_core import Owner

from .access import AccessCommands
from .general import GeneralCommands
from .models import ModelCommands
from .moving import MovingCommands
from .plugins import PluginCommands
from .session import SessionCommands
from .tools import ToolCommands

if TYPE_CHECKING:
    from pi_plugins.coding_agent import AgentSession, Prepared, SlashCommand

    from ..ui import Ui

OWNER: Final = Owner("interactive")
"""Whose the commands are, where a plugin offers one of the same name."""


def interactive_commands(ui: Ui, prepared: Prepared) -> list[SlashCommand]:
    """Return the commands.

    :param ui: the terminal that they ask and show with.
    :param prepared: the configuration that ``/reload`` reads again.
    """
    groups = (
        ModelCommands(ui),
        ToolCommands(ui),
        SessionCommands(ui),
        MovingCommands(ui),
        PluginCommands(ui),
        AccessCommands(ui, prepared),
        GeneralCommands(ui),
    )
    return [command for group in groups for command in group.commands()]


def offer_commands(session: AgentSession, ui: Ui, prepared: Prepared) -> None:
    """Let a session have the commands of the interactive mode, beside those of its plugins."""
    session.commands.offer(OWNER, interactive_commands(ui, prepared))


__all__ = ["OWNER", "interactive_commands", "offer_commands"]
