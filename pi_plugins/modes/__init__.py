"""The modes of ``pi``: a conversation on the terminal, the answer or events printed, and commands as JSON lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_core import Command, hookimpl

if TYPE_CHECKING:
    import click


def _load() -> click.Command:
    from .command import prompt

    return prompt


class ModesPlugin:
    """Registers the command that ``pi`` runs without a sub-command, and offers the hooks of the terminal."""

    @hookimpl
    def register_hookspecs(self) -> list[object]:
        """Offer the hooks of what the terminal shows."""
        from .interactive import hookspecs

        return [hookspecs]

    @hookimpl
    def register_commands(self) -> list[Command]:
        """Offer the default command."""
        return [Command(name="prompt", help="Talk with the agent, or run a prompt with -p.", load=_load, default=True)]
