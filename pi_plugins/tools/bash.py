"""The ``bash`` tool: runs a command and shows the end of what it prints."""

from __future__ import annotations

import asyncio
import math
import os
from typing import TYPE_CHECKING, Any

from pi_core import Tool, ToolContext, ToolResult

from . import SESSION_VARIABLES, SHELL_ENVIRONMENT
from ._arguments import STRICT
from ._command import Command, CommandEnd
from ._errors import ToolError
from ._output import Output
from ._truncate import format_size

if TYPE_CHECKING:
    from . import ToolsOptions

UPDATE_SECONDS = 0.2
"""Least time between two progress reports."""


def bash_tool(options: ToolsOptions) -> Tool:
    """Make the ``bash`` tool."""

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        timeout = arguments.get("timeout", options.timeout)
        if timeout is not None and not (math.isfinite(timeout) and timeout > 0):
            raise ToolError(f"timeout must be above 0 seconds, got {timeout:g}")
        progress = _Progress(context)
        command = Command(
            arguments["command"],
            options,
            environment=_environment(options, context),
            listener=progress.printed,
            signal=context.signal,
            timeout=timeout,
        )
        progress.output = command.output
        try:
            end = await command.run()
        finally:
            progress.stop()
        return _result(command.output, end)

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


def _environment(options: ToolsOptions, context: ToolContext) -> dict[str, str]:
    """Return the variables of a command: what the process has of another session around it is not passed on."""
    inherited = {name: value for name, value in os.environ.items() if name not in SESSION_VARIABLES}
    given = context.run.stash.get(SHELL_ENVIRONMENT, {}) if context.run is not None else {}
    return {**inherited, **options.env, **given}


def _result(output: Output, end: CommandEnd) -> ToolResult:
    shown = output.truncation()
    text = shown.content
    details: dict[str, Any] | None = None
    if shown.truncated:
        text += f"\n\n{output.notice(shown)}"
        details = {"truncation": shown.to_json()}
        if output.log_path is not None:
            details["fullOutputPath"] = output.log_path
    failure = end.failure
    if failure is None and end.code:
        failure = f"Command exited with code {end.code}"
        text = text or "(no output)"
    if failure is not None:
        text = f"{text}\n\n{failure}" if text else failure
    kept, cut = output.kept()
    return ToolResult.text(
        text or "(no output)",
        details=details,
        structured_content={
            "output": kept,
            "truncated": cut,
            "exit_code": end.code,
            "wall_time_seconds": round(end.seconds, 3),
        },
        is_error=True if failure is not None else None,
    )


class _Progress:
    """Reports what was printed, at once and then at most every :data:`UPDATE_SECONDS`."""

    def __init__(self, context: ToolContext) -> None:
        self.output: Output | None = None
        self._context = context
        self._last = -math.inf
        self._timer: asyncio.TimerHandle | None = None

    async def printed(self, chunk: bytes) -> None:
        """Take note of the start (``b""``) and of what was printed."""
        if not chunk:
            self._report()
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            wait = self._last + UPDATE_SECONDS - loop.time()
            if wait > 0:
                self._timer = loop.call_later(wait, self._late)
            else:
                self._report()
                self._last = loop.time()

    def _late(self) -> None:
        self._timer = None
        self._last = asyncio.get_running_loop().time()
        self._report()

    def _report(self) -> None:
        assert self.output is not None
        shown = self.output.truncation()
        details = {"truncation": shown.to_json()} if shown.truncated else None
        self._context.update(ToolResult.text(shown.content, details=details))

    def stop(self) -> None:
        """Report nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
