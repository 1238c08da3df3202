"""Values of settings as people type them, in an environment variable or on the command line."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any, Final

from .checking import Fault, check
from .keys import Path

_WORDS: Final = {"1": True, "yes": True, "on": True, "0": False, "no": False, "off": False}


def typed_value(path: Path, text: str) -> tuple[Any, Fault | None]:
    """Return what a text means for a key, and what is wrong with it.

    It is JSON, itself, a word for yes or no, or a list with commas: the first that the key takes.
    """
    fault: Fault | None = None
    for candidate in _candidates(text):
        _, faults = check(nested(path, candidate))
        if not faults:
            return candidate, None
        fault = fault or Fault(path, "wrong", text)
    return None, fault


def nested(path: Path, value: Any) -> dict[str, Any]:
    """Return the settings that hold one value."""
    data: Any = value
    for part in reversed(path):
        data = {part: data}
    return {} if not path else dict(data)


def _candidates(text: str) -> Iterator[Any]:
    with contextlib.suppress(ValueError, RecursionError):
        yield json.loads(text)
    yield text
    if text.lower() in _WORDS:
        yield _WORDS[text.lower()]
    yield [item.strip() for item in text.split(",") if item.strip()]


__all__ = ["nested", "typed_value"]
