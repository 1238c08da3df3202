"""Markdown that is still being written: what is finished is given away once, the rest can be drawn at any time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from markdown_it.token import Token
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from ._code import CONTEXT, highlighted
from ._markdown import PARSER, Answer

_CODE_LINES: Final = 8
"""Finished lines of an open fence that are given away together."""

_LONG: Final = 4_000
"""Characters of one paragraph after which it is cut; past this, the text is read again only when it has grown by a
quarter, so that the work stays in proportion to the text."""

_PARAGRAPH: Final = ["inline", "paragraph_close"]

_LISTS: Final = ("bullet_list_open", "ordered_list_open")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer that will not change any more.

    :param gap: whether an empty line stands before it.
    """

    content: RenderableType
    gap: bool


@dataclass(slots=True)
class _Fence:
    """A fence whose beginning was given away.

    :param end: matches the line that closes it.
    :param indent: spaces that are taken from each line.
    :param seen: the last lines that were given away.
    """

    language: str
    end: re.Pattern[str]
    indent: int
    seen: list[str]

    @classmethod
    def of(cls, token: Token, first_line: str) -> _Fence:
        mark = re.escape(token.markup[0])
        end = re.compile(rf" {{0,3}}{mark}{{{len(token.markup)},}}[ \t]*")
        indent = len(first_line) - len(first_line.lstrip(" "))
        return cls(token.info.strip().partition(" ")[0], end, indent, [])

    def bare(self, lines: Sequence[str]) -> list[str]:
        """Return lines of the fence as the code has them."""
        return [line[min(self.indent, len(line) - len(line.lstrip(" "))) :] for line in lines]


class GrowingMarkdown:
    """Splits a text that grows into finished pieces and a tail.

    A block is finished when the next one has begun, an item of a list when the next item has, and code line by line.

    :param hyperlinks: whether links can be clicked.
    """

    def __init__(self, *, hyperlinks: bool = False) -> None:
        self._hyperlinks = hyperlinks
        self._new: list[str] = []
        self._tail = ""
        self._tokens: list[Token] = []
        self._env: dict[str, Any] = {}
        self._fence: _Fence | None = None
        self._list: Token | None = None
        self._number = 0
        self._read = 0
        self._begun = False

    def feed(self, text: str) -> None:
        """Add text."""
        self._new.append(text)

    def take(self, *, final: bool = False) -> list[Piece]:
        """Return what has been finished since the last call.

        :param final: nothing follows, so everything is.
        """
        if self._new:
            self._tail += "".join(self._new)
            self._new.clear()
        elif not final:
            return []
        pieces = list(self._finished(final))
        if not self._begun and pieces:
            pieces[0] = replace(pieces[0], gap=False)
            self._begun = True
        return pieces

    def draft(self, lines: int) -> RenderableType | None:
        """Return the tail as it looks now; ``None`` when there is none.

        :param lines: how many of its last lines are wanted at most; of a long tail only the end is drawn.
        """
        if not self._tail.strip():
            return None
        if self._fence is not None:
            rows = self._fence.bare(self._tail.rstrip("\n").split("\n")[-lines:])
            return _code(highlighted(rows, self._fence.language, self._fence.seen))
        if self._read < len(self._tail) > _LONG:
            return Text("\n".join(self._tail[-_LONG:].split("\n")[-lines:]))
        known = {**self._env, "references": dict(self._env.get("references", {}))}
        return self._answer(self._numbered(PARSER.parse(self._tail, known)))

    @property
    def gap(self) -> bool:
        """Whether an empty line stands before the tail."""
        return self._begun and self._list is None and self._fence is None

    # --- splitting ---

    def _finished(self, final: bool) -> Iterator[Piece]:
        if self._fence is not None:
            yield from self._code_lines(self._fence, final)
            if self._fence is not None:
                return
        due = len(self._tail) <= _LONG or len(self._tail) >= self._read * 5 // 4
        if not (due or final):
            return
        # An unfinished line may still become anything, so that nothing is decided by it.
        self._parse(self._tail if final else self._tail[: self._tail.rfind("\n") + 1])
        yield from self._blocks(final)
        if self._fence is None and len(self._tail) > _LONG:
            yield from self._cut_paragraph()

    def _parse(self, text: str) -> None:
        tokens = PARSER.parse(text, self._env)
        if self._list is not None and tokens and not self._goes_on(tokens[0]):
            self._list = None
        self._tokens, self._read = self._numbered(tokens), len(self._tail)

    def _goes_on(self, opening: Token) -> bool:
        """Whether a list is the one of which items were given away."""
        begun = self._list
        return begun is not None and opening.type == begun.type and opening.markup == begun.markup

    def _numbered(self, tokens: list[Token]) -> list[Token]:
        if tokens and self._goes_on(tokens[0]):
            tokens[0] = _renumbered(tokens[0], self._number)
        return tokens

    def _blocks(self, final: bool) -> Iterator[Piece]:
        blocks = list(_top_level(self._tokens))
        if not blocks:
            if final:
                self._tail = ""
            return
        for block in blocks if final else blocks[:-1]:
            yield Piece(self._answer(block), self._list is None)
            self._list = None
        if final:
            self._tail, self._tokens = "", []
            return
        last = blocks[-1]
        self._cut(last)
        if last[0].type in _LISTS:
            yield from self._items(last)
        elif last[0].type == "fence":
            self._open(last[0])
            if self._fence is not None:
                yield from self._code_lines(self._fence, final)

    def _cut(self, block: list[Token]) -> None:
        """Leave a block only in the tail."""
        begin = (block[0].map or [0])[0]
        if begin:
            self._tail = _from_line(self._tail, begin)
            self._read = len(self._tail)
        self._tokens = block

    def _items(self, block: list[Token]) -> Iterator[Piece]:
        """Give away all items of a list but the last."""
        items = list(_children(block))
        if len(items) < 2:
            return
        opening, closing = block[0], block[-1]
        first = int(opening.attrs.get("start", 1))
        for position, item in enumerate(items[:-1]):
            yield Piece(self._answer([_renumbered(opening, first + position), *item, closing]), self._list is None)
            self._list = opening
        self._number = first + len(items) - 1
        begin = (items[-1][0].map or [0])[0] - (opening.map or [0])[0]
        self._tail = _from_line(self._tail, begin)
        self._tokens = [_renumbered(opening, self._number), *items[-1], closing]
        self._read = len(self._tail)

    def _open(self, token: Token) -> None:
        """Take the last block for an open fence once it has enough lines to give away."""
        lines = self._tail.split("\n")
        fence = _Fence.of(token, lines[0])
        if any(fence.end.fullmatch(line) for line in lines[1:]) or len(lines) <= _CODE_LINES:
            return
        self._fence, self._list = fence, None
        self._tail = self._tail.partition("\n")[2]

    def _code_lines(self, fence: _Fence, final: bool) -> Iterator[Piece]:
        complete, newline, rest = self._tail.rpartition("\n")
        lines = complete.split("\n") if newline else []
        closed = next((number for number, line in enumerate(lines) if fence.end.fullmatch(line)), None)
        if closed is not None:
            after = lines[closed + 1 :]
            self._tail = "\n".join([*after, rest]) if after else rest
            lines = lines[:closed]
        elif final:
            lines += [] if not rest or fence.end.fullmatch(rest) else [rest]
            self._tail = ""
        elif len(lines) < _CODE_LINES:
            return
        else:
            self._tail = rest
        bare = fence.bare(lines)
        if bare:
            yield Piece(_code(highlighted(bare, fence.language, fence.seen)), gap=not fence.seen)
        fence.seen = [*fence.seen, *bare][-CONTEXT:]
        if closed is not None or final:
            self._fence, self._read = None, 0

    def _cut_paragraph(self) -> Iterator[Piece]:
        """Give away most of a paragraph that has become very long; other blocks are left whole."""
        end = max(self._tail.rfind(space, 0, len(self._tail) - 1) for space in " \n")
        if end > 0 and [token.type for token in PARSER.parse(self._tail, dict(self._env))][1:] == _PARAGRAPH:
            yield Piece(self._answer(PARSER.parse(self._tail[:end], self._env)), True)
            self._tail = self._tail[end + 1 :]
            self._parse(self._tail)

    def _answer(self, tokens: Sequence[Token]) -> Answer:
        return Answer(tokens, hyperlinks=self._hyperlinks)


def _code(text: Text) -> RenderableType:
    return Padding(text, (0, 0, 0, 2), expand=False)


def _from_line(text: str, number: int) -> str:
    """Return a text without its first lines."""
    start = 0
    for _ in range(number):
        start = text.index("\n", start) + 1
    return text[start:]


def _renumbered(opening: Token, number: int) -> Token:
    if opening.type != "ordered_list_open":
        return opening
    made = opening.copy()
    made.attrs = {**opening.attrs, "start": number}
    return made


def _top_level(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The tokens of each top-level block."""
    yield from _split(tokens, 0)


def _children(block: Sequence[Token]) -> Iterator[list[Token]]:
    """The tokens of each item of a list."""
    yield from _split(block[1:-1], 1)


def _split(tokens: Sequence[Token], level: int) -> Iterator[list[Token]]:
    starts = [number for number, token in enumerate(tokens) if token.level == level and token.nesting >= 0]
    for begin, end in pairwise([*starts, len(tokens)]):
        yield list(tokens[begin:end])
