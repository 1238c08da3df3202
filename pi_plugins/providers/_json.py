"""Events as JSON: the parse, and the shortcut for a run of events that differ in one string only."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any, Final

from ._errors import ResponseError, excerpt

_MISSES_ALLOWED: Final = 32
_ESCAPE: Final = re.compile(r'\\(["\\/bfnrt]|u[0-9A-Fa-f]{4})?')


class EventJson:
    """Parses the data of one stream's events.

    :ivar lenient: whether an event was not quite JSON; its strings may hold halves of surrogate pairs.
    """

    __slots__ = ("_fast", "lenient")

    def __init__(self) -> None:
        # Comes with pydantic and reads bytes about twice as fast as the standard library.
        from pydantic_core import from_json

        self._fast = from_json
        self.lenient = False

    def parse(self, data: bytes) -> Any:
        """Return the value of an event.

        :raises ResponseError: it is no JSON; the text shows the beginning of what came.
        """
        try:
            return self._fast(data)
        except ValueError:
            self.lenient = True
        text = data.decode("utf-8", "replace")
        # Some servers put raw control characters into strings, some a lone backslash.
        for attempt in (text, _ESCAPE.sub(_repaired, text)):
            with suppress(ValueError, RecursionError):
                return json.loads(attempt, strict=False)
        raise ResponseError(f"The server sent an event that is not JSON: {excerpt(data)}")


def _repaired(escape: re.Match[str]) -> str:
    return escape[0] if escape[1] else "\\\\"


class StringTemplate:
    """Recognises events that equal an earlier one but for one string, and reads that string without parsing the rest.

    Most events of a response are such: the same object around the next piece of text. An event that begins and ends
    with the same bytes as a parsed one, and has one valid JSON string in between, is the same object with another
    string.

    :param key: the key of the string; it has to occur once in the event, so that it is the one that was parsed.
    """

    __slots__ = ("_fast", "_key", "_misses", "_prefix", "_suffix", "_value")

    def __init__(self, key: str) -> None:
        from pydantic_core import from_json

        self._fast = from_json
        self._key = f'"{key}"'.encode()
        self._value = re.compile(self._key + rb'[ \t]*:[ \t]*"([^"]*)"')
        self._prefix = b""
        self._suffix = b""
        self._misses = 0

    def match(self, data: bytes) -> str | None:
        """Return the string of an event that fits, else ``None``."""
        prefix, suffix = self._prefix, self._suffix
        if not prefix or not data.startswith(prefix) or not data.endswith(suffix):
            return None
        if len(data) < len(prefix) + len(suffix):
            return None
        string = data[len(prefix) - 1 : len(data) - len(suffix) + 1]
        try:
            value = self._fast(string)
        except ValueError:
            return None
        self._misses = 0
        return value if isinstance(value, str) else None

    def learn(self, data: bytes) -> None:
        """Remember an event that changed nothing but the string, so that those like it fit from now on."""
        self._misses += 1
        if self._misses > _MISSES_ALLOWED:
            self.forget()
            return
        # Without escapes every key is spelled out, so a name that occurs once is the one that was parsed.
        found = self._value.search(data) if data.count(self._key) == 1 and b"\\" not in data else None
        if found is not None:
            self._prefix, self._suffix = data[: found.start(1)], data[found.end(1) :]

    def forget(self) -> None:
        """Fit nothing until another event is learnt."""
        self._prefix = b""
