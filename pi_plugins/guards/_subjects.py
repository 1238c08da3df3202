"""What a tool call is about: files, commands, or just itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pi_plugins.tools._errors import ToolError
from pi_plugins.tools._paths import resolve_existing

from ._commands import Command, look_at
from ._paths import FilePath

_PATH_ARGUMENTS: Final = (
    *("path", "paths", "file", "files", "file_path", "filePath", "filename"),
    *("directory", "dir", "folder"),
)
_COMMAND_ARGUMENT: Final = "command"
_WORK_IN_A_FOLDER: Final = frozenset({"grep", "find", "ls"})
_READ_BELOW: Final = frozenset({"grep"})


@dataclass(frozen=True, slots=True)
class Subject:
    """One thing that a call is about. A rule has to allow each of them.

    :param tools: names of tools that a rule may name it by; a redirection is ``read`` or ``write`` too.
    :param shown: what people are told.
    :param file: the file; with ``is_file`` and no file it is not certain which.
    :param command: the command of a shell.
    :param unclear: why it is not certain what it is; ``None`` when it is.
    :param of_line: whether it is a part of the command line.
    """

    tools: tuple[str, ...]
    shown: str
    is_file: bool = False
    file: FilePath | None = None
    command: Command | None = None
    unclear: str | None = None
    of_line: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """A call as the rules look at it.

    :param line: its whole command line, if it has one.
    """

    tool: str
    subjects: tuple[Subject, ...]
    line: str | None = None

    @property
    def shown(self) -> str:
        """What people are told that it is about."""
        parts = [self.line] if self.line is not None else []
        return "\n".join([*parts, *(subject.shown for subject in self.subjects if not subject.of_line)])


def request_of(tool: str, arguments: dict[str, Any], cwd: str) -> Request:
    """Return what a call is about.

    :param arguments: the validated ones.
    :param cwd: absolute directory that relative paths start from.
    """
    subjects = [_file_subject(tool, path, cwd) for path in _paths(tool, arguments)]
    line = arguments.get(_COMMAND_ARGUMENT)
    if not isinstance(line, str) or not line.strip():
        return Request(tool, tuple(subjects) or (Subject((tool,), f"the tool {tool}"),))
    return Request(tool, (*subjects, *_command_subjects(tool, line, cwd)), line.strip())


def _paths(tool: str, arguments: dict[str, Any]) -> Iterator[str]:
    named = False
    for name in _PATH_ARGUMENTS:
        value = arguments.get(name)
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, str) and path:
                named = True
                yield path
    if not named and tool in _WORK_IN_A_FOLDER:
        yield "."


def _file_subject(tool: str, path: str, cwd: str) -> Subject:
    try:
        file = FilePath.at(resolve_existing(path, cwd), cwd, searched=tool in _READ_BELOW)
    except (ToolError, ValueError, OSError) as error:
        return Subject((tool,), path, is_file=True, unclear=f"no file can be found by that name: {error}")
    return Subject((tool,), file.real, is_file=True, file=file)


def _command_subjects(tool: str, line: str, cwd: str) -> Iterator[Subject]:
    seen = look_at(line)
    for command in seen.commands:
        yield Subject((tool,), command.text, command=command, unclear=seen.unclear, of_line=True)
    for path, writes in seen.files:
        tools = (tool, "write" if writes else "read")
        file = None if path is None else FilePath.at(path, cwd)
        shown, unclear = (
            (file.real, None) if file else ("a redirection", "its file is only known when the command runs")
        )
        yield Subject(tools, shown, is_file=True, file=file, unclear=unclear, of_line=True)
    if not seen.commands and not seen.files:
        yield Subject((tool,), line, of_line=True)
