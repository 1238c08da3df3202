from __future__ import annotations

from pathlib import Path

import pytest

from .running import Pi


@pytest.fixture
def pi(tmp_path: Path) -> Pi:
    """``pi`` in a folder of its own."""
    return Pi(tmp_path)
