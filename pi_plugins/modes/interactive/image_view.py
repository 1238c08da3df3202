"""How images look: drawn where the terminal can, named everywhere."""

from __future__ import annotations

import base64
import binascii
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.segment import ControlType, Segment
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from pi_core import ImageContent

    from .abilities import Protocol

_MOST_ROWS: Final = 16
_CELL_WIDTH: Final = 8
"""Pixels that a cell is taken to be wide; it is twice as high."""

_PART: Final = 4096
"""Characters that kitty takes at once."""


@dataclass(slots=True)
class Drawing:
    """How images are drawn.

    :param protocol: the way the terminal takes them.
    :param columns: how wide they may be.
    """

    protocol: Protocol = "none"
    columns: int = 60


class Picture:
    """An image with its name. Drawn on a :class:`~pi_plugins.modes.interactive.paper.Paper`, as that says.

    :param image: what is shown.
    """

    def __init__(self, image: ImageContent) -> None:
        self._image = image

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        drawing = getattr(console, "drawing", None)
        if isinstance(drawing, Drawing) and drawing.protocol != "none":
            yield from self._drawn(drawing.protocol, min(drawing.columns, options.max_width))
        yield Text(image_name(self._image), "dim")

    def _drawn(self, protocol: Protocol, most: int) -> RenderResult:
        from pi_plugins.tools._image_headers import BrokenImageError, size_of

        try:
            # Nothing but the alphabet of base64 may reach the terminal.
            data = base64.b64decode(self._image.data, validate=True)
            width, height = size_of(data, self._image.mime_type)
        except (binascii.Error, BrokenImageError, KeyError):
            return
        if protocol == "kitty" and self._image.mime_type != "image/png":
            return
        columns, rows = _cells(width, height, most)
        text = base64.b64encode(data).decode()
        code = _kitty(text, columns, rows) if protocol == "kitty" else _iterm(text, columns, rows)
        # The rows are made first: what is drawn over the end of the screen would scroll.
        yield Segment("\n" * (rows - 1))
        up = f"\x1b[{rows - 1}A" if rows > 1 else ""
        yield Segment(f"\x1b7{up}{code}\x1b8", None, [(ControlType.CURSOR_UP, rows)])
        yield Segment("\n")


def _cells(width: int, height: int, most: int) -> tuple[int, int]:
    """Return the columns and rows of an image, at most as large as it is."""
    columns = max(1, min(most, math.ceil(width / _CELL_WIDTH)))
    rows = max(1, math.ceil(columns * height / width / 2))
    if rows > _MOST_ROWS:
        columns, rows = max(1, columns * _MOST_ROWS // rows), _MOST_ROWS
    return columns, rows


def _kitty(text: str, columns: int, rows: int) -> str:
    parts = [text[start : start + _PART] for start in range(0, len(text), _PART)]
    head = f"a=T,f=100,q=2,C=1,c={columns},r={rows},"
    return "".join(
        f"\x1b_G{'' if number else head}m={int(number < len(parts) - 1)};{part}\x1b\\"
        for number, part in enumerate(parts)
    )


def _iterm(text: str, columns: int, rows: int) -> str:
    return f"\x1b]1337;File=inline=1;width={columns};height={rows};preserveAspectRatio=1:{text}\x07"


def image_name(image: ImageContent) -> str:
    """Return what stands for an image."""
    size = len(image.data) * 3 // 4
    return f"[image: {image.mime_type.removeprefix('image/')}, {max(1, size // 1024):,} kB]"


__all__ = ["Drawing", "Picture", "image_name"]
