"""The files by which ``pi`` processes find, share and end the server of a model.

``NAME.alive`` is locked by the server as long as it lives, so a dead server is known without trusting a process id.
``NAME.start`` is locked by whoever starts, ends or looks for one. ``NAME.json`` says where it listens, with the key.
"""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from .store import write_atomically

_PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """What a server is started with.

    :param name: the model id.
    :param model_path: the GGUF file.
    :param template_path: a chat template; ``None`` is the one inside the file.
    :param context: tokens of the context window.
    :param max_tokens: most tokens of an answer for which the request names no limit.
    :param idle_seconds: how long it stays without being asked for anything.
    :param run_dir: where its files are.
    """

    name: str
    model_path: str
    template_path: str | None
    context: int
    max_tokens: int
    idle_seconds: float
    run_dir: str

    def fingerprint(self) -> str:
        """Changes when a running server would answer otherwise than a new one."""
        stamps = [_stamp(path) for path in (self.model_path, self.template_path) if path is not None]
        return json.dumps([self.model_path, self.template_path, self.context, self.max_tokens, *stamps])


@dataclass(frozen=True, slots=True)
class ServerState:
    """A server that runs.

    :param port: where it listens on loopback; 0 while it loads.
    :param token: the key it asks for.
    :param started: seconds since the epoch.
    :param fingerprint: of what it was started with.
    """

    pid: int
    port: int
    token: str
    started: float
    fingerprint: str

    @property
    def base_url(self) -> str:
        """The address of its OpenAI-compatible API."""
        return f"http://127.0.0.1:{self.port}/v1"


class ServerFiles:
    """The files of one model's server."""

    def __init__(self, run_dir: Path, name: str) -> None:
        self.directory = run_dir
        self.name = name
        self.log = run_dir / f"{name}.log"
        self._state = run_dir / f"{name}.json"

    def make_directory(self) -> None:
        """Make the directory, for this user alone."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def start_lock(self) -> FileLock:
        """A new lock object for whoever starts, ends or looks for the server."""
        return FileLock(self.directory / f"{self.name}.start", mode=_PRIVATE)

    def alive_lock(self) -> FileLock:
        """A new lock object for the server itself."""
        return FileLock(self.directory / f"{self.name}.alive", mode=_PRIVATE)

    def alive(self) -> bool:
        """Whether a server process lives. Ask with the start lock held: asking takes the other lock for a moment."""
        lock = self.alive_lock()
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return True
        lock.release()
        return False

    def read(self) -> ServerState | None:
        """What the server said about itself; ``None`` when it has not, or when the file means nothing."""
        try:
            data: Any = json.loads(self._state.read_text(encoding="utf-8"))
            return ServerState(**data)
        except (OSError, ValueError, TypeError):
            return None

    def write(self, state: ServerState) -> None:
        """Publish a state, readable for this user alone."""
        write_atomically(self._state, json.dumps(dataclasses.asdict(state)), mode=_PRIVATE)

    def remove_state(self) -> None:
        """Withdraw the state."""
        self._state.unlink(missing_ok=True)

    def touch(self) -> None:
        """Tell the server that somebody is about to use it."""
        os.utime(self._state)

    def touched(self) -> int:
        """Changes when somebody called :meth:`touch`."""
        try:
            return self._state.stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def log_tail(self, lines: int = 8) -> str:
        """The last lines the server wrote."""
        try:
            text = self.log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        return "\n".join(text.strip().splitlines()[-lines:])


def _stamp(path: str) -> list[int]:
    found = os.stat(path)
    return [found.st_size, found.st_mtime_ns]
