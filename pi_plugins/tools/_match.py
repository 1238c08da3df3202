"""Finds the text that an edit means: exactly, whatever the line endings are, and otherwise with typography forgiven."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator

Span = tuple[int, int]

FUZZY_CHARACTERS = 8 * 1024 * 1024
"""Largest text that is also searched with typography forgiven."""

_TYPOGRAPHY = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u1680\u202f\u205f\u3000", " "),
        **{chr(code): " " for code in range(0x2000, 0x200B)},
    }
)
_NEWLINE = r"(?:\r\n|(?<!\r)\n)"


def find_exact(text: str, wanted: str) -> list[Span]:
    """Return where ``wanted`` stands in ``text``, overlapping places too; its ``\\n`` matches ``\\r\\n`` as well."""
    if "\n" not in wanted:
        return [(start, start + len(wanted)) for start in _occurrences(text, wanted)]
    pattern = re.compile(_NEWLINE.join(re.escape(line) for line in wanted.split("\n")))
    spans: list[Span] = []
    match = pattern.search(text)
    while match is not None:
        spans.append(match.span())
        match = pattern.search(text, match.start() + 1)
    return spans


def _occurrences(text: str, wanted: str) -> Iterator[int]:
    start = text.find(wanted)
    while start >= 0:
        yield start
        start = text.find(wanted, start + 1)


class FuzzyText:
    """A text in which typography is forgiven.

    Compatibility forms, quotes, dashes, odd spaces and white space at line ends do not count; what is found is given
    in places of the text itself.
    """

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._starts: list[int] = []
        self._plain_starts: list[int] = []
        start = plain_start = 0
        plain: list[str] = []
        for line in self._lines:
            plain.append(_plain_line(line))
            self._starts.append(start)
            self._plain_starts.append(plain_start)
            start += len(line) + 1
            plain_start += len(plain[-1]) + 1
        self._plain = "\n".join(plain)

    def find(self, wanted: str) -> list[Span]:
        """Return where something like ``wanted`` stands."""
        plain = "\n".join(_plain_line(line) for line in wanted.split("\n"))
        if not plain.strip():
            return []
        spans = []
        for start in _occurrences(self._plain, plain):
            begin, end = self._place(start, is_end=False), self._place(start + len(plain), is_end=True)
            if begin is not None and end is not None:
                spans.append((begin, end))
        return spans

    def _place(self, position: int, *, is_end: bool) -> int | None:
        """Return the place in the text, ``None`` inside of what stands for one character."""
        number = bisect_right(self._plain_starts, position) - 1
        line, column = self._lines[number], position - self._plain_starts[number]
        if column == 0:
            return self._starts[number]
        offset = plain_column = 0
        for part in _parts(line):
            if plain_column >= column:
                break
            offset += len(part)
            plain_column += len(_plain(part))
        if plain_column != column:
            return None
        if not is_end and column == len(_plain_line(line)):
            offset = len(line.removesuffix("\r"))  # it begins with the line's end: what stands before that stays
        return self._starts[number] + offset


def _plain_line(line: str) -> str:
    if line.isascii():
        return line.rstrip()
    return "".join(_plain(part) for part in _parts(line)).rstrip()


def _plain(part: str) -> str:
    return part if part.isascii() else unicodedata.normalize("NFKC", part).translate(_TYPOGRAPHY)


def _parts(line: str) -> Iterator[str]:
    """Split a line into what is composed independently: a character and the marks that follow it."""
    begin = 0
    for position in range(1, len(line)):
        character = line[position]
        if character < "\u0300" or not (unicodedata.combining(character) or "\u1160" <= character <= "\u11ff"):
            yield line[begin:position]
            begin = position
    if line:
        yield line[begin:]


def line_ending(text: str, span: Span) -> str:
    """Return the line ending to use at a place: the one of the lines there, else of the text, else ``\\n``."""
    start, end = span
    newline = text.find("\n", start)
    if newline < 0:
        newline = text.rfind("\n", 0, end)
    return "\r\n" if newline > 0 and text[newline - 1] == "\r" else "\n"
