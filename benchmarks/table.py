"""The rows of the table, their JSON form and how they are printed."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, Literal

from .processes import facts


@dataclass(slots=True)
class Row:
    """One comparison.

    :param ours: what the framework needs, in ``unit``; ``None`` when it could not be measured.
    :param floor: what it is compared to needs, in the same unit.
    :param target: the most that is good, of the ratio or of ``ours``; ``None`` for rows that only inform.
    :param n: how large the work is.
    :param bounds: what ``target`` limits.
    :param against: what the floor of this row is.
    :param peers: what others need for the same work, in the same unit.
    :param note: why the row was not measured.
    """

    name: str
    ours: float | None
    floor: float | None
    target: float | None
    unit: str
    n: int
    bounds: Literal["ratio", "ours"] = "ratio"
    against: str = "bare loop"
    peers: dict[str, float] = field(default_factory=dict)
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """``ours`` in units of the floor."""
        return self.ours / self.floor if self.ours is not None and self.floor else None

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; ``None`` when there is none or nothing was measured."""
        value = self.ratio if self.bounds == "ratio" else self.ours
        return None if self.target is None or value is None else value <= self.target

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        data: dict[str, Any] = {
            "name": self.name,
            "ours": self.ours,
            "floor": self.floor,
            "ratio": self.ratio,
            "target": self.target,
            "unit": self.unit,
            "n": self.n,
            "bounds": self.bounds,
            "against": self.against,
            "met": self.met,
        }
        if self.peers:
            data["peers"] = {name: {"value": value, "ratio": self._beside(value)} for name, value in self.peers.items()}
        if self.note:
            data["note"] = self.note
        return data

    def _beside(self, value: float) -> float | None:
        return value / self.floor if self.floor else None

    def line(self) -> tuple[str, ...]:
        """Return the cells of the printed table."""
        best = min(self.peers.items(), key=lambda peer: peer[1], default=None)
        measured = self.ratio if self.bounds == "ratio" else self.ours
        sign = "x" if self.bounds == "ratio" else f" {self.unit}"
        verdict = {None: "", True: "ok", False: "SHORT"}[self.met]
        return (
            self.name,
            _number(self.ours),
            _number(self.floor),
            self.unit,
            "-" if measured is None else f"{measured:.2f}{sign}",
            "-" if self.target is None else f"<= {self.target:g}{sign}",
            "not measured" if measured is None else verdict,
            "" if best is None else f"{_number(self._beside(best[1]))}x {best[0]}",
        )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


_HEAD = ("row", "ours", "floor", "unit", "measured", "target", "", "best peer")


def as_text(rows: Sequence[Row]) -> str:
    """Return the table for a terminal, what falls short marked, and what was not measured explained below."""
    cells = [_HEAD, *(row.line() for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEAD))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    lines.insert(1, "-" * len(lines[0]))
    rated = [row for row in rows if row.met is not None]
    short = sum(row.met is False for row in rated)
    lines += ["", f"{len(rated) - short} of {len(rated)} targets reached" + (f", {short} fall short" if short else "")]
    lines += [f"not measured: {row.name}: {row.note}" for row in rows if row.note]
    return "\n".join(lines)


def as_json(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the table, what it was measured with, and on what."""
    return {"rows": [row.to_json() for row in rows], "versions": versions(), "machine": facts()}


def versions() -> dict[str, str]:
    """Return the versions that matter for the numbers."""
    found = {"python": platform.python_version(), "implementation": platform.python_implementation()}
    for name in (
        "pi-agent-framework",
        "pydantic",
        "pydantic-core",
        "pluggy",
        "httpx",
        "click",
        "jsonschema",
        "aiohttp",
    ):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
