"""Turns what is to be shown into lines for the terminal."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Final

from rich.console import Console, Group
from rich.text import Text

from .image_view import Drawing
from .theme import RICH

if TYPE_CHECKING:
    from rich.console import RenderableType

INDENT: Final = 2
"""Columns before everything that is said; what marks a line stands in them."""

BEYOND_STYLES: Final = re.compile("\x1b(?:[]_][^\x1b\x07]*(?:\x1b\\\\|\x07)|\\[[0-9]*A|[78])")
"""What there may be in a line besides its text and styles: links and images."""


class _Console(Console):
    drawing: Drawing


class Paper:
    """Renders for a terminal.

    :param color: whether colors may be used.
    :param styles: whether bold, dim and the like may be; nothing but text is printed without.

    ``drawing`` says how images are drawn; they are only named at first.
    """

    def __init__(self, *, color: bool = True, styles: bool = True) -> None:
        self._console = _Console(
            file=io.StringIO(),
            force_terminal=True,
            color_system="standard" if styles else None,
            no_color=not color,
            theme=RICH,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
            # Without a height, too, the width would not count where TERM is dumb.
            width=80,
            height=24,
        )
        self._console.drawing = self.drawing = Drawing()
        self._marks: dict[tuple[str, str], str] = {}

    def lines(self, content: RenderableType, width: int, *, mark: str = "", style: str = "") -> list[str]:
        """Return lines with escape sequences for their styles.

        :param width: columns of the terminal.
        :param mark: a sign in the margin of the first line.
        :param style: the style of the sign.
        """
        margin = " " * INDENT
        text = self._printed(content, max(8, width - INDENT))
        lines = [margin + line.rstrip(" ") if line.strip() else "" for line in text.split("\n")]
        if mark:
            lines[0] = f"{self._mark(mark, style)} {lines[0][INDENT:]}"
        return lines

    def _printed(self, content: RenderableType, width: int) -> str:
        self._console.width = width
        with self._console.capture() as capture:
            # In a group, a text keeps its own way of being cut.
            self._console.print(Group(content))
        return capture.get().rstrip("\n")

    def _mark(self, mark: str, style: str) -> str:
        made = self._marks.get((mark, style))
        if made is None:
            made = self._marks[mark, style] = self._printed(Text(mark, style), 8)
        return made


def with_styles_only(line: str) -> str:
    """Return a line without links and images, which the live region cannot draw."""
    return BEYOND_STYLES.sub("", line)
