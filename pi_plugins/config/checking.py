"""Takes from settings what is right in them: a wrong value costs itself and nothing else."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from .json_text import JsonPath
from .keys import did_you_mean, dotted, expected, got, value_at
from .settings import Settings


@dataclass(frozen=True, slots=True)
class Fault:
    """A value that is not taken.

    :param kind: there is no such key, or its value is of another kind.
    :param value: what stands there.
    """

    path: JsonPath
    kind: Literal["unknown", "wrong"]
    value: Any

    def __str__(self) -> str:
        name = dotted(self.path)
        if self.kind == "unknown":
            names = tuple(str(part) for part in self.path)
            hint = did_you_mean(names)
            return f"there is no setting '{name}'{hint or '; it has no effect'}"
        return f"{name or 'the settings'}: expected {expected(self.path)}, got {got(self.path, self.value)}"


def check(data: Any) -> tuple[dict[str, Any], list[Fault]]:
    """Return the settings without what is wrong in them, and what that is.

    :param data: as JSON has them.
    """
    faults: list[Fault] = []
    kept = copy.deepcopy(data)
    while isinstance(kept, dict):
        try:
            Settings.model_validate(kept, by_alias=True, by_name=False)
        except ValidationError as error:
            found = _faults(error, kept)
            for fault in sorted(found, key=_last_first, reverse=True):
                _remove(kept, fault.path)
            faults += found
        else:
            return kept, faults
    return {}, [Fault((), "wrong", data)]


def _faults(error: ValidationError, data: Any) -> list[Fault]:
    found: dict[JsonPath, Fault] = {}
    for item in error.errors(include_url=False, include_context=False, include_input=False):
        path = _existing(item["loc"], data)
        kind: Literal["unknown", "wrong"] = (
            "unknown" if item["type"] == "extra_forbidden" or item["loc"][-1] == "[key]" else "wrong"
        )
        found.setdefault(path, Fault(path, kind, value_at(data, path)))
    return list(found.values())


def _existing(location: tuple[int | str, ...], data: Any) -> JsonPath:
    """Return the part of a location that names a value; the rest says which kind of value was tried."""
    path: JsonPath = ()
    for part in location:
        if not (part in data if isinstance(data, dict) else isinstance(data, list) and isinstance(part, int)):
            break
        path, data = (*path, part), data[part]
    return path


def _last_first(fault: Fault) -> list[tuple[int, str]]:
    return [(part, "") if isinstance(part, int) else (0, part) for part in fault.path]


def _remove(data: Any, path: JsonPath) -> None:
    del value_at(data, path[:-1])[path[-1]]


__all__ = ["Fault", "check"]
