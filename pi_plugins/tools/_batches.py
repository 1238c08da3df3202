"""Shares the files of a search out among programs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from ._content import HEAD_BYTES, sniff
from ._errors import ToolError
from ._files import open_regular

LARGE_BYTES = 64 * 1024 * 1024
"""From here on a file is searched by our own program: ripgrep holds a whole line, as long as it may be."""

_ARGUMENT_COST = 9


@dataclass(frozen=True, slots=True)
class Batch:
    """Files for one program.

    :param large: there is one file, a large one.
    """

    files: list[str]
    large: bool = False


class Batches:
    """The files of a search in the order they came in.

    :param directory: what their paths are relative to.
    :param left_out: how many large files were left out so far, since they are no text.
    """

    def __init__(self, directory: str, files: Iterable[str]) -> None:
        self.left_out = 0
        self._directory = directory
        self._files = iter(files)
        self._large: str | None = None

    def next(self, most: int) -> Batch | None:
        """Return some files, ``None`` when there are no more.

        :param most: about how many bytes their names may take.
        """
        if self._large is not None:
            large, self._large = self._large, None
            return Batch([large], large=True)
        batch: list[str] = []
        size = 0
        for path in self._files:
            if self._is_large(path):
                if not self.is_text(path):
                    self.left_out += 1
                    continue
                if not batch:
                    return Batch([path], large=True)
                self._large = path
                break
            batch.append(path)
            size += len(os.fsencode(path)) + _ARGUMENT_COST
            if size >= most:
                break
        return Batch(batch) if batch else None

    def _is_large(self, path: str) -> bool:
        try:
            return os.stat(os.path.join(self._directory, path)).st_size > LARGE_BYTES
        except OSError:
            return False  # the program that searches it will say why

    def is_text(self, path: str) -> bool:
        """Say whether a file is text by its first bytes."""
        try:
            with open_regular(os.path.join(self._directory, path)) as file:
                return sniff(file.read(HEAD_BYTES)).encoding is not None
        except (OSError, ToolError):
            return False
