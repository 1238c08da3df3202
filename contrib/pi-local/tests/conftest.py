from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pi_local.server import running
from pi_local.state import ServerFiles, ServerSpec
from pi_local.store import Store

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty store, which is also the user's."""
    root = tmp_path / "cache"
    monkeypatch.setenv("PI_LOCAL_DIR", str(root))
    monkeypatch.delenv("PI_LOCAL_IDLE_SECONDS", raising=False)
    return Store(root)


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    """A file that starts like a model."""
    path = tmp_path / "Some Model.Q4.gguf"
    path.write_bytes(b"GGUF and nothing that a model needs")
    return path


MakeSpec = Callable[..., ServerSpec]


@pytest.fixture
def make_spec(tmp_path: Path) -> Iterator[MakeSpec]:
    """Makes specs for the fake server, whose behaviour is in the model file; ends what is left of them."""
    run_dir = tmp_path / "run"

    def make(*, idle_seconds: float = 60.0, name: str = "fake", context: int = 128, **behaviour: Any) -> ServerSpec:
        model = tmp_path / f"{name}.gguf"
        text = json.dumps({"starts": str(tmp_path / "starts.txt"), **behaviour})
        if not model.exists() or model.read_text(encoding="utf-8") != text:
            model.write_text(text, encoding="utf-8")
        return ServerSpec.make(
            name=name,
            model_path=str(model),
            template_path=None,
            context=context,
            max_tokens=16,
            idle_seconds=idle_seconds,
            run_dir=run_dir,
        )

    yield make
    for directory in run_dir.glob("*"):
        for files in ServerFiles.of_model(run_dir, directory.name):
            state = running(files)
            if state is not None:
                with suppress(ProcessLookupError):
                    os.kill(state.pid, signal.SIGKILL)


@pytest.fixture
def starts(tmp_path: Path) -> Callable[[], int]:
    """How many fake servers were started."""
    path = tmp_path / "starts.txt"
    return lambda: len(path.read_text(encoding="utf-8").split()) if path.exists() else 0
