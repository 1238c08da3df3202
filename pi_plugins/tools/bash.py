"""The ``bash`` tool: runs a command and shows the end of what it prints."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import shutil
import time
from typing import TYPE_CHECKING, Any

from pi_core import Tool, ToolContext, ToolResult

from ._arguments import STRICT
from ._content import to_text
from ._errors import ToolError, system_error
from ._output import Output, private_file
from ._process import Pipe, end, start
from ._truncate import format_size

if TYPE_CHECKING:
    from . import ToolsOptions

UPDATE_SECONDS = 0.2
"""Least time between two progress reports."""

_DRAIN_SECONDS = 0.1
_MAX_DRAIN_SECONDS = 1.0
_ARGUMENT_BYTES = 100_000


def bash_tool(options: ToolsOptions) -> Tool:
    """Make the ``bash`` tool."""
    pipes = _OpenPipes()

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        timeout = arguments.get("timeout", options.timeout)
        if timeout is not None and not (math.isfinite(timeout) and timeout > 0):
            raise ToolError(f"timeout must be above 0 seconds, got {timeout:g}")
        if "\0" in arguments["command"]:
            raise ToolError("command contains a NUL character, which no shell can take")
        return await _Command(arguments["command"], timeout, options, context, pipes).run()

    return Tool(
        name="bash",
        description=(
            f"Run a bash command. Shows the last {options.max_lines} lines or {format_size(options.max_bytes)} "
            "of its output."
        ),
        parameters={
            "type": "object",
            "required": ["command"],
            "properties": {
                "command": {"type": "string", "description": "Command to run"},
                "timeout": {"type": "number", "description": "Seconds after which it is ended"},
            },
        },
        execute=execute,
        constrained_sampling=STRICT,
        prompt_snippet="run a command",
    )


class _OpenPipes:
    """Pipes that background children still write to: they are read on, so that the children do not fail."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def keep(self, pipe: Pipe) -> None:
        task = asyncio.create_task(self._drop(pipe))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @staticmethod
    async def _drop(pipe: Pipe) -> None:
        try:
            while await pipe.read():
                pass
        finally:
            pipe.close()


class _Command:
    """One run of a command."""

    def __init__(
        self, command: str, timeout: float | None, options: ToolsOptions, context: ToolContext, pipes: _OpenPipes
    ) -> None:
        command = to_text(command)
        self._command = command if options.command_prefix is None else f"{options.command_prefix}\n{command}"
        self._timeout = timeout
        self._options = options
        self._context = context
        self._pipes = pipes
        self._output = Output(options.max_lines, options.max_bytes, options.max_log_bytes)
        self._progress = _Progress(self._output, context)
        self._failure: str | None = None

    async def run(self) -> ToolResult:
        aborted = asyncio.Event()
        loop = asyncio.get_running_loop()
        signal = self._context.signal
        if signal is not None and signal.aborted:
            return self._result("Command aborted", None, 0)

        def abort() -> None:
            loop.call_soon_threadsafe(aborted.set)

        forget = signal.on_abort(abort) if signal is not None else None
        began = time.monotonic()
        try:
            code = await self._execute(aborted)
        finally:
            if forget is not None:
                forget()
            self._progress.stop()
            self._output.close()
        return self._result(self._failure, code, time.monotonic() - began)

    async def _execute(self, aborted: asyncio.Event) -> int:
        cwd = self._directory()
        argv, script = self._argv()
        pipe = await Pipe.open()
        reading: asyncio.Task[None] | None = None
        try:
            try:
                process = await start(argv, cwd=cwd, stdout=pipe, env={**os.environ, **self._options.env})
            except OSError as error:
                raise system_error(error, "run", argv[0]) from None
            self._progress.report()
            reading = asyncio.create_task(self._read(pipe))
            try:
                await self._wait(process, aborted)
                if self._failure is not None:
                    await end(process, self._options.kill_grace_seconds)
                await self._drain(reading)
            except asyncio.CancelledError:
                self._failure = "Command cancelled"
                await end(process, self._options.kill_grace_seconds)
                raise
            if reading.done():
                reading.result()
            await self._output.finish()
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

    async def _wait(self, process: asyncio.subprocess.Process, aborted: asyncio.Event) -> None:
        """Wait until the command ends, or say why it must."""
        exited = asyncio.create_task(process.wait())
        stopped = asyncio.create_task(aborted.wait())
        try:
            await asyncio.wait({exited, stopped}, timeout=self._timeout, return_when=asyncio.FIRST_COMPLETED)
            if exited.done():
                return
            self._failure = "Command aborted"
            if not stopped.done():
                self._failure = f"Command timed out after {self._timeout:g} seconds"
        finally:
            stopped.cancel()
            if not exited.done():
                exited.cancel()

    async def _read(self, pipe: Pipe) -> None:
        while chunk := await pipe.read():
            await self._output.add(chunk)
            self._progress.changed()

    async def _drain(self, reading: asyncio.Task[None]) -> None:
        """Read what was printed before the end; a child in the background may hold the pipe open for ever."""
        deadline = time.monotonic() + _MAX_DRAIN_SECONDS
        read = -1
        while not reading.done() and read != self._output.total_bytes and time.monotonic() < deadline:
            read = self._output.total_bytes
            await asyncio.wait({reading}, timeout=_DRAIN_SECONDS)

    async def _release(self, pipe: Pipe, reading: asyncio.Task[None] | None) -> None:
        if reading is not None and not reading.done():
            reading.cancel()
            await asyncio.wait({reading})
            if self._failure is None:
                self._pipes.keep(pipe)
                return
        pipe.close()

    def _result(self, failure: str | None, code: int | None, seconds: float) -> ToolResult:
        shown = self._output.truncation()
        text = shown.content
        details: dict[str, Any] | None = None
        if shown.truncated:
            text += f"\n\n{self._output.notice(shown)}"
            details = {"truncation": shown.to_json()}
            if self._output.log_path is not None:
                details["fullOutputPath"] = self._output.log_path
        if failure is None and code:
            failure = f"Command exited with code {code}"
            text = text or "(no output)"
        if failure is not None:
            text = f"{text}\n\n{failure}" if text else failure
        output, cut = self._output.kept()
        return ToolResult.text(
            text or "(no output)",
            details=details,
            structured_content={
                "output": output,
                "truncated": cut,
                "exit_code": code,
                "wall_time_seconds": round(seconds, 3),
            },
            is_error=True if failure is not None else None,
        )


class _Progress:
    """Reports what was printed, at once and then at most every :data:`UPDATE_SECONDS`."""

    def __init__(self, output: Output, context: ToolContext) -> None:
        self._output = output
        self._context = context
        self._last = -math.inf
        self._timer: asyncio.TimerHandle | None = None

    def changed(self) -> None:
        if self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        wait = self._last + UPDATE_SECONDS - loop.time()
        if wait <= 0:
            self.report()
            self._last = loop.time()
        else:
            self._timer = loop.call_later(wait, self._late)

    def _late(self) -> None:
        self._timer = None
        self._last = asyncio.get_running_loop().time()
        self.report()

    def report(self) -> None:
        shown = self._output.truncation()
        details = {"truncation": shown.to_json()} if shown.truncated else None
        self._context.update(ToolResult.text(shown.content, details=details))

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _exit_code(code: int | None) -> int:
    if code is None:
        return 128 + 9
    return 128 - code if code < 0 else code
