"""What a line that the user typed is: a command of the shell, a slash command that exists, or one that does not."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pi_plugins.coding_agent import AgentSession

_WORD: Final = re.compile(r"/([^\s/]+)(?=\s|$)")


@dataclass(frozen=True, slots=True)
class ShellLine:
    """A line for the shell: ``!command``, or ``!!command``.

    :param hidden: whether the model is not to read what it prints.
    """

    command: str
    hidden: bool = False


def shell_line(text: str) -> ShellLine | None:
    """Return the command that a text gives to the shell; ``None`` when it is none."""
    if not text.startswith("!"):
        return None
    hidden = text.startswith("!!")
    return ShellLine(text[2 if hidden else 1 :].strip(), hidden)


def command_names(session: AgentSession) -> list[str]:
    """Return what can follow a slash: commands, templates and skills."""
    from pi_plugins.prompt import commands as resource_commands

    own = [command.name for _, command in session.commands.items()]
    return [*own, *(command.name for command in resource_commands(session.resources))]


def unknown_command(text: str, session: AgentSession) -> str | None:
    """Say that a text calls a command that does not exist, and which one is near; ``None`` when it does not.

    A word with a second slash is taken for a path, which is no command.
    """
    found = _WORD.match(text)
    if found is None:
        return None
    name, known = found[1], command_names(session)
    if name in known:
        return None
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    hint = f", did you mean /{close[0]}?" if close else ". /help lists those there are."
    return f"There is no command /{name}{hint} To send it to the model, put a space before it"


__all__ = ["ShellLine", "command_names", "shell_line", "unknown_command"]
