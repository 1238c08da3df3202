"""The files: their size, and what none of them holds."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = [path for folder in ("pi_core", "pi_plugins") for path in sorted((ROOT / folder).rglob("*.py"))]
CODE += [path for path in sorted((ROOT / "contrib").rglob("*.py")) if "build" not in path.parts]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", CODE, ids=named)
def test_no_file_is_long(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= (800 if path.name == "hookspecs.py" else 500)


def test_most_files_are_short() -> None:
    assert statistics.median(len(path.read_text(encoding="utf-8").splitlines()) for path in CODE) <= 200


@pytest.mark.parametrize("path", CODE, ids=named)
def test_nothing_is_left_for_later(path: Path) -> None:
    assert not re.findall(r"\b(TODO|FIXME|XXX)\b", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", [path for path in CODE if "tests" not in path.parts], ids=named)
def test_every_module_says_what_it_owns(path: Path) -> None:
    assert re.match(r'r?"""\S', path.read_text(encoding="utf-8"))
