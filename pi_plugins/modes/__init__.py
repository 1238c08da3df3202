"""The modes of ``pi``: print the answer, or print events as JSON lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_core import Command, hookimpl

if TYPE_CHECKING:
    import click


def _load() -> click.Command:
    from .command import prompt

    return prompt


class ModesPlugin:
    """Registers the command that ``pi`` runs without a sub-command."""

    @hookimpl
    def register_commands(self) -> list[Command]:
        """Offer the default command."""
        return [Command(name="prompt", help="Run a prompt and print the answer.", load=_load, default=True)]
