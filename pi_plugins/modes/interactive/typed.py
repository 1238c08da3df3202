"""What a line that the user typed is: a command of the shell, a slash command that exists, or one that does not."""

from __future__ import annotations

import difflib
import re
from collections import Counter
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


@dataclass(frozen=True, slots=True)
class Offered:
    """Something that can follow a slash.

    :param name: what is typed; with its plugin before it where two offer the name.
    :param takes: whether something may follow the name.
    """

    name: str
    about: str
    takes: bool = False


def offered_commands(session: AgentSession) -> list[Offered]:
    """Return what can follow a slash: commands, and the templates and skills that no command hides."""
    from pi_plugins.prompt import commands as resource_commands

    commands = session.commands.items()
    counts = Counter(command.name for _, command in commands)
    found = []
    for owner, command in commands:
        name = command.name if counts[command.name] == 1 else f"{owner.plugin}/{command.name}"
        found.append(Offered(name, command.description, command.complete is not None))
    for resource in resource_commands(session.resources):
        if resource.name not in counts:
            hint = f"{resource.argument_hint}  " if resource.argument_hint else ""
            found.append(Offered(resource.name, f"{hint}{resource.description}", bool(hint)))
    return found


def unknown_command(text: str, session: AgentSession) -> str | None:
    """Say that a text calls a command that does not exist, and which one is near; ``None`` when it does not.

    A word with a second slash is taken for a path, which is no command.
    """
    found = _WORD.match(text)
    if found is None:
        return None
    name, known = found[1], [one.name for one in offered_commands(session)]
    if name in known or name in {full.rpartition("/")[2] for full in known}:
        return None
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    hint = f", did you mean /{close[0]}?" if close else ". /help lists those there are."
    return f"There is no command /{name}{hint} To send it to the model, put a space before it"


__all__ = ["Offered", "ShellLine", "offered_commands", "shell_line", "unknown_command"]
