"""How far a fetch is, on standard error: one line that changes on a terminal, a line for each part elsewhere."""

from __future__ import annotations

import time
from typing import TextIO

from .catalog import KnownModel


class Progress:
    """Told by the fetch; writes at most a few times a second.

    :param stream: where to write.
    """

    def __init__(self, known: KnownModel, stream: TextIO) -> None:
        self._known = known
        self._stream = stream
        self._live = stream.isatty()
        self._began = time.monotonic()
        self._first: int | None = None
        self._part = 0
        self._open = False

    def __call__(self, part: int, size: int) -> None:
        """Show a state: the part at hand and the bytes that are there."""
        if self._first is None:
            self._first = size
            if size:
                self._stream.write(f"Going on after {part - 1} of {len(self._known.parts)} parts\n")
        if not self._live and part == self._part:
            return
        self._part = part
        known = self._known
        text = f"part {part}/{len(known.parts)}  {size / 1e6:.0f} of {known.size / 1e6:.0f} MB{self._rate(size)}"
        self._stream.write(f"\r{text:<70}" if self._live else f"{text}\n")
        self._stream.flush()
        self._open = self._live

    def finish(self) -> None:
        """End the changing line."""
        if self._open:
            self._stream.write("\n")
            self._open = False

    def _rate(self, size: int) -> str:
        came = size - (self._first or 0)
        seconds = time.monotonic() - self._began
        if came <= 0 or seconds < 1:
            return ""
        left = max(0, self._known.size - size) * seconds / came
        return f"  {came / seconds / 1e6:.0f} MB/s, {left:.0f} s left"
