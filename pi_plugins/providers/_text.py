"""Text at the edges: halves of surrogate pairs, and a short stable hash."""

from __future__ import annotations

import json
from typing import Any, Final

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
REPLACEMENT: Final = "\ufffd"


def clean(text: str) -> str:
    """Return text that UTF-8 can hold: the halves of a surrogate pair are joined, halves without a partner removed."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    return text


def clean_value(value: Any) -> Any:
    """Return a JSON value all of whose texts are clean; the value itself if they are."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return _cleaned(value)
    return value


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(key): _cleaned(item) for key, item in value.items()}
    return [_cleaned(item) for item in value] if isinstance(value, list) else value


class SurrogateJoiner:
    """Makes streamed text valid: a pair that is split over two pieces becomes one character.

    The first half waits for the next piece. A half without a partner becomes U+FFFD.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return what of the text so far can be shown now."""
        text = self._held + piece
        self._held = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._held, text = text[-1], text[:-1]
        return _joined(text)

    def finish(self) -> str:
        """Return what is left when no more text comes."""
        held, self._held = self._held, ""
        return REPLACEMENT if held else ""


def _joined(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return "".join(REPLACEMENT if "\ud800" <= char <= "\udfff" else char for char in whole)
    return text


def short_hash(text: str) -> str:
    """Return a hash of 12 to 14 characters ``0-9a-z``, the original's, so that ids in old histories stay the same."""
    first, second = 0xDEADBEEF, 0x41C6CE57
    units = text.encode("utf-16-le", "surrogatepass")
    for position in range(0, len(units), 2):
        unit = units[position] | units[position + 1] << 8
        first = _multiply(first ^ unit, 2654435761)
        second = _multiply(second ^ unit, 1597334677)
    first = _multiply(first ^ first >> 16, 2246822507) ^ _multiply(second ^ second >> 13, 3266489909)
    second = _multiply(second ^ second >> 16, 2246822507) ^ _multiply(first ^ first >> 13, 3266489909)
    return _base36(second) + _base36(first)


def _multiply(one: int, other: int) -> int:
    return one * other & 0xFFFFFFFF


def _base36(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
        if not number:
            return digits
