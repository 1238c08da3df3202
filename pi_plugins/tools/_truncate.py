"""Limits on what a tool shows the model, and the words that say so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


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
