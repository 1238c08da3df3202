"""The files by which ``pi`` processes find, share and end the server of a model.

Each model has a directory, and in it each way of serving the model has files that begin with its key: ``KEY.alive`` is
locked by the server as long as it lives, so a dead server is known without trusting a process id. ``KEY.start`` is
locked by whoever starts, ends or looks for one. ``KEY.json`` says where it listens, with the token it asks for.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

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
    :param directory: where its files are.
    """

    name: str
    model_path: str
    template_path: str | None
    context: int
    max_tokens: int
    idle_seconds: float
    directory: str
    key: str

    @classmethod
    def make(
        cls,
        *,
        name: str,
        model_path: str,
        template_path: str | None,
        context: int,
        max_tokens: int,
        idle_seconds: float,
        run_dir: Path,
    ) -> Self:
        """Make one with its key: servers with the same key answer alike, whichever installation started them.

        :raises OSError: one of the files cannot be read.
        """
        stamp = os.stat(model_path)
        template = None if template_path is None else Path(template_path).read_text(encoding="utf-8")
        served = json.dumps([model_path, stamp.st_size, stamp.st_mtime_ns, template, context, max_tokens])
        key = hashlib.sha256(served.encode()).hexdigest()[:16]
        return cls(name, model_path, template_path, context, max_tokens, idle_seconds, str(run_dir / name), key)


@dataclass(frozen=True, slots=True)
class ServerState:
    """A server that runs.

    :param port: where it listens on loopback; 0 while it loads.
    :param token: what it asks for as an API key.
    :param started: seconds since the epoch.
    """

    pid: int
    port: int
    token: str
    started: float

    @property
    def base_url(self) -> str:
        """The address of its OpenAI-compatible API."""
        return f"http://127.0.0.1:{self.port}/v1"


class ServerFiles:
    """The files of one server."""

    def __init__(self, directory: Path, key: str) -> None:
        self.directory = directory
        self.log = directory / f"{key}.log"
        self._state = directory / f"{key}.json"
        self._start = directory / f"{key}.start"
        self._alive = directory / f"{key}.alive"

    @classmethod
    def of(cls, spec: ServerSpec) -> Self:
        """The files of the server that a spec starts."""
        return cls(Path(spec.directory), spec.key)

    @classmethod
    def of_model(cls, run_dir: Path, name: str) -> list[Self]:
        """The files of all servers that a model ever had here."""
        return [cls(path.parent, path.stem) for path in sorted((run_dir / name).glob("*.start"))]

    def make_directory(self) -> None:
        """Make the directory, for this user alone."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def start_lock(self) -> FileLock:
        """A new lock object for whoever starts, ends or looks for the server."""
        return FileLock(self._start, mode=_PRIVATE)

    def alive_lock(self) -> FileLock:
        """A new lock object for the server itself."""
        return FileLock(self._alive, mode=_PRIVATE)

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
