"""Patterns of files, and where a file really is."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pi_core import ConfigError
from pi_plugins.tools._errors import ToolError
from pi_plugins.tools._glob import PathTest, path_test

_SPECIAL: Final = re.compile(r"[*?\[{\\]")
_IGNORE_CASE: Final = sys.platform == "darwin"


@dataclass(frozen=True, slots=True)
class FilePath:
    """A file that a call is about.

    :param named: its absolute path as it was named.
    :param real: its absolute path without symbolic links.
    :param searched: whether all files below it are read.
    """

    named: str
    real: str
    searched: bool = False

    @classmethod
    def at(cls, path: str, cwd: str, *, searched: bool = False) -> FilePath:
        """Return the file of a path, relative to ``cwd`` or absolute.

        Links are followed before ``..`` is applied, as the system does; the tools apply ``..`` first, so that their
        paths have none.
        """
        named = os.path.join(cwd, os.path.expanduser(path))
        real = os.path.realpath(named)
        return cls(os.path.normpath(named), real, searched and os.path.isdir(real))

    def is_within(self, folder: str) -> bool:
        """Whether it really is a folder or something in it.

        :param folder: absolute, without symbolic links.
        """
        return is_below(self.real, folder)


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder's or that of something in it."""
    return path == folder or path.startswith(folder if folder.endswith("/") else folder + "/")


class PathPattern:
    """A pattern of files, as it stands in a rule.

    :param cwd: the absolute path that relative patterns start from, without symbolic links.
    :raises ConfigError: the pattern is malformed.
    """

    def __init__(self, text: str, cwd: str) -> None:
        self._cwd = cwd
        self._bare = "/" not in text.rstrip("/") and text not in (".", "..", "~")
        if self._bare:
            self._pattern = text.rstrip("/")
        else:
            folder = _SPECIAL.sub(r"\\\g<0>", cwd)
            self._pattern = os.path.normpath(os.path.join(folder, os.path.expanduser(text)))
        everything_in = self._pattern.removesuffix("/**")
        self._tests: list[PathTest] = [_test(self._pattern)]
        if everything_in and everything_in != self._pattern:
            self._tests.append(_test(everything_in))
        found = _SPECIAL.search(self._pattern)
        self._literal = found is None
        self._base = self._pattern if found is None else os.path.dirname(self._pattern[: found.start()] + "x")

    def matches(self, file: FilePath) -> bool:
        """Whether it is a pattern of the file itself, or the plain name of a folder that the file is in."""
        if self._fits(file.real):
            return True
        if not self._literal:
            return False
        if self._bare:
            return file.is_within(self._cwd) and any(map(self._fits, self._upwards(file.real)))
        return file.is_within(self._base)

    def touches(self, file: FilePath) -> bool:
        """Whether it is a pattern of the file or of a folder that the file is in, by its real or its given path."""
        return any(self._fits(path) for whole in (file.real, file.named) for path in self._upwards(whole))

    def may_touch_below(self, file: FilePath) -> bool:
        """Whether it may be a pattern of something in a folder."""
        return self._bare or is_below(self._base, file.real) or ("**" in self._pattern and file.is_within(self._base))

    def _fits(self, path: str) -> bool:
        name = os.path.basename(path)
        return any(test(path.lstrip("/"), name) for test in self._tests)

    def _upwards(self, path: str) -> Iterator[str]:
        """The path and the folders it is in; for a bare name those above the working directory do not count."""
        stop = self._cwd if self._bare and is_below(path, self._cwd) else "/"
        while path not in (stop, "/"):
            yield path
            path = os.path.dirname(path)


@lru_cache(maxsize=512)
def _test(pattern: str) -> PathTest:
    try:
        return path_test(pattern, ignore_case=_IGNORE_CASE)
    except ToolError as error:
        raise ConfigError(f"plugins.permissions.rules: {error}") from None
