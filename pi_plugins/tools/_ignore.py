"""What ``.gitignore`` files leave out, with or without a git repository around them.

The patterns are matched here, since a library that translates each star to ``.*`` lets one hostile pattern stop the
whole process: the regular expressions of :mod:`._glob` do not go back over a star.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from ._errors import ToolError
from ._files import open_regular
from ._glob import translate

_MOST_BYTES = 4 * 1024 * 1024


class _Patterns:
    """The patterns of one directory: the last one that matches decides."""

    __slots__ = ("_groups",)

    def __init__(self, lines: Iterable[str]) -> None:
        groups: list[tuple[bool, list[str], list[str]]] = []
        for line in lines:
            parsed = _parse(line)
            if parsed is None:
                continue
            ignores, by_name, expression = parsed
            if not groups or groups[-1][0] != ignores:
                groups.append((ignores, [], []))
            _, names, paths = groups[-1]
            (names if by_name else paths).append(expression)
        self._groups = [(ignores, _any_of(names), _any_of(paths)) for ignores, names, paths in reversed(groups)]

    def verdict(self, path: str, name: str) -> bool | None:
        """Say whether a path is ignored, ``None`` when no pattern matches; a directory ends with ``/``."""
        for ignores, names, paths in self._groups:
            if (names and names.fullmatch(name)) or (paths and paths.fullmatch(path)):
                return ignores
        return None


def _parse(line: str) -> tuple[bool, bool, str] | None:
    """Return whether a line ignores or keeps, whether it is about names at any depth, and its regular expression."""
    pattern = _trim(line.rstrip("\r"))
    if not pattern or pattern.startswith("#"):
        return None
    ignores = not pattern.startswith("!")
    pattern = pattern if ignores else pattern[1:]
    directories_only = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    by_name = "/" not in pattern
    pattern = pattern.removeprefix("/")
    if not pattern:
        return None
    try:
        expression = translate(pattern) + ("/" if directories_only else "/?")
        re.compile(expression)
    except (ValueError, re.error):
        return None  # git too passes over a pattern that it cannot read
    return ignores, by_name, expression


def _trim(line: str) -> str:
    """Take the spaces at the end off, but for one that a backslash keeps."""
    trimmed = line.rstrip(" ")
    escaped = (len(trimmed) - len(trimmed.rstrip("\\"))) % 2 == 1
    return trimmed + " " if escaped and len(line) > len(trimmed) else trimmed


def _any_of(expressions: list[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(expressions)) if expressions else None


@dataclass(frozen=True, slots=True)
class Rules:
    """The patterns of one directory, for paths relative to the root of a walk.

    :param prefix: put before such a path, for a directory above the root.
    :param skip: characters to take off such a path, for a directory below it.
    """

    patterns: _Patterns
    prefix: str
    skip: int


def ignored(rules: tuple[Rules, ...], path: str, name: str) -> bool:
    """Say whether a path is left out; the rules of the innermost directory that has one decide.

    :param path: relative to the root of the walk; a directory ends with ``/``.
    :param name: its last part, with the ``/`` of a directory.
    """
    for level in reversed(rules):
        verdict = level.patterns.verdict(level.prefix + path[level.skip :], name)
        if verdict is not None:
            return verdict
    return False


def rules_of(directory: str, *, prefix: str = "", skip: int = 0, is_repository: bool = False) -> tuple[Rules, ...]:
    """Return the rules that files of a directory make: its ``.gitignore``, and before it the repository's excludes."""
    lines: list[str] = []
    if is_repository:
        lines += _lines(os.path.join(directory, ".git", "info", "exclude"))
    lines += _lines(os.path.join(directory, ".gitignore"))
    return (Rules(_Patterns(lines), prefix, skip),) if lines else ()


def rules_above(root: str, ceiling: str) -> tuple[Rules, ...]:
    """Return the rules of the directories above the root of a walk, the outermost first.

    They count up to the root of the git repository; outside of one, up to ``ceiling`` if the root is below it. A root
    that is itself ignored was asked for by name, so those above it do not count then.
    """
    chain = [*reversed(_directories_above(root, ceiling)), root]
    rules: tuple[Rules, ...] = ()
    for directory, below in pairwise(chain):
        prefix = os.path.relpath(root, directory) + "/"
        rules += rules_of(directory, prefix=prefix, is_repository=_is_repository(directory))
        rest = 0 if below == root else len(os.path.relpath(root, below)) + 1
        if _leaves_out(rules, rest, os.path.basename(below) + "/"):
            return ()
    return rules


def _directories_above(root: str, ceiling: str) -> list[str]:
    above: list[str] = []
    directory = root
    while not _is_repository(directory):
        parent = os.path.dirname(directory)
        if parent == directory:
            inside = os.path.join(root, "").startswith(os.path.join(ceiling, ""))
            return [item for item in above if inside and len(item) >= len(ceiling)]
        directory = parent
        above.append(directory)
    return above


def _leaves_out(rules: tuple[Rules, ...], rest: int, name: str) -> bool:
    """Say whether a directory above the root is ignored.

    :param rest: how many characters of each prefix lie below that directory.
    """
    for level in reversed(rules):
        verdict = level.patterns.verdict(level.prefix[: len(level.prefix) - rest], name)
        if verdict is not None:
            return verdict
    return False


def _is_repository(directory: str) -> bool:
    return os.path.lexists(os.path.join(directory, ".git"))


def _lines(path: str) -> list[str]:
    try:
        with open_regular(path) as file:
            return file.read(_MOST_BYTES).decode("utf-8-sig", "surrogateescape").split("\n")
    except (OSError, ToolError):
        return []
