"""Every scenario, played and compared with what is expected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from . import check
from .runner import KINDS, kind_of, play
from .world import Variant


def load(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


def faults(path: Path, variant: Variant) -> list[str]:
    """Play a scenario; what is wrong with the trace itself, and where it differs from the golden."""
    trace = json.loads(json.dumps(play(load(path), variant)))
    golden = load(path.parent.parent / "golden" / path.name)
    return [f"invariant: {text}" for text in check.problems(trace)] + check.differences(golden, trace)


def test_scenario(scenario_path: Path) -> None:
    assert faults(scenario_path, Variant()) == []


@pytest.mark.parametrize(
    "variant",
    [
        pytest.param(Variant(late=True), id="events-read-after-the-run"),
        pytest.param(Variant(pushed=True), id="model-pushes-events"),
        pytest.param(Variant(seed=1), id="delays"),
        pytest.param(Variant(seed=2, pushed=True), id="delays-and-pushed-events"),
    ],
)
def test_trace_does_not_depend_on(variant: Variant, scenario_paths: list[Path]) -> None:
    found = {path.stem: faults(path, variant) for path in scenario_paths}
    assert {name: texts for name, texts in found.items() if texts} == {}


def test_kinds_are_known(scenario_paths: list[Path]) -> None:
    assert {kind_of(load(path)) for path in scenario_paths} <= {*KINDS}
