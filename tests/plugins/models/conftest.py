from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pi_plugins.models import _servers
from pi_plugins.models._known import PROVIDERS, LocalServer

from .loopback import Loopback, Quiet


class ModelServer(Loopback):
    """A server on this machine that answers ``/v1/models``.

    :ivar answer: what it answers: JSON data, or the bytes themselves.
    :ivar asked: the paths that were asked for.
    """

    def __init__(self) -> None:
        self.answer: Any = {"object": "list", "data": [{"id": "small"}, {"id": "large"}]}
        self.status = 200
        self.asked: list[str] = []
        outer = self

        class Handler(Quiet):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                body = outer.answer if isinstance(outer.answer, bytes) else json.dumps(outer.answer).encode()
                self.send_response(outer.status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        super().__init__(Handler)
        self.address = f"http://127.0.0.1:{self.port}/v1"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    made = ModelServer()
    yield made
    made.close()


@pytest.fixture
def free_port() -> Iterator[int]:
    """A port on which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_port: int) -> Path:
    """The agent's folder of this test. No key and no server of this machine takes part."""
    for known in PROVIDERS.values():
        for name in (*known.keys, *known.ambient):
            monkeypatch.delenv(name, raising=False)
    path = tmp_path / "agent"
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(path))
    monkeypatch.setattr(_servers, "LOCAL_SERVERS", (LocalServer("ollama", "Ollama", free_port),))
    return path
