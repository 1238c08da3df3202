"""What the public catalogs do not say of models: which API serves them, where, and how servers differ.

The facts are data, in ``quirks.json``: each rule has the reason for it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from ._known import PROVIDERS
from ._validation import LEVELS

Row: TypeAlias = dict[str, Any]
"""A model as JSON, in the form that :class:`pi_core.Model` reads."""

FILE: Final = Path(__file__).with_name("quirks.json")
_MERGED: Final = ("compat", "thinkingLevelMap")


@dataclass(frozen=True, slots=True)
class _Rule:
    """A condition on a model, and what holds for the models that meet it."""

    data: Mapping[str, Any]
    pattern: re.Pattern[str]

    def fits(self, row: Row) -> bool:
        data = self.data
        return (
            row["provider"] in data.get("providers", (row["provider"],))
            and row["api"] in data.get("apis", (row["api"],))
            and (row["reasoning"] or not data.get("reasoning"))
            and self.pattern.search(row["id"]) is not None
        )


class Quirks:
    """The facts of ``quirks.json``.

    :ivar sources: what models.dev calls each provider, by the name it has here.
    :ivar digest: changes when rows would come out differently.
    """

    def __init__(self, text: bytes) -> None:
        data = json.loads(text)
        self.sources: Mapping[str, str] = data["sources"]
        self.digest = hashlib.sha256(text + repr(sorted(PROVIDERS.items())).encode()).hexdigest()
        self._packages: Mapping[str, str] = data["packages"]
        self._addresses: Mapping[str, Mapping[str, str]] = data["addresses"]
        self._rules = [_Rule(rule, re.compile(rule.get("ids", ""))) for rule in data["rules"]]

    def api(self, provider: str, package: str | None) -> tuple[str, str] | None:
        """Return the API that serves a model and its base URL; ``None``: none that is spoken here.

        :param package: the client library that models.dev names for this model; ``None``: the provider's usual one.
        """
        known = PROVIDERS[provider]
        addresses = self._addresses.get(provider, {})
        if package is None or not addresses:
            return known.api, known.base_url
        api = self._packages.get(package, "")
        if api == known.api:
            return known.api, known.base_url
        return (api, addresses[api]) if api in addresses else None

    def applied(self, row: Row) -> Row | None:
        """Return a row with all that the rules say of it; ``None``: it is of no use to an agent."""
        row = dict(row)
        for rule in self._rules:
            if not rule.fits(row):
                continue
            if rule.data.get("leaveOut"):
                return None
            for key in _MERGED:
                if key in rule.data:
                    row[key] = {**row.get(key, {}), **rule.data[key]}
        words = row.get("thinkingLevelMap")
        if words:
            row["thinkingLevelMap"] = {level: words[level] for level in LEVELS if level in words}
        return row


@functools.cache
def quirks() -> Quirks:
    """Read the facts, once."""
    return Quirks(FILE.read_bytes())
