"""The list of models: which of them a text means, and how they are shown. No model object is made for it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

Row: TypeAlias = Mapping[str, Any]

_LOOSE: Final = 3
"""How many times its own length the letters of a word may be spread over, when no model has it in one piece."""

_COLUMNS: Final[Sequence[tuple[str, Callable[[Row], str]]]] = (
    ("provider", lambda row: row["provider"]),
    ("model", lambda row: row["id"]),
    ("context", lambda row: tokens(row.get("contextWindow", 0))),
    ("max-out", lambda row: tokens(row.get("maxTokens", 0))),
    ("thinking", lambda row: "yes" if row.get("reasoning") else "no"),
    ("images", lambda row: "yes" if "image" in row.get("input", ()) else "no"),
    ("$ in/out", lambda row: price(row.get("cost"))),
)


def search(rows: Iterable[Row], text: str) -> list[Row]:
    """Return the models that have every word of a text in their provider, id or name, in the order they came.

    When there are none, the letters of a word need only follow each other closely; the closest come first.
    """
    words = text.lower().split()
    shown = [(f"{row['provider']}/{row['id']} {row.get('name', '')}".lower(), row) for row in rows]
    found = [row for label, row in shown if all(word in label for word in words)]
    if found:
        return found
    spread = [(sum(_spread(word, label) for word in words), row) for label, row in shown]
    return [row for width, row in sorted(spread, key=lambda pair: pair[0]) if width < float("inf")]


def nearest(rows: Iterable[Row], text: str) -> str | None:
    """Return the ``provider/id`` that looks most like a text that means no model; the first of those alike."""
    labels: dict[str, str] = {}
    for row in rows:
        name = f"{row['provider']}/{row['id']}"
        labels.setdefault(name.lower(), name)
        labels.setdefault(row["id"].lower(), name)
    close = difflib.get_close_matches(text.lower(), labels, n=1, cutoff=0.5)
    return labels[close[0]] if close else None


def _spread(word: str, label: str) -> float:
    """Return over how many characters the letters of a word are spread; infinite when they are not close."""
    best = float("inf")
    start = label.find(word[0])
    while start >= 0:
        end = start
        for letter in word[1:]:
            end = label.find(letter, end + 1)
            if end < 0:
                return best
        width = end - start + 1
        if width <= len(word) * _LOOSE:
            best = min(best, width)
        start = label.find(word[0], start + 1)
    return best


def table(rows: Iterable[Row]) -> list[str]:
    """Return the lines of a table, the heading first."""
    cells = [[heading for heading, _ in _COLUMNS], *([show(row) for _, show in _COLUMNS] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]


def tokens(count: int) -> str:
    """Return a number of tokens in few characters: ``128K``, ``1.05M``; ``?`` when it is not known."""
    if count <= 0:
        return "?"
    for size, unit in ((1_000_000, "M"), (1_000, "K")):
        if count >= size:
            return f"{count // size if count >= 100 * size else f'{count / size:.3g}'}{unit}"
    return str(count)


def price(cost: Mapping[str, Any] | None) -> str:
    """Return the prices of prompt and answer in dollars per million tokens; ``+`` when long prompts cost more."""
    if not cost:
        return "?"
    if not cost["input"] and not cost["output"]:
        return "free"
    return f"{_dollars(cost['input'])}/{_dollars(cost['output'])}{'+' if cost.get('tiers') else ''}"


def _dollars(amount: float) -> str:
    return f"{amount:.4f}".rstrip("0").rstrip(".")
