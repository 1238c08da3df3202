"""Writes a line of JSON for every call of a hook's implementation: who, when, how long, and what it changed.

The option ``file`` names where; ``pi --trace-hooks FILE`` does the same for one run. ``pi trace show FILE`` reads it.
Secrets are masked and long texts cut, so that a trace can be shown to others.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from pi_core import Command, HookTrace, PluginFailure, RunContext, hookimpl

if TYPE_CHECKING:
    import click


class TraceOptions(BaseModel):
    """Options of the plugin.

    :param file: where the lines are appended; nothing is traced without it.
    :param max_chars: the longest text of one change.
    """

    model_config = ConfigDict(extra="forbid")

    file: Path | None = None
    max_chars: int = 400


class TracePlugin:
    """Traces hooks into a file."""

    Options = TraceOptions

    def __init__(self) -> None:
        self._options = TraceOptions()
        self._stop: Callable[[], None] | None = None

    @hookimpl
    def configure(self, options: TraceOptions) -> None:
        """Take the options."""
        self._options = options

    @hookimpl
    def register_commands(self) -> list[Command]:
        """Offer ``pi trace``."""
        return [Command(name="trace", help="Read what was traced.", load=_command)]

    @hookimpl(tryfirst=True)
    def on_agent_start(self, ctx: RunContext) -> None:
        """Begin to trace."""
        if self._options.file is None or self._stop is not None:
            return

        def failed(error: OSError) -> None:
            ctx.hooks.report(PluginFailure("trace", "", "on_agent_start", error, disabled=True))

        writer = TraceWriter(self._options.file, self._options.max_chars, failed=failed)
        stop = ctx.hooks.trace(writer)

        def end() -> None:
            stop()
            writer.close()

        self._stop = end

    @hookimpl(trylast=True)
    def on_agent_end(self) -> None:
        """End tracing until the next run."""
        if self._stop is not None:
            self._stop()
            self._stop = None


class TraceWriter:
    """A tracer that appends to a file until that fails.

    :param max_chars: the longest text of one change.
    :param failed: told why no more is written, as when the disk is full; without it the failure is logged.
    :raises OSError: the file cannot be opened.
    """

    def __init__(self, path: Path, max_chars: int = 400, *, failed: Callable[[OSError], None] | None = None) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._max_chars = max_chars
        self._failed = failed
        self._first: float | None = None

    def __call__(self, trace: HookTrace) -> None:
        """Append one line."""
        if self._file.closed:
            return
        line = self._line(trace)
        try:
            self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
            self._file.flush()
        except OSError as error:
            self.close()
            if self._failed is None:
                raise
            self._failed(error)

    def close(self) -> None:
        """Close the file; what is traced from now on is not written."""
        # What a failed write has left is written once more.
        with suppress(OSError):
            self._file.close()

    def _line(self, trace: HookTrace) -> dict[str, Any]:
        from ._trace_changes import change, shown

        if self._first is None:
            self._first = trace.began
        line: dict[str, Any] = {
            "at": round((trace.began - self._first) * 1000, 3),
            "ms": round(trace.seconds * 1000, 3),
            "hook": trace.hook,
            "plugin": trace.owner.plugin,
            "distribution": trace.owner.distribution,
            "function": trace.function,
        }
        if trace.wrapper:
            line["wrapper"] = True
        if trace.error is not None:
            line["error"] = shown(f"{type(trace.error).__name__}: {trace.error}", self._max_chars)
        else:
            changed = change(trace, self._max_chars)
            if changed is not None:
                line["changed"] = changed
        return line


def _command() -> click.Command:
    import click

    @click.group()
    def trace() -> None:
        """Read what was traced."""

    @trace.command("show")
    @click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
    @click.option("--changes", is_flag=True, help="Only calls that changed something or failed.")
    def show(file: Path, changes: bool) -> int:
        """Print a trace as a timeline."""
        from ._trace_changes import timeline

        code = 0
        for text in timeline(file, only_changes=changes):
            code = code or int(text.startswith("line "))
            click.echo(text)
        return code

    return trace
