"""What may be typed at the cursor: commands and their arguments, files of the project, paths for the shell."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from prompt_toolkit.completion import Completion

from pi_core import ConfigError
from pi_plugins.config.paths import expand

from .files import ProjectFiles
from .typed import offered_commands, shell_line

if TYPE_CHECKING:
    from prompt_toolkit.document import Document

    from pi_plugins.coding_agent import AgentSession

    from .ui import CompletionSource, Ui

_MENTION: Final = re.compile(r"""(?:^|(?<=[\s("'`]))@(?:"(?P<quoted>[^"]*)|(?P<plain>[^\s"]*))$""")
_WORD: Final = re.compile(r"(?:(?<=\s)|^)((?:\\.|[^\s\\])*)$")
_OUTSIDE: Final = ("/", "~", "./", "../")
_MOST: Final = 100


def completion_sources(ui: Ui) -> list[CompletionSource]:
    """Return the sources of the interactive mode."""
    return [CommandCompletion(ui), MentionCompletion(ui), ShellCompletion(ui)]


class CommandCompletion:
    """Commands, templates and skills after a slash, and what a command takes."""

    def __init__(self, ui: Ui) -> None:
        self._ui = ui

    def complete(self, text_before_cursor: str, document: Document) -> Iterable[Completion]:
        """Complete the name of a command, or its arguments."""
        text = document.text_before_cursor
        session = self._ui.session
        if session is None or not text.startswith("/") or "\n" in text:
            return
        name, space, arguments = text[1:].partition(" ")
        if space:
            yield from _arguments(session, name, arguments.lstrip(" "))
        else:
            yield from _names(session, name)


def _names(session: AgentSession, start: str) -> Iterator[Completion]:
    wish = start.lower()
    fitting = [one for one in offered_commands(session) if wish in one.name.lower()]
    for one in sorted(fitting, key=lambda one: (not one.name.lower().startswith(wish), one.name)):
        text = f"{one.name} " if one.takes else one.name
        yield Completion(text, -len(start), display=f"/{one.name}", display_meta=one.about)


def _arguments(session: AgentSession, name: str, arguments: str) -> Iterator[Completion]:
    try:
        command = session.commands.find(name)
        found = list(command.complete(arguments, session)) if command is not None and command.complete else []
    except ConfigError:  # two plugins offer the name
        return
    except Exception:
        logging.getLogger("pi").warning("the arguments of /%s cannot be completed", name, exc_info=True)
        return
    before = arguments[: arguments.rfind(" ") + 1]
    for candidate in found[:_MOST]:
        yield Completion(candidate, -len(arguments), display=candidate.removeprefix(before).strip())


class MentionCompletion:
    """Files of the project after ``@``; other paths when it begins as one that is not in the project."""

    def __init__(self, ui: Ui) -> None:
        self._ui = ui
        self._files: ProjectFiles | None = None

    def complete(self, text_before_cursor: str, document: Document) -> Iterable[Completion]:
        """Complete what follows the ``@`` before the cursor."""
        found, session = _MENTION.search(text_before_cursor), self._ui.session
        if found is None or session is None or shell_line(document.text) is not None:
            return
        quoted = found["quoted"]
        typed = found["plain"] if quoted is None else quoted
        back = len(found[0])
        if typed.startswith(_OUTSIDE):
            paths: Iterable[str] = paths_after(typed, session.cwd, session.models.environ)
        else:
            paths = self._project(session.cwd).search(typed, _MOST)
        for path in paths:
            inserted = path if quoted is None and not re.search(r'[\s"]', path) else f'"{path}'
            if inserted.startswith('"') and not path.endswith("/"):
                inserted += '"'
            yield Completion(f"@{inserted}", -back, display=path)

    def _project(self, cwd: Path) -> ProjectFiles:
        if self._files is None or self._files.root != cwd:
            self._files = ProjectFiles(cwd)
        return self._files


class ShellCompletion:
    """Paths in a line for the shell."""

    def __init__(self, ui: Ui) -> None:
        self._ui = ui

    def complete(self, text_before_cursor: str, document: Document) -> Iterable[Completion]:
        """Complete the last word as a path; the first one only when it is one already."""
        line, session = shell_line(document.text), self._ui.session
        if line is None or session is None:
            return
        given = text_before_cursor.lstrip("!")
        found = _WORD.search(given)
        if found is None:
            return
        word = found[1]
        if not given[: found.start(1)].strip() and "/" not in word:
            return
        typed = re.sub(r"\\(.)", r"\1", word)
        for path in paths_after(typed, session.cwd, session.models.environ):
            yield Completion(re.sub(r"([^\w@%+=:,./~-])", r"\\\1", path), -len(word), display=path)


def paths_after(typed: str, cwd: Path, environ: Mapping[str, str]) -> list[str]:
    """Return the paths that begin like a text, as it writes them; folders end with ``/``."""
    folder, slash, start = typed.rpartition("/")
    where = expand(f"{folder}{slash}", cwd, environ) if slash else cwd
    found = []
    try:
        with os.scandir(where) as entries:
            for entry in entries:
                hidden = entry.name.startswith(".") and not start.startswith(".")
                if entry.name.startswith(start) and not hidden and entry.name.isprintable():
                    found.append(f"{folder}{slash}{entry.name}{'/' if entry.is_dir() else ''}")
    except OSError:
        return []
    return sorted(found)[:_MOST]


__all__ = ["CommandCompletion", "MentionCompletion", "ShellCompletion", "completion_sources", "paths_after"]
