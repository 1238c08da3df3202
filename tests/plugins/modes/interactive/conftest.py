from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ..running import Pi
from .terminal import STAGE, Terminal


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine function in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


@pytest.fixture
def pi(tmp_path: Path) -> Pi:
    """``pi`` in a folder of its own, whose name is always the same, since the status line shows it."""
    folder = tmp_path / "work"
    folder.mkdir()
    return Pi(folder)


@pytest.fixture
def play(pi: Pi) -> Callable[..., Terminal]:
    """Starts ``pi`` in a terminal, with a script for the model of ``stage.py``."""

    def start(
        script: Sequence[Any], *arguments: str, settings: Any = None, ready: str = "stage/stage", **options: Any
    ) -> Terminal:
        (pi.folder / "stage.json").write_text(json.dumps(list(script)), encoding="utf-8")
        if settings is not None:
            folder = pi.folder / ".pi" / "agent"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        environ = {"PI_STAGE": str(pi.folder / "stage.json"), **options.pop("environ", {})}
        model = ["-e", str(STAGE), "--model", environ.get("PI_STAGE_MODEL", "stage/stage")]
        terminal = Terminal(pi, *model, *arguments, environ=environ, **options)
        terminal.wait(ready)
        return terminal

    return start
