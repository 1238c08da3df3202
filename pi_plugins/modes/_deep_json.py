"""JSON of values that are nested deeper than the interpreter recurses, as the tree of a long session is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def deep_json(value: Any) -> str:
    """Return the JSON text of a value, without spaces and with every character as it is."""
    pieces: list[str] = []
    waiting: list[tuple[bool, Any]] = [(False, value)]
    while waiting:
        is_text, at = waiting.pop()
        if is_text:
            pieces.append(at)
        elif isinstance(at, Mapping):
            parts = [(True, "{")]
            for number, (key, item) in enumerate(at.items()):
                parts += [(True, f"{',' if number else ''}{_text(key)}:"), (False, item)]
            waiting.extend(reversed([*parts, (True, "}")]))
        elif isinstance(at, list | tuple):
            parts = [(True, "[")]
            for number, item in enumerate(at):
                parts += [(True, "," if number else ""), (False, item)]
            waiting.extend(reversed([*parts, (True, "]")]))
        else:
            pieces.append(_text(at))
    return "".join(pieces)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
