"""Finds what must not be written to a file, by the names it stands under."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

MASK: Final = "<secret>"
_WORDS: Final = frozenset(
    {"auth", "authorization", "cookie", "credential", "credentials", "password", "secret", "token"}
)
_SHORTEST: Final = 6
"""A shorter value is not looked for elsewhere: it would be found in words that have nothing to do with it."""


def names_a_secret(name: str) -> bool:
    """Whether what a header, parameter or field of this name holds is a secret."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower().replace("_", "-").split("-")
    joined = "".join(words)
    return (
        not _WORDS.isdisjoint(words)
        or "apikey" in joined
        or joined in ("key", "accesskey", "subscriptionkey", "xamzsignature")
    )


class Secrets:
    """The secrets of one request: removes them where they are known by name, and then wherever they come again.

    :param values: further ones.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: set[str] = {value for value in values if value}

    def _learn(self, value: str) -> None:
        for part in (value, *value.split()[1:]):
            if len(part) >= _SHORTEST:
                self._values.add(part)

    def in_header(self, name: str, value: str) -> str:
        """Return the value of a header as it may be kept."""
        if names_a_secret(name):
            self._learn(value)
            return MASK
        return str(self.removed(value))

    def in_url(self, url: str) -> str:
        """Return an address without a password and without secret parameters."""
        parts = urlsplit(url)
        place = parts.netloc
        if "@" in place:
            user, _, place = place.rpartition("@")
            self._learn(unquote(user.partition(":")[2]))
            place = f"{MASK}@{place}"
        query = []
        for name, value in parse_qsl(parts.query, keep_blank_values=True):
            if names_a_secret(name):
                self._learn(value)
                value = MASK
            query.append((name, value))
        return urlunsplit(parts._replace(netloc=place, query=urlencode(query, safe="<>", quote_via=quote)))

    def in_json(self, data: Any) -> Any:
        """Return JSON data without the texts of secret fields."""
        if isinstance(data, list):
            return [self.in_json(item) for item in data]
        if not isinstance(data, dict):
            return data
        cleaned = {}
        for key, value in data.items():
            if isinstance(value, str) and value and names_a_secret(key):
                self._learn(value)
                cleaned[key] = MASK
            else:
                cleaned[key] = self.in_json(value)
        return cleaned

    def removed(self, data: Any) -> Any:
        """Return JSON data without the values that are known by now."""
        if isinstance(data, str):
            for value in sorted(self._values, key=len, reverse=True):
                data = data.replace(value, MASK).replace(quote(value, safe=""), MASK)
            return data
        if isinstance(data, list):
            return [self.removed(item) for item in data]
        if isinstance(data, dict):
            return {self.removed(key): self.removed(value) for key, value in data.items()}
        return data

    def removed_bytes(self, data: bytes) -> bytes:
        """Return bytes without the values that are known by now."""
        for value in sorted(self._values, key=len, reverse=True):
            data = data.replace(value.encode(), MASK.encode())
        return data
