"""Text between backticks that nothing in it can end."""

from __future__ import annotations

import re


def fenced(text: str) -> str:
    """Return text as a block of code."""
    fence = _fence(text, 3)
    return f"{fence}\n{text.rstrip(chr(10))}\n{fence}"


def fenced_inline(text: str) -> str:
    """Return text as code within a line."""
    fence = _fence(text, 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


def _fence(text: str, least: int) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(least, longest + 1)
