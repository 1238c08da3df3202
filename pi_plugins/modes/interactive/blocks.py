"""What is printed into the conversation: blocks, and what of them is folded away."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from rich.console import Group
from rich.text import Text

from . import marks
from ._text import count, plain

if TYPE_CHECKING:
    from rich.console import RenderableType

_KEPT: Final = 100
"""Folded things that can be unfolded."""

LINE: Final = 2_000
"""Characters of one line that are printed."""

_EMPTY: Final = re.compile(r"\n[ \n]*\n[ \n]*\n")

_LINE_SHOWN: Final = 300
"""Characters of a line of output that are printed while it is folded."""

Whole: TypeAlias = "Callable[[], RenderableType]"
"""Makes the whole of what is folded, when it is wanted."""


@dataclass(slots=True)
class Block:
    """A part of the conversation.

    :param content: what is printed.
    :param mark: a sign before the first line, and its style.
    :param gap: whether an empty line stands before it.
    :param terse: whether none stands between it and others like it.
    :param fallback: what is printed when the content cannot be.
    :param renderer: the plugins that made the content; empty when none did.
    :param whole: all of it, when the content is folded.
    """

    content: RenderableType
    mark: str = ""
    style: str = ""
    gap: bool = True
    terse: bool = False
    fallback: RenderableType | None = None
    renderer: str = ""
    whole: Whole | None = None


class Folds:
    """What was folded, the newest first."""

    def __init__(self) -> None:
        self._kept: list[Whole] = []
        self._next = 0

    def add(self, whole: Whole) -> None:
        """Keep a folded thing."""
        self._kept = [*self._kept[1 - _KEPT :], whole]
        self._next = len(self._kept)

    def unfold(self) -> Block | None:
        """Return the newest thing that was not unfolded yet; ``None`` when there is no other."""
        if not self._next:
            return None
        self._next -= 1
        return Block(self._kept[self._next](), mark=marks.UNFOLDED, style="dim")


def folded(
    lines: list[str],
    limit: int,
    *,
    end: bool = False,
    style: str = "dim",
    longest: int = _LINE_SHOWN,
    draw: Callable[[list[str]], RenderableType] | None = None,
) -> tuple[RenderableType, bool]:
    """Return some of many lines with a word on how many there are more, and whether there is more than is shown.

    :param limit: lines that are shown.
    :param end: show the last ones.
    :param longest: characters that are shown of a line.
    :param draw: makes what is shown of the lines; text of the style by default.
    """
    fits = len(lines) <= limit + 1
    kept = lines if fits else lines[-limit:] if end else lines[:limit]
    cut = any(len(line) > longest for line in kept)
    kept = [line if len(line) <= longest else f"{line[:longest]}…" for line in kept]
    shown = draw(kept) if draw is not None else Text("\n".join(kept), style)
    if fits and not cut:
        return shown, False
    left = "longer lines" if fits else count(len(lines) - limit, "more line")
    rest = Text(f"… {left} · ctrl-o", "dim italic")
    return Group(*([rest, shown] if end and not fits else [shown, rest])), True


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, safe to print; none when it is empty."""
    safe = _EMPTY.sub("\n\n", plain(text).strip("\n"))
    return [line[:LINE] + "…" if len(line) > LINE else line for line in safe.split("\n")] if safe else []
