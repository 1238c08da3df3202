from __future__ import annotations

from pathlib import Path

import pytest

from .running import Pi


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cli-dir", type=Path, help="folder of recorded runs of a command line")


@pytest.fixture
def pi(tmp_path: Path) -> Pi:
    """``pi`` in a folder of its own."""
    return Pi(tmp_path)
