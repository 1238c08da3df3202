"""Runs one command of a shell to its end, for the model and for the user alike."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pi_core import AbortSignal

from ._content import to_text
from ._errors import ToolError, system_error
from ._output import Output, private_file
from ._process import Pipe, end, start

if TYPE_CHECKING:
    from . import ToolsOptions

ABORTED_COMMAND = "Command aborted"

_DRAIN_SECONDS = 0.1
_MAX_DRAIN_SECONDS = 1.0
_ARGUMENT_BYTES = 100_000

Listener = Callable[[bytes], Awaitable[None]]
"""Gets ``b""`` when a command has started, and then what it prints; the command waits for it."""


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended.

    :param code: of its exit, 128 and the number of the signal that ended it; ``None`` when it never ran.
    :param failure: why it was ended, or not even started, in words for the model; ``None`` when it ended by itself.
    """

    code: int | None
    seconds: float
    failure: str | None = None


class Command:
    """One run of a command.

    :param environment: all the variables it gets.
    :param timeout: seconds after which it is ended.
    :raises ToolError: no shell can take the command.
    """

    def __init__(
        self,
        command: str,
        options: ToolsOptions,
        *,
        environment: Mapping[str, str],
        listener: Listener,
        signal: AbortSignal | None,
        timeout: float | None = None,
    ) -> None:
        if "\0" in command:
            raise ToolError("command contains a NUL character, which no shell can take")
        command = to_text(command)
        self.output = Output(options.max_lines, options.max_bytes, options.max_log_bytes)
        self._command = command if options.command_prefix is None else f"{options.command_prefix}\n{command}"
        self._options = options
        self._environment = environment
        self._listener = listener
        self._signal = signal
        self._timeout = timeout
        self._failure: str | None = None

    async def run(self) -> CommandEnd:
        """Run it, until it ends or has to; what it printed is in :attr:`output` then.

        :raises ToolError: it cannot be started.
        """
        aborted = asyncio.Event()
        loop = asyncio.get_running_loop()
        signal = self._signal
        if signal is not None and signal.aborted:
            return CommandEnd(None, 0, ABORTED_COMMAND)

        def abort() -> None:
            loop.call_soon_threadsafe(aborted.set)

        forget = signal.on_abort(abort) if signal is not None else None
        began = time.monotonic()
        try:
            code = await self._execute(aborted)
        finally:
            if forget is not None:
                forget()
            self.output.close()
        return CommandEnd(code, time.monotonic() - began, self._failure)

    async def _execute(self, aborted: asyncio.Event) -> int:
        cwd = self._directory()
        argv, script = self._argv()
        pipe = await Pipe.open()
        reading: asyncio.Task[None] | None = None
        try:
            try:
                process = await start(argv, cwd=cwd, stdout=pipe, env=self._environment)
            except OSError as error:
                raise system_error(error, "run", argv[0]) from None
            try:
                await self._listener(b"")
                reading = asyncio.create_task(self._read(pipe))
                await self._wait(process, reading, aborted)
                if self._failure is not None:
                    await end(process, self._options.kill_grace_seconds)
                await self._drain(reading)
            except BaseException:
                self._failure = "Command cancelled"
                await end(process, self._options.kill_grace_seconds)
                raise
            if reading.done():
                reading.result()
            await self.output.finish()
            return _exit_code(process.returncode)
        finally:
            await self._release(pipe, reading)
            if script is not None:
                with contextlib.suppress(OSError):
                    os.unlink(script)

    def _directory(self) -> str:
        cwd = self._options.directory()
        if not os.path.isdir(cwd):
            raise ToolError(f"Working directory does not exist: {cwd}")
        return cwd

    def _argv(self) -> tuple[list[str], str | None]:
        """Return what to run, and the file that holds a command too long for an argument."""
        shell = self._options.shell or shutil.which("bash") or "sh"
        command = self._command.encode()
        if len(command) <= _ARGUMENT_BYTES:
            return [shell, "-c", self._command], None
        path, file = private_file(".sh")
        with file:
            file.write(command)
        return [shell, path], path

    async def _wait(
        self, process: asyncio.subprocess.Process, reading: asyncio.Task[None], aborted: asyncio.Event
    ) -> None:
        """Wait until the command ends, or say why it must."""
        exited = asyncio.create_task(process.wait())
        stopped = asyncio.create_task(aborted.wait())
        broken = asyncio.create_task(_failure_of(reading))
        try:
            waited = {exited, stopped, broken}
            await asyncio.wait(waited, timeout=self._timeout, return_when=asyncio.FIRST_COMPLETED)
            if broken.done():
                broken.result()
            if exited.done():
                return
            self._failure = ABORTED_COMMAND
            if not stopped.done():
                self._failure = f"Command timed out after {self._timeout:g} seconds"
        finally:
            for task in (exited, stopped, broken):
                task.cancel()

    async def _read(self, pipe: Pipe) -> None:
        while chunk := await pipe.read():
            await self.output.add(chunk)
            await self._listener(chunk)

    async def _drain(self, reading: asyncio.Task[None]) -> None:
        """Read what was printed before the end; a child in the background may hold the pipe open for ever."""
        deadline = time.monotonic() + _MAX_DRAIN_SECONDS
        read = -1
        while not reading.done() and read != self.output.total_bytes and time.monotonic() < deadline:
            read = self.output.total_bytes
            await asyncio.wait({reading}, timeout=_DRAIN_SECONDS)

    async def _release(self, pipe: Pipe, reading: asyncio.Task[None] | None) -> None:
        if reading is not None and not reading.done():
            reading.cancel()
            await asyncio.wait({reading})
            if self._failure is None:
                _keep_reading(pipe)
                return
        pipe.close()


async def _failure_of(task: asyncio.Task[None]) -> None:
    """Wait until a task fails, and raise what it raised; for ever when it does not."""
    await asyncio.wait({task})
    task.result()
    await asyncio.Event().wait()


_readers: set[asyncio.Task[None]] = set()


def _keep_reading(pipe: Pipe) -> None:
    """Read on what children in the background write, so that they do not fail; nobody sees it."""
    task = asyncio.create_task(_drop(pipe))
    _readers.add(task)
    task.add_done_callback(_readers.discard)


async def _drop(pipe: Pipe) -> None:
    try:
        while await pipe.read():
            pass
    finally:
        pipe.close()


def _exit_code(code: int | None) -> int:
    if code is None:
        return 128 + 9
    return 128 - code if code < 0 else code
