"""Draws a screen as a picture: SVG with the fonts of whoever looks at it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape, unescape
from itertools import groupby
from typing import Final, TypeAlias

import pyte
from pyte.screens import Char

_WIDTH: Final = 8.4
_HEIGHT: Final = 19
_PADDING: Final = 14

_COLORS: Final = {
    "default": "#d8dee9",
    "black": "#3b4252",
    "red": "#e06c75",
    "green": "#98c379",
    "brown": "#e5c07b",
    "blue": "#61afef",
    "magenta": "#c678dd",
    "cyan": "#56b6c2",
    "white": "#e5e9f0",
    "brightblack": "#7f8796",
}
_STYLES: Final = re.compile(rb"\x1b\[([0-9;]+)m")

_Run: TypeAlias = "tuple[int, int, str, Char]"


def picture(raw: bytes, columns: int, rows: int, title: str) -> str:
    """Return the screen after what a program wrote, without the empty rows at its end.

    :param raw: all that was written.
    :param title: what the picture shows, for those who cannot see it.
    """
    screen = pyte.Screen(columns, rows)
    pyte.ByteStream(screen).feed(_STYLES.sub(_gray_for_dim, raw))
    shown = [y for y, line in enumerate(screen.display) if line.strip()]
    height = (max(shown, default=0) + 1) * _HEIGHT + 2 * _PADDING
    width = round(columns * _WIDTH + 2 * _PADDING)
    texts = [_text(y, *run) for y in shown for run in _runs(screen.buffer[y], columns)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-size="14"',
            "  font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\">",
            f"<title>{escape(title)}</title>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#1e222a"/>',
            *texts,
            "</svg>\n",
        ]
    )


def text_of(drawn: str) -> str:
    """Return the text of a picture, a line for each row, with one space between parts of it."""
    parts = re.findall(r' y="(\d+)" [^>]*>([^<]*)</text>', drawn)
    rows = groupby(parts, key=lambda part: part[0])
    return "\n".join(" ".join(unescape(text) for _, text in row) for _, row in rows)


def _gray_for_dim(found: re.Match[bytes]) -> bytes:
    """What pyte does not know is dim text."""
    codes = found[1].split(b";")
    colored = any(code in (b"39", *(str(number).encode() for number in range(30, 38))) for code in codes)
    return b"\x1b[" + b";".join(b"90" if code == b"2" and not colored else code for code in codes) + b"m"


def _runs(line: dict[int, Char], columns: int) -> Iterator[_Run]:
    """The parts of a row that look the same: first column, columns, text, and how they look."""
    for same, part in groupby(range(columns), key=lambda x: line[x]._replace(data="")):
        cells = list(part)
        text = "".join(line[x].data for x in cells)
        if text.strip():
            first = len(text) - len(text.lstrip())
            yield cells[0] + first, len(cells) - first - (len(text) - len(text.rstrip())), text.strip(), same


def _text(y: int, x: int, columns: int, text: str, style: Char) -> str:
    looks = f'fill="{_COLORS.get(style.fg, _COLORS["default"])}"'
    looks += ' font-weight="bold"' if style.bold else ""
    looks += ' font-style="italic"' if style.italics else ""
    looks += ' text-decoration="underline"' if style.underscore else ""
    place = f'x="{_PADDING + x * _WIDTH:.1f}" y="{_PADDING + y * _HEIGHT + 14}" textLength="{columns * _WIDTH:.1f}"'
    place += ' lengthAdjust="spacingAndGlyphs"'
    return f'<text {place} {looks} xml:space="preserve">{escape(text)}</text>'
