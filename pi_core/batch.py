"""The tool batch: what happens to the calls of one response, and a single call for tools that call tools.

Every call gets exactly one result. Results enter the transcript in source order, whatever order the calls finish in.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

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
from .messages import (
    AgentMessage,
    AssistantMessage,
    ImageContent,
    OpaqueContent,
    TextContent,
    ToolCallContent,
    ToolResultMessage,
)
from .tools import Block, Tool, ToolCall, ToolCallOutcome, ToolContext, ToolResult

ToolExecution: TypeAlias = Literal["parallel", "sequential"]
Emit: TypeAlias = Callable[[AgentEvent], Awaitable[None] | None]
"""Announces an event; what it returns is awaited when it is not ``None``."""

ABORTED = "Operation aborted"
BLOCKED = "Tool execution was blocked"
_BLOCKS = (TextContent, ImageContent, OpaqueContent)


@dataclass(slots=True)
class Run:
    """What the functions of one run share.

    :param cancel: called once when the run fails, before calls that still run are cancelled.
    :param failed: whether the run has failed, so that nothing more may be announced.
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
    failed: bool = False

    @property
    def aborted(self) -> bool:
        """Whether the run's signal is aborted."""
        return self.signal is not None and self.signal.aborted

    async def say(self, event: AgentEvent) -> None:
        """Announce an event and wait until it was handled."""
        self.check()
        try:
            pending = self.emit(event)
            if pending is not None:
                await pending
        except Exception:
            self.failed = True
            raise

    def check(self) -> None:
        """End a call that goes on although the run has failed.

        :raises asyncio.CancelledError: it has.
        """
        if self.failed:
            raise asyncio.CancelledError("the run has failed")

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
        try:
            finished[position] = await _close(run, await _execute(run, prepared))
        except Exception:
            run.failed = True
            raise

    if len(waiting) == 1:
        await finish(waiting[0])
    elif waiting:
        await _together(run, [finish(position) for position in waiting])
    closed = [item for item in finished if not isinstance(item, ToolCall)]
    for _, result in closed:
        await run.add_message(result)
    return closed


async def _together(run: Run, coroutines: Iterable[Awaitable[None]]) -> None:
    """Run the coroutines side by side; the first failure cancels the others and comes out when they have ended."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        if run.failed and run.cancel is not None:
            run.cancel()
    finally:
        await _end_all(tasks)
    # What failed comes before the cancellations it caused.
    for task in sorted(tasks, key=asyncio.Future.cancelled):
        task.result()


async def _end_all(tasks: Sequence[asyncio.Future[None]]) -> None:
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
    execution = _Execution(run, call)
    began = time.perf_counter()
    try:
        result, is_error = await execution.result()
        duration = round((time.perf_counter() - began) * 1000)
        await execution.settle()
    except BaseException:
        await _end_all(execution.handlers)
        raise
    run.check()
    if run.hooks.has("after_tool_call"):
        try:
            result, is_error = await run.hooks.after_tool_call(call, result, is_error, run.ctx)
            result = _checked(call.name, result)
        except Exception as error:
            result, is_error = ToolResult.error(error_text(error)), True
        run.check()
    return ToolCallOutcome(call.content, result, is_error, duration)


def _checked(name: str, result: Any) -> ToolResult:
    """Return a result whose content is made of blocks; blocks in JSON form are taken too.

    :raises TypeError: it is no result, or its content is something else.
    """
    if not isinstance(result, ToolResult):
        raise TypeError(f"Tool {name} gave {type(result).__name__} instead of a ToolResult")
    content = result.content
    if content is None or all(isinstance(block, _BLOCKS) for block in content):
        return result
    try:
        message = ToolResultMessage(tool_call_id="", tool_name=name, content=content)
    except ValueError as error:
        raise TypeError(f"Tool {name} gave content that is not a list of text and image blocks: {error}") from error
    return replace(result, content=message.content)


class _Execution:
    """One call while it runs: its progress reports, and what ends it early.

    Reports are announced at once, and dropped when the call has settled. The call is cancelled when its timeout or the
    grace period after an abort is over, and when a listener fails on a report, which fails the run and not the tool.
    """

    __slots__ = ("_aborted", "_call", "_failure", "_loop", "_run", "_scope", "_settled", "_thread", "handlers")

    def __init__(self, run: Run, call: ToolCall) -> None:
        self._run = run
        self._call = call
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._scope = asyncio.timeout(call.tool.timeout)
        self._aborted = False
        self._settled = False
        self._failure: BaseException | None = None
        self.handlers: list[asyncio.Future[None]] = []
        call.context.on_update = self._report

    async def result(self) -> tuple[ToolResult, bool]:
        """Run the call; what the tool raises is a result."""
        run, call = self._run, self._call
        task = asyncio.current_task()
        cancellations = task.cancelling() if task is not None else 0
        forget: Callable[[], None] | None = None
        try:
            async with self._scope:
                if run.signal is not None and run.abort_grace_seconds is not None:
                    forget = run.signal.on_abort(self._limit_after_abort)
                result = _checked(call.name, await run.hooks.execute_tool(call, run.ctx))
            return result, result.is_error is True
        except asyncio.CancelledError:
            if task is None or task.cancelling() > cancellations:
                raise
            text = f"Tool {call.name} was cancelled"
        except TimeoutError as error:
            if self._failure is not None:
                raise self._failure from None
            text = error_text(error)
            if self._scope.expired():
                text = ABORTED if self._aborted else f"Tool {call.name} timed out after {call.tool.timeout:g} seconds"
        except SystemExit as error:
            text = f"Tool {call.name} tried to exit the process with {error.code!r}"
        except Exception as error:
            text = error_text(error)
        finally:
            self._settled = True
            if forget is not None:
                forget()
        return ToolResult.error(text), True

    async def settle(self) -> None:
        """Wait until the announced reports were handled.

        :raises Exception: a listener failed on one.
        """
        if self.handlers:
            await asyncio.wait(self.handlers)
        if self._failure is not None:
            raise self._failure

    def _limit_after_abort(self) -> None:
        deadline = self._loop.time() + (self._run.abort_grace_seconds or 0)
        earlier = self._scope.when()
        if not self._scope.expired() and (earlier is None or deadline < earlier):
            self._aborted = True
            self._scope.reschedule(deadline)

    def _report(self, result: ToolResult) -> None:
        if threading.get_ident() == self._thread:
            self._announce(result)
        elif not self._settled:
            self._loop.call_soon_threadsafe(self._announce, result)

    def _announce(self, result: ToolResult) -> None:
        if self._settled or self._run.failed:
            return
        content = self._call.content
        try:
            pending = self._run.emit(ToolExecutionUpdateEvent(content.id, content.name, content.arguments, result))
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
        if not self._settled and not self._scope.expired():
            self._scope.reschedule(self._loop.time())


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
