"""JSON as people write it: read with the place of every fault and every value."""

from __future__ import annotations

import json
import re
import sys
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from pi_core import ConfigError

# Patterns are compiled when they are first used: a file without faults and comments needs none.
_COMMENT: Final = r'(?s)"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/'
_TOKEN: Final = r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+'

_DEEPEST: Final = 100
# No file of a user is nested half as deep, and what works on its values can be recursive.

JsonPath = tuple[str | int, ...]
"""The keys and indexes that lead to a value."""


class JsonDocument:
    """A JSON text and the place of its values.

    :param path: the file it came from, for messages.
    :param text: the text, without comments.
    :param value: what it holds. Of a key that is there twice the last value counts.
    """

    def __init__(self, path: Path, text: str, value: Any, *, has_duplicates: bool) -> None:
        self.path = path
        self.value = value
        self._text = text
        self._has_duplicates = has_duplicates
        self._places: dict[JsonPath, list[int]] | None = None
        self._line_ends: list[int] | None = None

    def place(self, path: Sequence[str | int] = ()) -> str:
        """Return where a value is, as ``FILE:LINE``; of a value that is not there, where what would hold it is."""
        places = self._found()
        at = tuple(path)
        while at and at not in places:
            at = at[:-1]
        return f"{self.path}:{self._line(places[at][-1])}"

    def duplicates(self) -> list[tuple[JsonPath, str]]:
        """Return each key that an object holds twice, with the places of all of its values."""
        if not self._has_duplicates:
            return []
        places = self._found()
        return [
            (path, " and ".join(f"line {self._line(offset)}" for offset in offsets))
            for path, offsets in places.items()
            if len(offsets) > 1 and len(places[path[:-1]]) == 1
        ]

    def _line(self, offset: int) -> int:
        if self._line_ends is None:
            self._line_ends = [found.start() for found in re.finditer("\n", self._text)]
        return bisect_left(self._line_ends, offset) + 1

    def _found(self) -> dict[JsonPath, list[int]]:
        if self._places is None:
            self._places = {}
            for path, offset in _places(self._text):
                self._places.setdefault(path, []).append(offset)
        return self._places


def parse_json(text: str, path: Path, *, comments: bool = False) -> JsonDocument:
    """Read JSON.

    :param path: the file it came from, for messages.
    :param comments: whether ``//`` and ``/* */`` are allowed.
    :raises ConfigError: it is not JSON; names file, line and column.
    """
    if comments:
        text = re.sub(_COMMENT, _blank, text)
    twice: list[str] = []

    def to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            twice.append("")
        return made

    try:
        value = json.loads(text, object_pairs_hook=to_object, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}:{error.lineno}:{error.colno}: {_spoken(error.msg)}") from None
    except _NumberError as error:
        raise ConfigError(f"{path}: {error}") from None
    except ValueError:  # of int(), which takes no more digits than that
        raise ConfigError(f"{path}: a number has more than {sys.get_int_max_str_digits()} digits") from None
    except RecursionError:
        raise _too_deep(path) from None
    if _is_deeper(value, _DEEPEST):
        raise _too_deep(path)
    return JsonDocument(path, text, value, has_duplicates=bool(twice))


def decode(data: bytes, path: Path) -> str:
    """Return the text of a JSON file; it may start with a byte order mark.

    :raises ConfigError: it is not UTF-8; names file, line and column.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        column = len(before) - (before.rfind(b"\n") + 1) + 1
        raise ConfigError(f"{path}:{before.count(10) + 1}:{column}: not UTF-8; save the file as UTF-8") from None


def _blank(match: re.Match[str]) -> str:
    found = match[0]
    return found if found.startswith('"') else re.sub(r"[^\n]", " ", found)


class _NumberError(ValueError):
    """A number that JSON does not know."""


def _refuse(name: str) -> Any:
    raise _NumberError(f"{name} is not a number that JSON knows")


def _too_deep(path: Path) -> ConfigError:
    return ConfigError(f"{path}: nested too deeply: expected at most {_DEEPEST} objects and lists in each other")


def _is_deeper(value: Any, depth: int) -> bool:
    """Whether a value has more objects and lists in each other than a number."""
    level = [value]
    for _ in range(depth + 1):
        level = [
            item
            for holder in level
            if isinstance(holder, dict | list)
            for item in (holder.values() if isinstance(holder, dict) else holder)
        ]
        if not level:
            return False
    return True


def _spoken(message: str) -> str:
    """The decoder's words, starting small as the rest of a message does."""
    return message[:1].lower() + message[1:]


def _places(text: str) -> Iterator[tuple[JsonPath, int]]:
    """Yield the path and the offset of every value of a JSON text; an entry of an object is where its key is."""
    path: list[str | int] = []
    opened: list[str] = []
    key: tuple[str, int] | None = None
    expect_key = False
    for match in re.finditer(_TOKEN, text):
        token, offset = match[0], match.start()
        if token in "]}":
            opened.pop()
            path.pop()
        elif token == ",":
            expect_key = opened[-1] == "{"
            if not expect_key:
                path[-1] = int(path[-1]) + 1
        elif token == ":":
            continue
        elif expect_key:
            key, expect_key = (json.loads(token), offset), False
            path[-1] = key[0]
        else:
            yield tuple(path), key[1] if key is not None else offset
            key = None
            if token in "[{":
                opened.append(token)
                path.append(0)
                expect_key = token == "{"


__all__ = ["JsonDocument", "JsonPath", "decode", "parse_json"]
