r"""The regular expressions that ``grep`` takes, put into words that ripgrep and Python understand alike.

Both programs have dialects of their own. What is the same in both, or can be said in both, is supported; everything
else is refused, so that a search finds the same lines whichever program runs it. A pattern never matches the end of a
line, and bytes that are no UTF-8 match nothing but themselves in a longer line.

Supported: alternatives, groups (named ones too), ``* + ? {n,m}`` and their lazy forms, classes with ranges and POSIX
names, ``. ^ $ \A \z \b \d \w \s \D \W \S``, ``\t \x41 \u{e9}``, and the flags ``i``, ``s``, ``m``, ``u``. A brace
that begins no repetition stands for itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ._char_class import complement, escape, stands_in_lines, written
from ._errors import ToolError
from ._glob import POSIX_RANGES

MAX_CHARACTERS = 10_000
"""Longest pattern."""

MAX_REPEAT = 1000
"""Largest number in braces."""

_MAX_SIZE = 20_000
_SIZES = {"w": 20, "d": 5, "s": 5}
_MAX_DEPTH = 100
_CONTROLS = {"a": 0x07, "f": 0x0C, "t": 0x09, "v": 0x0B}
_REPEAT = re.compile(r"\{(\d*)(,?)(\d*)\}")
_GROUP = re.compile(r"\?(?:P?<([A-Za-z_]\w*)>|([a-zA-Z]*)(?:-([a-zA-Z]+))?(:|\)))", re.ASCII)
_HEX = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|[xuU]\{([0-9a-fA-F]{1,8})\}")
_POSIX = re.compile(r"\[:(\^?)(\w+):\]")


@dataclass(frozen=True, slots=True)
class LinePattern:
    """A pattern for one line, as each program has it.

    :param ripgrep: for ripgrep with ``--crlf``.
    :param python: for :mod:`re` with ``re.MULTILINE``, on text in which bytes that are no UTF-8 stand as surrogates.
    """

    ripgrep: str
    python: str


def line_pattern(pattern: str, *, literal: bool = False, ignore_case: bool = False) -> LinePattern:
    """Translate a pattern.

    :param literal: it is plain text.
    :param ignore_case: how the programs are going to be run.
    :raises ToolError: it is no regular expression, or one that only one of the programs understands.
    """
    if len(pattern) > MAX_CHARACTERS:
        raise ToolError(f"pattern has {len(pattern)} characters, the most are {MAX_CHARACTERS}")
    if any(end in pattern for end in "\0\n\r"):
        raise ToolError("pattern must be one line of text: each line is searched by itself")
    if literal:
        return LinePattern("".join(map(escape, pattern)), "".join(map(escape, pattern)))
    return _Parser(pattern, ignore_case).parse()


@dataclass(slots=True)
class _Node:
    """A part of the pattern in both forms.

    :param size: how many characters it may stand for; a class that ripgrep compiles to much counts more than once.
    :param repeats: whether a repetition may follow.
    """

    ripgrep: str
    python: str
    size: int = 1
    repeats: bool = True


class _Parser:
    def __init__(self, pattern: str, ignore_case: bool) -> None:
        self._pattern = pattern
        self._position = 0
        self._default_case = self._ignore_case = ignore_case

    def parse(self) -> LinePattern:
        node = self._alternatives(0)
        if self._position < len(self._pattern):
            raise self._error("unopened group")
        return LinePattern(node.ripgrep, node.python)

    def _alternatives(self, depth: int) -> _Node:
        if depth > _MAX_DEPTH:
            raise self._error(f"groups are nested more than {_MAX_DEPTH} deep")
        ignore_case = self._ignore_case
        ripgrep, python, size = "", "", 0
        while (character := self._peek()) and character != ")":
            if self._take("|"):
                ripgrep, python = ripgrep + "|", python + "|"
                continue
            node = self._repeated(self._atom(depth))
            ripgrep, python, size = ripgrep + node.ripgrep, python + node.python, size + node.size
            if size > _MAX_SIZE:
                raise self._error("its repetitions make it too large")
        self._ignore_case = ignore_case
        return _Node(ripgrep, python, size)

    def _repeated(self, node: _Node) -> _Node:
        sign, most = self._repetition()
        if not sign:
            return node
        if not node.repeats:
            raise self._error("a repetition needs something to repeat before it")
        self._take("?")
        if self._repetition()[0]:
            raise self._error("a repetition of a repetition; put the inner one into a group: (?:...)")
        return _Node(node.ripgrep + sign, node.python + sign, node.size * most)

    def _repetition(self) -> tuple[str, int]:
        """Take a repetition and return how both programs write it, and how often that is at most."""
        for sign in "*+?":
            if self._take(sign):
                return sign, 1
        match = _REPEAT.match(self._pattern, self._position)
        if match is None or not (match[1] or match[3]):
            return "", 1
        least = int(match[1] or 0)
        most = least if not match[2] else int(match[3]) if match[3] else None
        if max(least, most or 0) > MAX_REPEAT:
            raise self._error(f"the most repetitions are {MAX_REPEAT}")
        if most is not None and most < least:
            raise self._error("the second number of a repetition is smaller than the first")
        self._position = match.end()
        return f"{{{least},{'' if most is None else most}}}", max(1, least, most or 0)

    def _atom(self, depth: int) -> _Node:
        character = self._peek()
        if character == "(":
            return self._group(depth)
        if character == "[":
            return self._class()
        if character == "\\":
            return self._escaped()
        if self._repetition_begins():
            raise self._error("a repetition needs something to repeat before it")
        self._position += 1
        if character == ".":
            return self._set((), negated=True)
        if character in "^$":
            return _Node(character, character, repeats=False)
        return self._character(ord(character))

    def _repetition_begins(self) -> bool:
        position = self._position
        try:
            return bool(self._repetition()[0])
        finally:
            self._position = position

    def _group(self, depth: int) -> _Node:
        start = self._position
        self._position += 1
        before = self._ignore_case
        if self._peek() == "?":
            match = _GROUP.match(self._pattern, self._position)
            if match is None:
                self._position = start
                raise self._error("this kind of group is not supported; look-around and conditions are not")
            self._set_flags(match[2] or "", match[3] or "")
            self._position = match.end()
            if match[4] == ")":
                return _Node("", "", 0, repeats=False)
        node = self._alternatives(depth + 1)
        self._ignore_case = before
        if not self._take(")"):
            self._position = start
            raise self._error("unclosed group")
        return _Node(f"(?:{node.ripgrep})", f"(?:{node.python})", node.size)

    def _set_flags(self, on: str, off: str) -> None:
        for flag in (*on, *(f"-{letter}" for letter in off)):
            if flag not in ("i", "-i", "s", "-s", "m", "u"):
                raise self._error(f"the flag {flag} is not supported")
            if flag.endswith("i"):
                self._ignore_case = flag == "i"

    def _escaped(self) -> _Node:
        letter = self._pattern[self._position + 1 : self._position + 2]
        if letter and letter in "dwsDWS":
            self._position += 2
            return self._set([letter])
        if letter == "b":
            self._position += 2
            return _Node("\\b", "\\b", repeats=False)
        if letter and letter in "AzZ":
            self._position += 2
            end = "^" if letter == "A" else "$"
            return _Node(end, end, repeats=False)
        return self._character(self._escaped_character())

    def _escaped_character(self) -> int:
        letter = self._pattern[self._position + 1 : self._position + 2]
        if not letter:
            raise self._error("a backslash at the end")
        if letter in "nr":
            raise self._error(f"\\{letter} can match nothing: the end of a line is no part of it")
        if letter in _CONTROLS:
            self._position += 2
            return _CONTROLS[letter]
        match = _HEX.match(self._pattern, self._position + 1)
        if match is not None:
            code = int(next(filter(None, match.groups())), 16)
            if not stands_in_lines(code):
                raise self._error("no character of a line of text has this number")
            self._position = match.end()
            return code
        if letter.isdigit():
            raise self._error("backreferences are not supported")
        if letter in "pP":
            raise self._error("classes of Unicode are not supported; name the characters, as in [a-zà-ÿ]")
        if letter.isalnum() or letter in "<>" or not letter.isascii():
            raise self._error(f"\\{letter} is not supported")
        self._position += 2
        return ord(letter)

    def _class(self) -> _Node:
        start = self._position
        self._position += 1
        negated = self._take("^")
        items: list[str | tuple[int, int]] = []
        first = True
        while first or self._peek() != "]":
            if self._position >= len(self._pattern):
                self._position = start
                raise self._error("unclosed character class")
            first = False
            posix = _POSIX.match(self._pattern, self._position)
            if posix is not None and posix[2] in POSIX_RANGES:
                self._position = posix.end()
                ranges = POSIX_RANGES[posix[2]]
                items += complement(ranges) if posix[1] else ranges
                continue
            if self._pattern.startswith(("&&", "--", "~~"), self._position):
                raise self._error("operations on classes are not supported")
            low = self._class_item()
            if isinstance(low, str):
                items.append(low)
                continue
            high: int | str = low
            if self._peek() == "-" and self._pattern[self._position + 1 : self._position + 2] not in ("]", "-", ""):
                self._position += 1
                high = self._class_item()
            if isinstance(high, str) or high < low:
                raise self._error("a range must go from one character to a later one")
            items.append((low, high))
        self._position += 1
        return self._set(items, negated=negated)

    def _class_item(self) -> int | str:
        """Take a character of a class, or one of the classes that a letter stands for."""
        character = self._peek()
        if character == "[":
            raise self._error("a class in a class is not supported; \\[ is the bracket itself")
        if character != "\\":
            self._position += 1
            return ord(character)
        letter = self._pattern[self._position + 1 : self._position + 2]
        if letter and letter in "dwsDWS":
            self._position += 2
            return letter
        if letter == "b":
            raise self._error("\\b is no character")
        return self._escaped_character()

    def _character(self, code: int) -> _Node:
        text = escape(chr(code))
        return _Node(self._in_case(text), self._in_case(text))

    def _set(self, items: Iterable[str | tuple[int, int]], *, negated: bool = False) -> _Node:
        """Return a class of characters; the end of a line and bytes that are no UTF-8 are in none."""
        items = list(items)
        letters = [f"\\{item}" for item in items if isinstance(item, str)]
        both = written([item for item in items if not isinstance(item, str)], letters, negated=negated)
        if both is None:
            raise self._error("this class matches no character of a line")
        size = max((_SIZES[letter[1].lower()] for letter in letters), default=1)
        return _Node(self._in_case(both[0]), self._in_case(both[1]), size)

    def _in_case(self, text: str) -> str:
        if self._ignore_case == self._default_case:
            return text
        return f"(?{'' if self._ignore_case else '-'}i:{text})"

    def _peek(self) -> str:
        return self._pattern[self._position : self._position + 1]

    def _take(self, character: str) -> bool:
        if self._peek() != character:
            return False
        self._position += 1
        return True

    def _error(self, what: str) -> ToolError:
        shown = "".join(character if character.isprintable() else "\ufffd" for character in self._pattern)
        return ToolError(f"regex parse error:\n    {shown}\n    {' ' * self._position}^\nerror: {what}")
