"""Tool arguments while their JSON text streams in, and when it is complete.

``ArgumentsParser`` shows the arguments of a tool call that is still being written. It is tolerant: an unterminated
string shows the characters so far, an open container its complete members, ``tr`` is already true, and what makes no
sense is left out. ``parse_arguments`` is strict and decides what the tool gets.
"""

import json
import math
import re
from bisect import bisect_left, bisect_right
from typing import Any, Final, NoReturn


def parse_arguments(text: str) -> tuple[dict[str, Any], str | None]:
    """Parse the complete argument text of a tool call.

    The text has to be one JSON object. Two mistakes that models make inside strings are forgiven: raw control
    characters, and a backslash before a character that needs none. A text cut off in the middle is an error; nothing
    of it is kept.

    :param text: the whole text as the model wrote it; empty or blank means no arguments.
    :returns: the arguments and ``None``; or no arguments and an error that tells the model what is wrong and what was
        received.
    """
    if not text or text.isspace():
        return {}, None
    try:
        try:
            value = _JSON.decode(text)
        except ValueError:
            value = _JSON.decode(_BACKSLASH.sub(lambda match: match[1] or r"\\", text))
        if not isinstance(value, dict):
            error = "Tool arguments must be a JSON object"
        elif _too_deep(text, value):
            error = "Tool arguments are nested too deeply"
        else:
            return value, None
    except ValueError as failure:
        error = str(failure)
    except RecursionError:
        error = "Tool arguments are nested too deeply"
    return {}, f"{error}\n\nReceived arguments:\n{text}"


_MOST_NESTED: Final = 200
"""Containers inside each other; messages with more could not be turned into JSON again."""


def _too_deep(text: str, value: Any) -> bool:
    if text.count("{") + text.count("[") <= _MOST_NESTED:
        return False
    level = [value]
    for _ in range(_MOST_NESTED):
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True


class ArgumentsParser:
    """The arguments of one tool call whose JSON text arrives in pieces.

    Feeding only stores the piece; the text is parsed when a value is read, and only the part that no earlier read has
    parsed. Values are snapshots: one that was handed out never changes, and it shares its complete parts with later
    ones, so treat it as read-only.
    """

    __slots__ = ("_deltas", "_position", "_reader", "_starts")

    def __init__(self) -> None:
        self._deltas: list[str] = []
        self._starts = [0]
        self._reader: _Reader | None = None
        self._position = 0

    def feed(self, delta: str) -> None:
        """Append the next piece of the text, of any length."""
        self._deltas.append(delta)

    @property
    def length(self) -> int:
        """The number of characters fed so far."""
        starts = self._starts
        total = starts[-1]
        for delta in self._deltas[len(starts) - 1 :]:
            total += len(delta)
            starts.append(total)
        return total

    @property
    def text(self) -> str:
        """The whole text fed so far."""
        return "".join(self._deltas)

    @property
    def value(self) -> dict[str, Any]:
        """The arguments as far as they are known; empty as long as the text is not an object.

        The same object is returned until the value changes. Where thousands of members stand in containers that are
        still open, the value may lag behind the text until they close; ``finish`` is exact.
        """
        return self.value_at(self.length)

    def value_at(self, length: int) -> dict[str, Any]:
        """Return the value as it was when only the beginning of the text had been fed.

        Reading forwards continues from the last read; reading backwards parses the beginning again.

        :param length: the number of characters of that beginning; at the current ``length`` this is ``value``.
        :raises ValueError: the length is negative or beyond the current one.
        """
        total = self.length
        if not 0 <= length <= total:
            raise ValueError(f"value_at: length {length} is not within the {total} characters fed so far")
        if length < self._position:
            reader = _Reader()
            reader.read(self._between(0, length))
            return reader.value(exact=True)
        if self._reader is None:
            self._reader = _Reader()
        if length > self._position:
            self._reader.read(self._between(self._position, length))
            self._position = length
        return self._reader.value(exact=length < total)

    def finish(self) -> tuple[dict[str, Any], str | None]:
        """Parse the whole text fed so far, as :func:``parse_arguments`` does."""
        return parse_arguments(self.text)

    def _between(self, start: int, stop: int) -> str:
        first = bisect_right(self._starts, start) - 1
        last = bisect_left(self._starts, stop)
        offset = self._starts[first]
        return "".join(self._deltas[first:last])[start - offset : stop - offset]


def _reject(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not valid JSON")


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise ValueError(f"The number {number} is out of range")
    return value


_JSON = json.JSONDecoder(strict=False, parse_constant=_reject, parse_float=_finite)

_ESCAPE = r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})'
_BACKSLASH = re.compile(rf"({_ESCAPE})|\\")
# The first half of a surrogate pair waits for the second one, so that both become one character.
_UNFINISHED = re.compile(r"(?:\\u[dD][89abAB][0-9a-fA-F]{2})?(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z")
_CHARACTERS = re.compile(rf'(?:[^"\\]++|(?!{_UNFINISHED.pattern}){_ESCAPE})++')
_TOKEN = re.compile(r'[ \t\n\r:]+|(?P<mark>[{}\[\],"])|(?P<word>[^ \t\n\r:{}\[\],"]+)')
_BARE_EXPONENT = re.compile(r"(?<=[0-9])[eE][+-]?\Z")

_LITERALS: Final = {"true": True, "false": False, "null": None}
_NOTHING: Final[Any] = object()

_SHOWN_WORD = 64
# Deeper values are left out of snapshots: not every consumer could serialize them.
_SHOWN_DEPTH = 100
# A snapshot copies the members of all open containers. With this allowance the copies stay linear in the text.
_COPIES_PER_READ = 1024
_COPIES_PER_CHARACTER = 8


class _Open:
    """A container that is not closed yet: its complete members and, in an object, the key that waits for a value."""

    __slots__ = ("items", "key")

    def __init__(self, items: dict[str, Any] | list[Any], key: str | None = None) -> None:
        self.items = items
        self.key = key

    @property
    def wants_value(self) -> bool:
        return self.key is not None or isinstance(self.items, list)

    def add(self, value: Any) -> None:
        """Ends the member being read; it is dropped if it has no value or no key."""
        if value is not _NOTHING:
            if isinstance(self.items, list):
                self.items.append(value)
            elif self.key is not None:
                self.items[self.key] = value
        self.key = None


class _Reader:
    """The state between two pieces of text: the open containers and, inside the last, an open string or word.

    The outermost container is a list that takes the root value; closed containers are never touched again.
    """

    __slots__ = ("_budget", "_changed", "_held", "_quoted", "_shown", "_stack", "_token", "_value")

    def __init__(self) -> None:
        self._stack = [_Open([])]
        self._token = ""
        self._quoted = False
        self._held = ""
        self._value: dict[str, Any] = {}
        self._shown: Any = _NOTHING
        self._changed = False
        self._budget = 0

    def read(self, text: str) -> None:
        """Takes the next piece of the text."""
        self._budget += _COPIES_PER_READ + _COPIES_PER_CHARACTER * len(text)
        text, self._held = self._held + text, ""
        position = self._read_string(text, 0) if self._quoted else 0
        while not self._complete and (match := _TOKEN.match(text, position)):
            position = match.end()
            if match.lastgroup == "word":
                self._token += match[0]
                continue
            if self._token:
                self._end_token(_closed_word(self._token))
            mark = match["mark"]
            if mark == '"':
                self._quoted = True
                position = self._read_string(text, position)
            elif mark:
                self._take_mark(mark)

    def value(self, *, exact: bool) -> dict[str, Any]:
        """Returns a snapshot: a new one if the value has changed and, unless it must be exact, the budget allows it."""
        open_value = self._open_value()
        if not (self._changed or _differ(open_value, self._shown)):
            return self._value
        shown = self._stack[:_SHOWN_DEPTH]
        cost = sum(len(container.items) for container in shown)
        if cost > self._budget and not exact:
            return self._value
        self._budget = max(0, self._budget - cost)
        self._changed, self._shown = False, open_value
        value = open_value
        for container in reversed(shown):
            copy = _Open(container.items.copy(), container.key)
            copy.add(value)
            value = copy.items
        root = value[0] if value and isinstance(value[0], dict) else {}
        if root or self._value:
            self._value = root
        return self._value

    @property
    def _complete(self) -> bool:
        return len(self._stack) == 1 and bool(self._stack[0].items)

    @property
    def _shows(self) -> bool:
        """Whether a value at this place is part of a snapshot."""
        return len(self._stack) <= _SHOWN_DEPTH and self._stack[-1].wants_value

    def _take_mark(self, mark: str) -> None:
        if mark == ",":
            self._stack[-1].key = None
        elif mark in "{[":
            self._changed |= self._shows
            self._stack.append(_Open({} if mark == "{" else []))
        elif len(self._stack) > 1:
            closed = self._stack.pop()
            self._stack[-1].add(closed.items if len(self._stack) < _SHOWN_DEPTH else _NOTHING)

    def _read_string(self, text: str, position: int) -> int:
        """Reads on in the open string and returns where it, or the text, ends."""
        pieces = [self._token]
        while True:
            if match := _CHARACTERS.match(text, position):
                position = match.end()
                pieces.append(_JSON.decode(f'"{match[0]}"') if "\\" in match[0] else match[0])
            ended = text.startswith('"', position)
            if ended or _UNFINISHED.match(text, position):
                break
            pieces.append("\\")
            position += 1
        self._token = "".join(pieces)
        if not ended:
            self._held = text[position:]
            return len(text)
        if self._stack[-1].wants_value:
            self._end_token(self._token)
        else:
            self._stack[-1].key = self._token
            self._token, self._quoted = "", False
        return position + 1

    def _end_token(self, value: Any) -> None:
        self._changed |= self._shows and _differ(value, self._shown)
        self._stack[-1].add(value)
        self._token, self._quoted, self._shown = "", False, _NOTHING

    def _open_value(self) -> Any:
        if not self._shows:
            return _NOTHING
        if self._quoted:
            return self._token
        return _open_word(self._token) if self._token else _NOTHING


def _closed_word(word: str) -> Any:
    try:
        return _JSON.decode(word)
    except ValueError:
        return _NOTHING


def _open_word(word: str) -> Any:
    if len(word) > _SHOWN_WORD:
        return _NOTHING
    for literal, value in _LITERALS.items():
        if literal.startswith(word):
            return value
    return _closed_word(_BARE_EXPONENT.sub("", word))


def _differ(one: Any, other: Any) -> bool:
    return one is not other and (type(one) is not type(other) or bool(one != other))
