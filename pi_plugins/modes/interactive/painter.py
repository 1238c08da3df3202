"""Makes lines of blocks; what cannot be drawn is shown in its plain form, and who is to blame is named."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from rich.text import Text

from ._text import plain
from .blocks import Block
from .conversation import Conversation
from .paper import Paper, with_styles_only

_KEPT_LINES: Final = 400
"""Printed lines that can be printed again."""


@dataclass(slots=True)
class _Shown:
    """A block that was printed, and its lines with the empty one before it."""

    block: Block
    lines: list[str]
    gap: bool


class Painter:
    """Draws a conversation.

    :param conversation: what is drawn.
    :param paper: renders for the terminal.
    """

    def __init__(self, conversation: Conversation, paper: Paper) -> None:
        self._conversation = conversation
        self._paper = paper
        self._printed_any = False
        self._terse = False
        self._shown: deque[_Shown] = deque()

    def printed(self, width: int) -> list[str]:
        """Return the lines of what has become final since the last call.

        :param width: columns of the terminal.
        """
        lines: list[str] = []
        while blocks := self._conversation.take():
            # A block that cannot be drawn adds one that says so.
            for block in blocks:
                gap = self._gap(block)
                made = [*([""] if gap else []), *self._lines(block, width)]
                lines += made
                self._keep(_Shown(block, made, gap))
                self._printed_any, self._terse = True, block.terse
        return lines

    def _keep(self, shown: _Shown) -> None:
        self._shown.append(shown)
        kept = sum(len(one.lines) for one in self._shown)
        while kept - len(self._shown[0].lines) > _KEPT_LINES:
            kept -= len(self._shown.popleft().lines)

    def last_lines(self) -> list[str]:
        """Return the last lines that were printed."""
        return [line for one in self._shown for line in one.lines]

    def again(self, number: int, width: int) -> list[str]:
        """Return what the last lines that were printed are at another width.

        :param number: how many lines they were.
        """
        found: list[list[str]] = []
        for one in reversed(self._shown):
            if number <= 0:
                break
            before = len(one.lines)
            one.lines = [*([""] if one.gap else []), *self._lines(one.block, width)]
            # Of a block that was partly on the screen, the same part.
            part = len(one.lines) if number >= before else max(1, len(one.lines) * number // before)
            found.append(one.lines[-part:])
            number -= before
        return [line for lines in reversed(found) for line in lines]

    def live(self, width: int, rows: int) -> list[str]:
        """Return the lines of what goes on: the last ones, where there is no room for all.

        :param rows: how many lines there is room for.
        """
        if rows <= 0:
            return []
        return self._stacked(self._conversation.drafts(rows), width)[-rows:]

    def _stacked(self, blocks: Iterable[Block], width: int) -> list[str]:
        lines: list[str] = []
        printed_any, terse = self._printed_any, self._terse
        for block in blocks:
            if self._gap(block):
                lines.append("")
            lines += map(with_styles_only, self._lines(block, width))
            self._printed_any, self._terse = True, block.terse
        self._printed_any, self._terse = printed_any, terse
        return lines

    def _gap(self, block: Block) -> bool:
        return block.gap and self._printed_any and not (block.terse and self._terse)

    def _lines(self, block: Block, width: int) -> list[str]:
        try:
            return self._paper.lines(block.content, width, mark=block.mark, style=block.style)
        except Exception as error:
            self._conversation.could_not_draw(block, error)
        try:
            return self._paper.lines(block.fallback or Text(""), width, mark=block.mark, style=block.style)
        except Exception:
            return [plain(str(block.fallback))]
