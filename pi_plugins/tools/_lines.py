"""Takes some lines out of a text that is read piece by piece, with no more than those lines in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ._content import to_text
from ._truncate import MAX_BYTES, MAX_LINES, Truncation


@dataclass(slots=True)
class Selection:
    """Lines of a text.

    :param stopped_by: why the selection ends before the text does; ``None`` when it does not.
    :param total_lines: of the whole text; a final newline begins no line.
    :param rest_lines: from the first selected line to the end of the text.
    :param rest_bytes: the same in bytes.
    :param long_line: bytes of the first line when it is over the limit by itself, so that nothing is selected.
    """

    text: str
    lines: int
    bytes: int
    stopped_by: Literal["limit", "lines", "bytes"] | None
    total_lines: int
    rest_lines: int
    rest_bytes: int
    long_line: int | None

    def truncation(self, max_lines: int, max_bytes: int) -> Truncation:
        """Return what was shown of the text from the first selected line on.

        :param max_lines: the limits of the selection, and so is ``max_bytes``.
        """
        by: Literal["lines", "bytes"] | None = None if self.stopped_by == "limit" else self.stopped_by
        return Truncation(
            content=self.text,
            truncated_by=by,
            total_lines=self.rest_lines,
            total_bytes=self.rest_bytes,
            output_lines=self.lines,
            output_bytes=self.bytes,
            max_lines=max_lines,
            max_bytes=max_bytes,
            first_line_exceeds_limit=self.long_line is not None,
        )


class _Taker:
    """Collects lines until a limit is reached."""

    def __init__(self, limit: int | None, max_lines: int, max_bytes: int) -> None:
        self.lines: list[str] = []
        self.size = 0
        self.stopped_by: Literal["limit", "lines", "bytes"] | None = None
        self.long_line: int | None = None
        self._limit = limit
        self._max_lines = max_lines
        self._max_bytes = max_bytes
        self._pending = bytearray()
        self._measuring = False

    def feed(self, chunk: bytes) -> None:
        if self._measuring:
            self._measure(chunk)
        if self.stopped_by is not None:
            return
        begin = 0
        while self._room():
            end = chunk.find(b"\n", begin)
            if end < 0:
                break
            self._take(bytes(self._pending + chunk[begin:end]))
            self._pending.clear()
            if self.stopped_by is not None:
                return
            begin = end + 1
        if begin < len(chunk) and self._room():
            self._pending += chunk[begin:]
            if len(self._pending) > self._max_bytes:
                self._take(bytes(self._pending))
                self._measuring = self.long_line is not None
        elif begin < len(chunk):
            self.stopped_by = "limit" if self._at_limit() else "lines"

    def finish(self) -> None:
        if self._pending and self.stopped_by is None:
            self._take(bytes(self._pending))
        self._measuring = False

    def _at_limit(self) -> bool:
        return self._limit is not None and len(self.lines) >= self._limit

    def _room(self) -> bool:
        return not self._at_limit() and len(self.lines) < self._max_lines

    def _take(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        size = len(text.encode()) + (1 if self.lines else 0)
        if self.size + size > self._max_bytes:
            self.stopped_by = "bytes"
            self.long_line = None if self.lines else len(line)
            return
        self.lines.append(text)
        self.size += size

    def _measure(self, chunk: bytes) -> None:
        end = chunk.find(b"\n")
        self.long_line = (self.long_line or 0) + (len(chunk) if end < 0 else end)
        self._measuring = end < 0


def select_lines(
    chunks: Iterable[bytes], *, offset: int = 1, limit: int | None = None, max_lines: int, max_bytes: int
) -> Selection:
    """Take lines out of a text in UTF-8; bytes that are none become U+FFFD.

    :param offset: the first line to take, from 1.
    :param limit: how many lines are wanted.
    :param max_lines: most lines in any case.
    :param max_bytes: most bytes of the lines taken, as UTF-8 with their newlines.
    """
    taker = _Taker(limit, max_lines, max_bytes)
    skip, newlines, total, skipped, ends_open = offset - 1, 0, 0, 0, False
    for chunk in chunks:
        if not chunk:
            continue
        found = chunk.count(b"\n")
        newlines += found
        total += len(chunk)
        ends_open = not chunk.endswith(b"\n")
        if found < skip:
            skip -= found
            skipped += len(chunk)
            continue
        begin = 0
        for _ in range(skip):
            begin = chunk.index(b"\n", begin) + 1
        skip = 0
        skipped += begin
        taker.feed(chunk[begin:] if begin else chunk)
    taker.finish()
    total_lines = newlines + ends_open
    whole = taker.stopped_by is None
    return Selection(
        text="\n".join(taker.lines) + ("\n" if whole and taker.lines and not ends_open else ""),
        lines=len(taker.lines),
        bytes=taker.size,
        stopped_by=taker.stopped_by,
        total_lines=total_lines,
        rest_lines=max(0, total_lines - offset + 1),
        rest_bytes=total - skipped,
        long_line=taker.long_line,
    )


def truncate_head(text: str, *, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> Truncation:
    """Keep the first lines of a text: as many whole ones as fit, none when the first one is too long by itself.

    A text within the limits is kept as it is; otherwise the newline of the last line is not shown.

    :param max_bytes: of UTF-8, newlines included.
    """
    selection = select_lines([to_text(text).encode()], max_lines=max_lines, max_bytes=max_bytes)
    return selection.truncation(max_lines, max_bytes)
