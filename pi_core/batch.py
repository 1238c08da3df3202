"""The tool batch: what happens to the calls of one response, and a single call for tools that call tools.

Every call gets exactly one result. Results enter the transcript in source order, whatever order the calls finish in.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .context import AbortSignal, AgentContext, RunContext
from .errors import HookError, error_text
from .events import (
    AgentEvent,
    MessageEndEvent,
    MessageStartEvent,
    ToolExecutionEndEvent,
    ToolExecutionStartEvent,
    ToolExecutionUpdateEvent,
)
from .hooks import NO_HOOKS, Hooks
from .messages import AgentMessage, AssistantMessage, ToolCallContent, ToolResultMessage
from .tools import Block, Tool, ToolCall, ToolCallOutcome, ToolContext, ToolResult

ToolExecution: TypeAlias = Literal["parallel", "sequential"]
Emit: TypeAlias = Callable[[AgentEvent], Awaitable[None] | None]
"""Announces an event; what it returns is awaited when it is not ``None``."""

ABORTED = "Operation aborted"
BLOCKED = "Tool execution was blocked"


@dataclass(slots=True)
class Run:
    """What the functions of one run share.

    :param cancel: called once when the run fails, before calls that still run are cancelled.
    """

    context: AgentContext
    hooks: Hooks
    ctx: RunContext
    emit: Emit
    signal: AbortSignal | None
    new_messages: list[AgentMessage]
    tool_execution: ToolExecution = "parallel"
    abort_grace_seconds: float | None = None
    cancel: Callable[[], None] | None = None

    @property
    def aborted(self) -> bool:
        """Whether the run's signal is aborted."""
        return self.signal is not None and self.signal.aborted

    async def say(self, event: AgentEvent) -> None:
        """Announce an event and wait until it was handled."""
        pending = self.emit(event)
        if pending is not None:
            await pending

    async def close_message(self, message: AgentMessage) -> None:
        """Let the message be recorded, then announce its end; it is announced even when recording fails the run."""
        try:
            if self.hooks.has("record_message"):
                await self.hooks.record_message(message, self.ctx)
        except HookError:
            await self.say(MessageEndEvent(message))
            raise
        await self.say(MessageEndEvent(message))

    async def add_message(self, message: AgentMessage) -> None:
        """Announce a complete message."""
        await self.say(MessageStartEvent(message))
        await self.close_message(message)


@dataclass(slots=True)
class Batch:
    """The results of a batch in source order, and whether every one of them asks to end the run."""

    results: list[ToolResultMessage]
    terminate: bool


def truncation_text(name: str) -> str:
    """What the model is told about a call from a response that hit the token limit."""
    return (
        f'Tool call "{name}" was not executed: the response hit the output token limit, so its arguments may be '
        "truncated. Re-issue the tool call with complete arguments."
    )


def find_tool(tools: Sequence[Tool], name: str) -> Tool | None:
    """Return the tool of a name."""
    for tool in tools:
        if tool.name == name:
            return tool
    return None


def _failure(call: ToolCallContent, text: str) -> ToolCallOutcome:
    return ToolCallOutcome(call, ToolResult.error(text), True)


async def run_tool_batch(run: Run, message: AssistantMessage, calls: list[ToolCallContent]) -> Batch:
    """Execute the calls of a response and announce their results; the caller adds them to the context.

    One sequential tool makes the whole batch sequential.
    """
    if message.stop_reason == "length":
        results = []
        for call in calls:
            await run.say(ToolExecutionStartEvent(call.id, call.name, call.arguments))
            _, result = await _close(run, _failure(call, truncation_text(call.name)))
            results.append(result)
            await run.add_message(result)
        return Batch(results, False)
    found = [find_tool(run.context.tools, call.name) for call in calls]
    if run.tool_execution == "sequential" or any(tool and tool.execution_mode == "sequential" for tool in found):
        finished = await _sequential(run, message, calls)
    else:
        finished = await _parallel(run, message, calls)
    return Batch(
        [result for _, result in finished],
        all(outcome.result.terminate is True for outcome, _ in finished),
    )


async def _sequential(
    run: Run, message: AssistantMessage, calls: list[ToolCallContent]
) -> list[tuple[ToolCallOutcome, ToolResultMessage]]:
    finished = []
    for call in calls:
        await run.say(ToolExecutionStartEvent(call.id, call.name, call.arguments))
        prepared = await _prepare(run, message, call)
        outcome = await _execute(run, prepared) if isinstance(prepared, ToolCall) else prepared
        closed = await _close(run, outcome)
        await run.add_message(closed[1])
        finished.append(closed)
    return finished


async def _parallel(
    run: Run, message: AssistantMessage, calls: list[ToolCallContent]
) -> list[tuple[ToolCallOutcome, ToolResultMessage]]:
    finished: list[tuple[ToolCallOutcome, ToolResultMessage] | ToolCall] = []
    for call in calls:
        await run.say(ToolExecutionStartEvent(call.id, call.name, call.arguments))
        prepared = await _prepare(run, message, call)
        finished.append(prepared if isinstance(prepared, ToolCall) else await _close(run, prepared))
    waiting = [position for position, item in enumerate(finished) if isinstance(item, ToolCall)]

    async def finish(position: int) -> None:
        prepared = finished[position]
        assert isinstance(prepared, ToolCall)
        finished[position] = await _close(run, await _execute(run, prepared))

    if len(waiting) == 1:
        await finish(waiting[0])
    elif waiting:
        await _together(run, [finish(position) for position in waiting])
    closed = [item for item in finished if not isinstance(item, ToolCall)]
    for _, result in closed:
        await run.add_message(result)
    return closed


async def _together(run: Run, coroutines: list[Awaitable[None]]) -> None:
    """Run the coroutines side by side; the first failure cancels the others and comes out when they have ended."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        failed = [task for task in tasks if task in done and not task.cancelled() and task.exception() is not None]
        if failed and pending and run.cancel is not None:
            run.cancel()
    finally:
        running = [task for task in tasks if not task.done()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
    for task in tasks:
        await task


async def _prepare(run: Run, message: AssistantMessage, content: ToolCallContent) -> ToolCall | ToolCallOutcome:
    """Look a call up, check its arguments and ask the guards."""
    if run.aborted:
        return _failure(content, ABORTED)
    tool = find_tool(run.context.tools, content.name)
    if tool is None:
        return _failure(content, f"Tool {content.name} not found")
    try:
        arguments = tool.prepare(content)
    except Exception as error:
        return _failure(content, error_text(error))
    call = ToolCall(content, arguments, tool, message, ToolContext(content.id, run.signal, run.ctx))
    if not run.hooks.has("before_tool_call"):
        return call
    try:
        verdict = await run.hooks.before_tool_call(call, run.ctx)
    except Exception as error:
        return _failure(content, error_text(error))
    if run.aborted:
        return _failure(content, ABORTED)
    if isinstance(verdict, Block):
        blocked = _failure(content, verdict.reason or BLOCKED)
        blocked.result.terminate = verdict.terminate
        return blocked
    return verdict


async def _execute(run: Run, call: ToolCall) -> ToolCallOutcome:
    """Run a prepared call and patch its result; only a failing listener or a cancellation comes out."""
    if run.aborted:
        return _failure(call.content, ABORTED)
    updates = _Updates(run, call)
    call.context.on_update = updates.push
    began = time.perf_counter()
    try:
        result = await _limited(run, call)
        is_error = result.is_error is True
    except asyncio.CancelledError:
        updates.raise_failure()
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        result, is_error = ToolResult.error(f"Tool {call.name} was cancelled"), True
    except (Exception, SystemExit) as error:
        result, is_error = ToolResult.error(error_text(error)), True
    duration = round((time.perf_counter() - began) * 1000)
    await updates.settle()
    if run.hooks.has("after_tool_call"):
        try:
            result, is_error = await run.hooks.after_tool_call(call, result, is_error, run.ctx)
        except Exception as error:
            result, is_error = ToolResult.error(error_text(error)), True
    return ToolCallOutcome(call.content, result, is_error, duration)


async def _limited(run: Run, call: ToolCall) -> ToolResult:
    """Execute a call within its own timeout and, once the run is aborted, within the grace period."""
    limit, grace, signal = call.tool.timeout, run.abort_grace_seconds, run.signal
    if limit is None and (grace is None or signal is None):
        return await run.hooks.execute_tool(call, run.ctx)
    aborted = False
    try:
        async with asyncio.timeout(limit) as scope:

            def shorten() -> None:
                nonlocal aborted
                deadline = asyncio.get_running_loop().time() + (grace or 0)
                if scope.when() is None or deadline < (scope.when() or 0):
                    aborted = True
                    scope.reschedule(deadline)

            forget = signal.on_abort(shorten) if signal is not None and grace is not None else None
            try:
                return await run.hooks.execute_tool(call, run.ctx)
            finally:
                if forget is not None:
                    forget()
    except TimeoutError:
        if not scope.expired():
            raise
        text = ABORTED if aborted else f"Tool {call.name} timed out after {limit:g} seconds"
        return ToolResult(content=ToolResult.error(text).content, details={}, is_error=True)


async def _close(run: Run, outcome: ToolCallOutcome) -> tuple[ToolCallOutcome, ToolResultMessage]:
    """Let a final result be recorded, then announce it."""
    call, result = outcome.tool_call, outcome.result
    message = ToolResultMessage(
        tool_call_id=call.id,
        tool_name=call.name,
        content=result.content or [],
        details=result.details,
        usage=result.usage,
        is_error=outcome.is_error,
        duration_ms=outcome.duration_ms,
    )
    event = ToolExecutionEndEvent(call.id, call.name, result, outcome.is_error, outcome.duration_ms)
    try:
        if run.hooks.has("record_tool_result"):
            await run.hooks.record_tool_result(call, message, run.ctx)
    except HookError:
        await run.say(event)
        raise
    await run.say(event)
    return outcome, message


class _Updates:
    """The progress reports of one running call: announced at once, dropped when the call has settled.

    A listener that raises fails the run, not the tool: the call is cancelled and the listener's error comes out.
    """

    __slots__ = ("_call", "_failure", "_handlers", "_loop", "_run", "_settled", "_task", "_thread")

    def __init__(self, run: Run, call: ToolCall) -> None:
        self._run = run
        self._call = call
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._task = asyncio.current_task()
        self._handlers: list[asyncio.Future[None]] = []
        self._failure: BaseException | None = None
        self._settled = False

    def push(self, result: ToolResult) -> None:
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self._announce, result)
        else:
            self._announce(result)

    def _announce(self, result: ToolResult) -> None:
        if self._settled or self._failure is not None:
            return
        content = self._call.content
        event = ToolExecutionUpdateEvent(content.id, content.name, content.arguments, result)
        try:
            pending = self._run.emit(event)
        except Exception as error:
            self._fail(error)
            return
        if pending is not None:
            handler = asyncio.ensure_future(pending)
            handler.add_done_callback(self._handled)
            self._handlers.append(handler)

    def _handled(self, handler: asyncio.Future[None]) -> None:
        if not handler.cancelled():
            error = handler.exception()
            if error is not None:
                self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if self._failure is None:
            self._failure = error
            if not self._settled and self._task is not None:
                self._task.cancel()

    def raise_failure(self) -> None:
        """Raise what a listener failed with, taking back the cancellation that ended the call."""
        if self._failure is not None:
            if self._task is not None:
                self._task.uncancel()
            raise self._failure

    async def settle(self) -> None:
        """Drop later reports and wait until the announced ones were handled."""
        self._settled = True
        if self._handlers:
            await asyncio.wait(self._handlers)
        if self._failure is not None:
            raise self._failure


async def run_tool_call(
    call: ToolCallContent,
    *,
    tools: Sequence[Tool],
    assistant_message: AssistantMessage,
    context: AgentContext | None = None,
    signal: AbortSignal | None = None,
    on_update: Callable[[ToolResult], None] | None = None,
    hooks: Hooks = NO_HOOKS,
    ctx: RunContext | None = None,
    abort_grace_seconds: float | None = None,
) -> ToolCallOutcome:
    """Run one call through lookup, validation and the tool hooks, without events: for tools that call tools.

    Never raises for a failure of the tool.

    :param on_update: gets the tool's progress reports.
    """
    around = (context or AgentContext()).copy(tools=tools)

    def emit(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionUpdateEvent) and on_update is not None:
            on_update(event.partial_result)

    run = Run(
        context=around,
        hooks=hooks,
        ctx=ctx or RunContext(signal=signal, context=around),
        emit=emit,
        signal=signal,
        new_messages=[],
        abort_grace_seconds=abort_grace_seconds,
    )
    prepared = await _prepare(run, assistant_message, call)
    return await _execute(run, prepared) if isinstance(prepared, ToolCall) else prepared
