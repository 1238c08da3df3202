"""Sub-commands of ``pi`` as plugins offer them: a name and a line of help now, the click object when it is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import click

CORE_COMMANDS: Final = ("build", "hooks", "plugins")
"""The sub-commands of the core, whose names no plugin can take."""


@dataclass(frozen=True, slots=True)
class Command:
    """A sub-command.

    :param name: what is typed after ``pi``.
    :param help: one line for the list of commands.
    :param load: makes the click command; imports belong in here.
    :param default: whether ``pi`` without a sub-command runs it.
    """

    name: str
    help: str
    load: Callable[[], click.Command]
    default: bool = False
