"""Numbers as models send them, and what several tools have in common."""

from __future__ import annotations

import math
from typing import Any, Final

from ._errors import ToolError

STRICT: Final[dict[str, Any]] = {"type": "json_schema", "strict": "prefer"}
"""How the tools of the default set want their arguments sampled."""


def count(arguments: dict[str, Any], name: str, default: int) -> int:
    """Return a whole number from 1 up; anything below 1 means 1.

    :raises ToolError: it is infinite or no number.
    """
    value = arguments.get(name)
    if value is None:
        return default
    if not math.isfinite(value):
        raise ToolError(f"{name} must be a number, got {value}")
    return max(1, int(value))


def unreadable_notice(number: int, one: str, several: str) -> list[str]:
    """Return the notice about what a search could not look into, none when there was nothing."""
    return [f"{number} {one if number == 1 else several} could not be read"] if number else []
