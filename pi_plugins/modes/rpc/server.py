"""Takes commands, runs them side by side, and gives exactly one answer to each."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any

import click

from pi_core import Build, PiError
from pi_plugins.coding_agent import AgentSession, SessionEvent, SessionOptions, event_json, prepare_session

from .._signals import stopping_on_signals
from .._stdout import records_only
from ..printing import open_session
from .commands import COMMANDS, BadCommandError
from .dialogs import RESPONSE, Dialogs
from .wire import LineReader, RecordWriter


async def run_rpc(build: Build, options: SessionOptions, *, trace: Path | None = None) -> int:
    """Serve one client on standard input and output until it closes the input, and return the exit code.

    :raises ConfigError: there is no such session, model or tool.
    """
    options.source = "rpc"
    with records_only() as descriptor:
        writer = RecordWriter(descriptor)
        dialogs = Dialogs(writer.put)
        prepared = await prepare_session(options, build)
        session = await open_session(prepared, trace, {"ask_user": dialogs.ask})
        server = _Server(session, writer, dialogs)
        return await server.serve()


class _Server:
    """One client and its session."""

    def __init__(self, session: AgentSession, writer: RecordWriter, dialogs: Dialogs) -> None:
        self._session = session
        self._writer = writer
        self._dialogs = dialogs
        self._reader = LineReader(sys.stdin.fileno())
        self._running: set[asyncio.Task[None]] = set()
        session.subscribe(self._on_event)

    async def serve(self) -> int:
        reader = self._reader
        ends = [asyncio.create_task(self._close_when_gone()), asyncio.create_task(self._close_when_asked())]
        with stopping_on_signals(reader.close) as received:
            try:
                async for line in reader:
                    self._take(line)
                    if received:
                        break
                if not received:
                    await self._settle()
            finally:
                for end in ends:
                    end.cancel()
                self._dialogs.cancel()
                await self._session.close()
                if self._running:
                    await asyncio.wait(self._running)
                await self._writer.close()
        if self._writer.failure is not None:
            raise self._writer.failure
        return received[0] if received else 0

    async def _close_when_gone(self) -> None:
        await self._writer.gone.wait()
        self._reader.close()

    async def _close_when_asked(self) -> None:
        await self._session.leaving.wait()
        self._leave_if_asked()

    def _leave_if_asked(self) -> None:
        if self._session.leaving.is_set() and self._session.is_idle:
            self._reader.close()

    async def _settle(self) -> None:
        """Let the commands that were taken come to their answers; only dialogs and runs are not waited for."""
        self._dialogs.cancel()
        self._session.abort()
        if self._running:
            await asyncio.wait(self._running)

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            command = json.loads(line.decode("utf-8"))
            if not isinstance(command, dict):
                raise ValueError("expected an object")
        except ValueError as error:
            self._answer(None, "parse", error=f"Failed to parse command: {error}")
            return
        if command.get("type") == RESPONSE:
            self._dialogs.answer(command)
            return
        task = asyncio.create_task(self._run(command))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, command: Mapping[str, Any]) -> None:
        name, identifier = command.get("type"), command.get("id")
        run = COMMANDS.get(name) if isinstance(name, str) else None
        if run is None:
            self._answer(identifier, str(name), error=f"Unknown command: {name}")
            return
        try:
            data = await run(self._session, command, self._writer.put)
        except (BadCommandError, PiError) as error:
            self._answer(identifier, str(name), error=str(error))
        except Exception as error:
            self._answer(identifier, str(name), error=f"{type(error).__name__}: {error}")
        else:
            self._answer(identifier, str(name), data)
        self._leave_if_asked()

    def _answer(self, identifier: Any, command: str, data: Any = None, error: str | None = None) -> None:
        record: dict[str, Any] = {} if identifier is None else {"id": identifier}
        record |= {"type": "response", "command": command, "success": error is None}
        if error is not None:
            record["error"] = error
        elif data is not None:
            record["data"] = data
        self._writer.put(record)

    def _on_event(self, event: SessionEvent) -> Awaitable[None] | None:
        if event.type == "notice":
            self._dialogs.notify(event.text, event.level)  # type: ignore[union-attr]
            return None
        if event.type == "extension_error":
            click.echo(f"pi: plugin '{event.plugin}', hook {event.hook}: {event.error}", err=True)  # type: ignore[union-attr]
        pending = self._writer.put(event_json(event))
        if event.type == "agent_settled":
            self._leave_if_asked()
        return pending
