"""Limits on what a tool shows the model, and the words that say so."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Any, Literal

from ._content import to_text

MAX_LINES = 2000
"""Most lines that are shown, by default."""

MAX_BYTES = 50 * 1024
"""Most bytes of UTF-8 that are shown, by default."""

MAX_LINE_CHARACTERS = 500
"""How much of a line is shown where lines are listed."""


@dataclass(slots=True)
class Truncation:
    """What was shown of a text, and what of it there is; sizes are bytes of UTF-8.

    :param truncated_by: the limit that was hit; ``None`` when everything is shown.
    :param last_line_partial: the shown part begins inside a line that is over the limit by itself.
    :param first_line_exceeds_limit: nothing is shown since the first line is over the limit by itself.
    """

    content: str
    truncated_by: Literal["lines", "bytes"] | None
    total_lines: int
    total_bytes: int
    output_lines: int
    output_bytes: int
    max_lines: int
    max_bytes: int
    last_line_partial: bool = False
    first_line_exceeds_limit: bool = False

    @property
    def truncated(self) -> bool:
        """Whether something was left out."""
        return self.truncated_by is not None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, as it stands in the details of a result."""
        return {
            "content": self.content,
            "truncated": self.truncated,
            "truncatedBy": self.truncated_by,
            "totalLines": self.total_lines,
            "totalBytes": self.total_bytes,
            "outputLines": self.output_lines,
            "outputBytes": self.output_bytes,
            "lastLinePartial": self.last_line_partial,
            "firstLineExceedsLimit": self.first_line_exceeds_limit,
            "maxLines": self.max_lines,
            "maxBytes": self.max_bytes,
        }


def format_size(size: int) -> str:
    """Return a size in bytes the way people read it: ``12B``, ``1.5KB``, ``2.0MB``."""
    if size < 1024:
        return f"{size}B"
    if size < 1024 * 1024:
        return f"{size / 1024:.1f}KB"
    return f"{size / (1024 * 1024):.1f}MB"


def truncate_lines(lines: list[str], max_bytes: int) -> Truncation:
    """Keep as many whole lines from the start as fit."""
    kept: list[str] = []
    size = 0
    total = sum(len(line.encode()) + 1 for line in lines) - 1 if lines else 0
    for line in lines:
        added = len(line.encode()) + (1 if kept else 0)
        if size + added > max_bytes:
            break
        kept.append(line)
        size += added
    return Truncation(
        content="\n".join(kept),
        truncated_by="bytes" if len(kept) < len(lines) else None,
        total_lines=len(lines),
        total_bytes=total,
        output_lines=len(kept),
        output_bytes=size,
        max_lines=len(lines),
        max_bytes=max_bytes,
    )


def with_notices(text: str, notices: list[str]) -> str:
    """Append what was left out, in brackets after a blank line."""
    return f"{text}\n\n[{'. '.join(notices)}]" if notices else text


def truncate_line(line: str, max_characters: int = MAX_LINE_CHARACTERS) -> tuple[str, bool]:
    """Return a line, or its start and a mark when it is longer, and whether it was cut."""
    if len(line) <= max_characters:
        return line, False
    return line[:max_characters] + "... [truncated]", True


def truncate_tail(text: str, *, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> Truncation:
    """Keep the last lines of a text: as many whole ones as fit, or the end of the last one when not even that fits.

    A text within the limits is kept as it is; otherwise its final newline is not shown.

    :param max_bytes: of UTF-8, newlines included.
    """
    data = to_text(text).encode()
    lines = data.count(b"\n") + (0 if data.endswith(b"\n") or not data else 1)
    return tail_of(data, total_lines=lines, total_bytes=len(data), max_lines=max_lines, max_bytes=max_bytes)


def tail_of(
    end: bytes | bytearray, *, total_lines: int, total_bytes: int, max_lines: int, max_bytes: int
) -> Truncation:
    """Return what is shown of a text of which only the end is at hand.

    :param end: at least the last ``max_bytes + 2`` bytes of it, or all of it.
    """

    def shown(text: str, by: Literal["lines", "bytes"] | None, lines: int, *, partial: bool = False) -> Truncation:
        return Truncation(
            content=text,
            truncated_by=by,
            total_lines=total_lines,
            total_bytes=total_bytes,
            output_lines=lines,
            output_bytes=len(text.encode()),
            max_lines=max_lines,
            max_bytes=max_bytes,
            last_line_partial=partial,
        )

    if not exceeds(end, total_lines=total_lines, total_bytes=total_bytes, max_lines=max_lines, max_bytes=max_bytes):
        return shown(end.decode("utf-8", "replace"), None, total_lines)
    stop = len(end) - end.endswith(b"\n")
    start = max(0, stop - max_bytes)
    lines = bytes(end[start:stop]).split(b"\n")
    if start > 0 and end[start - 1 : start] != b"\n":
        if len(lines) == 1:
            return shown(decode_end(lines[0]), "bytes", 1, partial=True)
        del lines[0]
    by: Literal["lines", "bytes"] = "lines" if len(lines) >= max_lines else "bytes"
    lines = lines[-max_lines:]
    return shown(b"\n".join(lines).decode("utf-8", "replace"), by, len(lines))


def exceeds(end: bytes | bytearray, *, total_lines: int, total_bytes: int, max_lines: int, max_bytes: int) -> bool:
    """Say whether a text is over the limits; its final newline does not count."""
    return total_bytes - end.endswith(b"\n") > max_bytes or total_lines > max_lines


def decode_end(data: bytes | bytearray) -> str:
    """Decode the end of a text in UTF-8, which may begin inside of a character; what is none becomes U+FFFD."""
    start = 0
    while start < min(len(data), 3) and data[start] & 0xC0 == 0x80:
        start += 1
    return codecs.decode(data[start:], "utf-8", "replace")
