"""Turns what is to be shown into lines for the terminal."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Final

from rich.console import Console

from .theme import RICH

if TYPE_CHECKING:
    from rich.console import RenderableType

INDENT: Final = 2
"""Columns before everything that is said; what marks a line stands in them."""

_LINK: Final = re.compile("\x1b\\]8;[^\x1b\x07]*(?:\x1b\\\\|\x07)")


class Paper:
    """Renders for a terminal.

    :param color: whether colors may be used; bold, dim and the like always are.
    """

    def __init__(self, *, color: bool = True) -> None:
        self._console = Console(
            file=io.StringIO(),
            force_terminal=True,
            color_system="standard",
            no_color=not color,
            theme=RICH,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
            width=80,
        )

    def lines(self, content: RenderableType, width: int, *, indent: int = INDENT) -> list[str]:
        """Return lines with escape sequences for their styles.

        :param width: columns of the terminal.
        :param indent: spaces before each line.
        """
        console = self._console
        console.width = max(8, width - indent)
        with console.capture() as capture:
            console.print(content, soft_wrap=False)
        margin = " " * indent
        lines = capture.get().rstrip("\n").split("\n")
        return [margin + line.rstrip(" ") if line.strip() else "" for line in lines]


def without_links(line: str) -> str:
    """Return a line without the sequences of links, which the live region cannot draw."""
    return _LINK.sub("", line)
