"""Starts, shares and ends the server of a model: one for each model and user, whoever asks first starts it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
import os
import signal as signals
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from filelock import Timeout

from pi_core import AbortSignal, ConfigError

from .state import ServerFiles, ServerSpec, ServerState
from .store import Store, StoredModel

IDLE_VARIABLE: Final = "PI_LOCAL_IDLE_SECONDS"
IDLE_SECONDS: Final = 600.0
CONTEXT_WINDOW: Final = 8192
MAX_TOKENS: Final = 1024
LOST_RACE: Final = 75
"""Exit code of a server that found another one of the same model alive."""

COMMAND: Final = (sys.executable, "-P", "-m", "pi_local._serve")
"""Starts llama.cpp's server. Another command has to keep to the files of :mod:`pi_local.state`."""

_PASSIVE: Final = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0"}
_START_SECONDS: Final = 300.0
_STOP_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.05

_children: list[subprocess.Popen[bytes]] = []


class StartAbortedError(Exception):
    """The run was aborted while a server was starting."""


def spec_of(model: StoredModel, store: Store) -> ServerSpec:
    """What the server of a stored model is started with.

    :raises ConfigError: its file is gone, or ``PI_LOCAL_IDLE_SECONDS`` is no time.
    """
    check_file(model)
    template = store.template_path(model)
    try:
        return ServerSpec.make(
            name=model.name,
            model_path=str(model.path),
            template_path=None if template is None else str(template),
            context=CONTEXT_WINDOW,
            max_tokens=MAX_TOKENS,
            idle_seconds=_idle_seconds(),
            run_dir=store.run_dir,
        )
    except OSError as error:
        raise ConfigError(f"local/{model.name} cannot be served: {error}") from error


def check_file(model: StoredModel) -> None:
    """Make sure that the weights are where the record says.

    :raises ConfigError: they are not.
    """
    if not model.path.is_file():
        raise ConfigError(
            f"The file of local/{model.name} is gone: {model.path}. Put it back, or 'pi local rm {model.name}'"
        )


async def ensure(
    spec: ServerSpec, *, signal: AbortSignal | None = None, command: Sequence[str] = COMMAND
) -> ServerState:
    """Return the running server of a model, started if need be. Concurrent calls of any process get the same one.

    :param signal: ends the waiting when it is aborted; a server this call started is then ended, too.
    :param command: what to start; it gets the model's name as its last argument and the spec as JSON on its input.
    :raises StartAbortedError: the signal was aborted.
    :raises ConfigError: the server did not start; ends with the last lines of its log.
    """
    files = ServerFiles.of(spec)
    try:
        files.make_directory()
        async with _holding(files, signal):
            return await _ensure(spec, files, signal, command)
    except OSError as error:
        raise ConfigError(f"The server of local/{spec.name} cannot be started: {error}") from error


async def _ensure(
    spec: ServerSpec, files: ServerFiles, signal: AbortSignal | None, command: Sequence[str]
) -> ServerState:
    child: subprocess.Popen[bytes] | None = None
    deadline = time.monotonic() + _START_SECONDS
    try:
        while time.monotonic() < deadline:
            if files.alive():
                state = files.read()
                if state is not None and state.port:
                    files.touch()
                    child = None
                    return state
            elif child is None or child.poll() is not None:
                if child is not None and child.returncode != LOST_RACE:
                    raise ConfigError(_failure(spec, files, child.returncode))
                files.remove_state()
                child = _spawn(spec, files, command)
            await _pause(signal)
        raise ConfigError(f"local/{spec.name} was not ready after {_START_SECONDS:.0f} s. Its log is {files.log}")
    finally:
        if child is not None and child.poll() is None:
            child.terminate()


async def stop(files: ServerFiles) -> bool:
    """End a server, also one that is busy or still loading.

    :returns: whether there was one.
    :raises ConfigError: it does not end.
    """
    async with _holding(files, None):
        if not files.alive():
            files.remove_state()
            return False
        asked = time.monotonic()
        told: tuple[int, int] | None = None
        while files.alive():
            waited = time.monotonic() - asked
            state = files.read()
            number = signals.SIGTERM if waited < _STOP_SECONDS else signals.SIGKILL
            if state is not None and told != (state.pid, number):
                told = (state.pid, number)
                _send(*told)
            if waited > 2 * _STOP_SECONDS:
                raise ConfigError(f"The server of local/{files.directory.name} does not end")
            await _pause(None)
        files.remove_state()
        return True


def running(files: ServerFiles) -> ServerState | None:
    """The state of a server if it lives; its port is 0 while it loads."""
    lock = files.start_lock()
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return files.read()
    try:
        return files.read() if files.alive() else None
    finally:
        lock.release()


def _spawn(spec: ServerSpec, files: ServerFiles, command: Sequence[str]) -> subprocess.Popen[bytes]:
    _children[:] = [child for child in _children if child.poll() is None]
    with open(os.open(files.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as log:
        child = subprocess.Popen(
            [*command, spec.name],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**_PASSIVE, **os.environ},
            cwd=files.directory,
            start_new_session=True,
        )
    _children.append(child)
    assert child.stdin is not None
    with suppress(BrokenPipeError), child.stdin as stream:  # if it died at once, its exit code says so
        stream.write(json.dumps(dataclasses.asdict(spec)).encode())
    return child


@asynccontextmanager
async def _holding(files: ServerFiles, signal: AbortSignal | None) -> AsyncIterator[None]:
    lock = files.start_lock()
    while True:
        try:
            lock.acquire(timeout=0)
            break
        except Timeout:
            await _pause(signal)
    try:
        yield
    finally:
        lock.release()


async def _pause(signal: AbortSignal | None) -> None:
    if signal is not None and signal.aborted:
        raise StartAbortedError
    await asyncio.sleep(_POLL_SECONDS)


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):  # it may just have ended by itself
        os.kill(pid, number)


def _failure(spec: ServerSpec, files: ServerFiles, code: int) -> str:
    how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
    tail = files.log_tail()
    said = f", after saying:\n{tail}" if tail else " without a word"
    return f"The server of local/{spec.name} ({spec.model_path}) {how}{said}"


def _idle_seconds() -> float:
    text = os.environ.get(IDLE_VARIABLE)
    if not text:
        return IDLE_SECONDS
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds > 0):
        raise ConfigError(f"{IDLE_VARIABLE} is a number of seconds above 0, got '{text}'")
    return seconds
