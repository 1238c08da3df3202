"""One tool call while it runs: its progress reports, its result, and what ends it early."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ._run import Run
from .errors import error_text
from .events import ToolExecutionUpdateEvent
from .messages import ImageContent, OpaqueContent, TextContent, ToolResultMessage, Usage
from .tools import UNSET, ToolCall, ToolResult, ignore_update, to_json_value

ABORTED = "Operation aborted"
_BLOCKS = (TextContent, ImageContent, OpaqueContent)


async def end_all(tasks: Sequence[asyncio.Future[None]]) -> None:
    """Cancel the tasks and wait until all have ended, also when this is cancelled itself meanwhile."""
    interrupted: asyncio.CancelledError | None = None
    while running := [task for task in tasks if not task.done()]:
        for task in running:
            task.cancel()
        try:
            await asyncio.wait(running)
        except asyncio.CancelledError as error:
            interrupted = error
    for task in tasks:
        if not task.cancelled():
            task.exception()
    if interrupted is not None:
        raise interrupted


def checked(name: str, result: Any) -> ToolResult:
    """Return a result whose content is a list of blocks; blocks in JSON form are taken too.

    :raises TypeError: it is no result, its content or usage is something else, or its data would fail when it is
        written down.
    """
    if not isinstance(result, ToolResult):
        raise TypeError(f"Tool {name} gave {type(result).__name__} instead of a ToolResult")
    if result.usage is not None and not isinstance(result.usage, Usage):
        raise TypeError(f"Tool {name} gave {type(result.usage).__name__} instead of a Usage")
    if result.details is not None:
        _writable(name, "details", result.details)
    if result.structured_content is not UNSET:
        _writable(name, "structured content", result.structured_content)
    content = result.content
    if content is None:
        return result
    if type(content) is list:
        for block in content:
            if not isinstance(block, _BLOCKS):
                break
        else:
            return result
    try:
        message = ToolResultMessage(tool_call_id="", tool_name=name, content=content)
    except ValueError as error:
        raise TypeError(f"Tool {name} gave content that is not a list of text and image blocks: {error}") from error
    return replace(result, content=message.content)


def _writable(name: str, kind: str, data: Any) -> None:
    try:
        # In lists, because a message adds levels of its own.
        to_json_value([[[data]]], fallback=_no_text)
    except Exception as error:
        raise TypeError(f"Tool {name} gave {kind} that cannot be written as JSON: {error}") from error


def _no_text(value: Any) -> None:
    """Spare an object being made a text, which nobody would read."""


class Execution:
    """One call while it runs.

    Reports are announced at once, and dropped when the call has settled. The call is cancelled when its timeout or the
    grace period after an abort is over, and when a listener fails on a report, which fails the run and not the tool.
    """

    __slots__ = ("_call", "_ended", "_failure", "_loop", "_run", "_settled", "_task", "_thread", "_timer", "handlers")

    def __init__(self, run: Run, call: ToolCall) -> None:
        self._run = run
        self._call = call
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._task: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._ended: str | None = None
        self._settled = False
        self._failure: BaseException | None = None
        self.handlers: list[asyncio.Future[None]] = []
        call.context.on_update = self._report

    async def result(self) -> tuple[ToolResult, bool]:
        """Run the call; what the tool raises is a result."""
        run, call, signal = self._run, self._call, self._run.signal
        task = self._task = asyncio.current_task(self._loop)
        assert task is not None
        cancellations = task.cancelling()
        forget: Callable[[], None] | None = None
        if signal is not None and run.abort_grace_seconds is not None:
            forget = signal.on_abort(self._limit_after_abort)
        if call.tool.timeout is not None:
            text = f"Tool {call.name} timed out after {call.tool.timeout:g} seconds"
            self._end_after(call.tool.timeout, text)
        try:
            if "execute_tool" in run.hooked:
                result = await run.hooks.execute_tool(call, run.ctx)
            else:
                result = await call.run()
            result = checked(call.name, result)
            return result, result.is_error is True
        except asyncio.CancelledError:
            if task.cancelling() > cancellations + (self._ended is not None):
                raise
            text = f"Tool {call.name} was cancelled" if self._ended is None else self._ended
        except SystemExit as error:
            text = f"Tool {call.name} tried to exit the process with {error.code!r}"
        except Exception as error:
            text = error_text(error)
        finally:
            self._settled = True
            self._let_go()
            if self._ended is not None:
                task.uncancel()
            if forget is not None:
                forget()
            if self._timer is not None:
                self._timer.cancel()
        return ToolResult.error(text), True

    def _let_go(self) -> None:
        """Point at nothing that points here, so that a call is freed when it is over and not by the collector."""
        self._task = None
        self._call.context.on_update = ignore_update

    async def settle(self) -> None:
        """Wait until the announced reports were handled.

        :raises Exception: a listener failed on one.
        """
        if self.handlers:
            await asyncio.wait(self.handlers)
        if self._failure is not None:
            raise self._failure

    def _limit_after_abort(self) -> None:
        self._end_after(self._run.abort_grace_seconds or 0, ABORTED)

    def _end_after(self, seconds: float, text: str) -> None:
        """Cancel the call after some time, unless it is to end earlier; ``text`` is its result then."""
        deadline = self._loop.time() + seconds
        if self._timer is None or deadline < self._timer.when():
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(deadline, self._end, text)

    def _end(self, text: str) -> None:
        if self._task is not None and self._ended is None and not self._settled:
            self._ended = text
            self._task.cancel()

    def _report(self, result: ToolResult) -> None:
        result = checked(self._call.name, result)
        if threading.get_ident() == self._thread:
            self._announce(result)
        elif not self._settled:
            self._loop.call_soon_threadsafe(self._announce, result)

    def _announce(self, result: ToolResult) -> None:
        if self._settled or self._run.failed:
            return
        content = self._call.content
        try:
            event = ToolExecutionUpdateEvent(content.id, content.name, content.arguments, result)
            pending = self._run.announcer(ToolExecutionUpdateEvent)(event)
        except Exception as error:
            self._fail(error)
        else:
            if pending is not None:
                handler = asyncio.ensure_future(pending)
                handler.add_done_callback(self._handled)
                self.handlers.append(handler)

    def _handled(self, handler: asyncio.Future[None]) -> None:
        error = None if handler.cancelled() else handler.exception()
        if error is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self._run.failed = True
        if self._ended is None:
            self._end_after(0, error_text(error))
