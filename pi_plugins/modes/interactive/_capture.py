"""What is printed by others while the terminal is drawn: it becomes part of the conversation."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Lines(io.TextIOBase):
    """A stream that gives away whole lines."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._rest = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        if lines:
            self._show("\n".join(lines))
        return len(text)

    def finish(self) -> None:
        if self._rest:
            self._show(self._rest)
            self._rest = ""


@contextmanager
def printed(show: Callable[[str], None]) -> Iterator[None]:
    """Give what is printed to ``sys.stdout`` and ``sys.stderr`` to ``show``, line by line."""
    before = sys.stdout, sys.stderr
    lines = _Lines(show)
    sys.stdout = sys.stderr = lines
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        lines.finish()
