"""Pictures of the table: CPU per turn and per delta over the size of the work, as SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias
from xml.sax.saxutils import escape

from .table import Row

Line: TypeAlias = dict[int, float]
"""Size of the work to CPU microseconds per unit."""

_WIDTH: Final = 720
_HEIGHT: Final = 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 190, 40, 50
_COLOURS: Final = ("#1f77b4", "#555555", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#e377c2", "#17becf")


def write_plots(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw what the rows have and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, unit, title in (
        ("turns", "us/turn", "CPU per turn, one tool call each"),
        ("deltas", "us/delta", "CPU per streamed text delta"),
    ):
        lines = _lines([row for row in rows if row.unit == unit and row.name == f"{name}, {row.n:,}"])
        if lines:
            path = folder / f"{name}.svg"
            path.write_text(draw(lines, title, f"{name} in one run", "microseconds"), encoding="utf-8")
            written.append(path)
    return written


def _lines(rows: Sequence[Row]) -> dict[str, Line]:
    lines: dict[str, Line] = {}
    for row in rows:
        for name, value in (("pi_core", row.ours), ("bare loop", row.floor), *row.peers.items()):
            if value:
                lines.setdefault(name, {})[row.n] = value
    return lines


class _Scale:
    """Maps values to a stretch of the picture, logarithmically."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        self._low = math.floor(math.log10(min(values)))
        self._high = max(math.ceil(math.log10(max(values))), self._low + 1)
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        part = (math.log10(value) - self._low) / (self._high - self._low)
        return self._start + part * (self._end - self._start)

    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self._low, self._high + 1)]


def draw(lines: Mapping[str, Line], title: str, across: str, up: str) -> str:
    """Return an SVG picture with logarithmic axes."""
    x = _Scale([size for line in lines.values() for size in line], _LEFT, _WIDTH - _RIGHT)
    y = _Scale([value for line in lines.values() for value in line.values()], _HEIGHT - _BOTTOM, _TOP)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
            f'font-family="sans-serif" font-size="12" aria-label="{escape(title)}">'
        ),
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        _text(_LEFT, 20, title, size=15),
        _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 12, across, anchor="middle"),
        _text(_LEFT, _TOP - 8, up),
    ]
    for tick in x.ticks():
        parts += [_rule(x(tick), _TOP, x(tick), _HEIGHT - _BOTTOM)]
        parts += [_text(x(tick), _HEIGHT - _BOTTOM + 16, f"{tick:,.0f}", anchor="middle")]
    for tick in y.ticks():
        parts += [_rule(_LEFT, y(tick), _WIDTH - _RIGHT, y(tick))]
        parts += [_text(_LEFT - 6, y(tick) + 4, f"{tick:,g}", anchor="end")]
    labels = _spread({name: y(line[max(line)]) for name, line in lines.items()})
    for position, (name, line) in enumerate(lines.items()):
        colour = _COLOURS[position % len(_COLOURS)]
        points = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in sorted(line.items()))
        width = 3 if position == 0 else 1.5
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
        parts += [
            f'<circle cx="{x(size):.1f}" cy="{y(value):.1f}" r="3" fill="{colour}"/>' for size, value in line.items()
        ]
        parts.append(_text(_WIDTH - _RIGHT + 10, labels[name] + 4, name, fill=colour))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _spread(wanted: Mapping[str, float], gap: float = 15) -> dict[str, float]:
    """Move labels apart that would cover each other."""
    placed: dict[str, float] = {}
    last = -gap
    for name, place in sorted(wanted.items(), key=lambda item: item[1]):
        last = placed[name] = max(place, last + gap)
    return placed


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, fill: str = "#222222") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{fill}">{escape(text)}</text>'
    )


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#dddddd"/>'
