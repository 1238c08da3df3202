"""The tool batch: what happens to the calls of one response, and a single call for tools that call tools.

Every call gets exactly one result. Results enter the transcript in source order, whatever order the calls finish in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from ._execution import ABORTED, Execution, checked, end_all
from ._run import Run
from .context import AbortSignal, AgentContext, RunContext
from .errors import HookError, error_text
from .events import (
    AgentEvent,
    ToolExecutionEndEvent,
    ToolExecutionStartEvent,
    ToolExecutionUpdateEvent,
)
from .hooks import NO_HOOKS, Hooks
from .messages import AssistantMessage, ToolCallContent, ToolResultMessage
from .tools import Block, Tool, ToolCall, ToolCallOutcome, ToolContext, ToolResult

BLOCKED = "Tool execution was blocked"


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


def _has_sequential(tools: Sequence[Tool], calls: Sequence[ToolCallContent]) -> bool:
    found = (find_tool(tools, call.name) for call in calls)
    return any(tool is not None and tool.execution_mode == "sequential" for tool in found)


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
    one_by_one = len(calls) == 1 or run.tool_execution == "sequential" or _has_sequential(run.context.tools, calls)
    finished = await (_sequential if one_by_one else _parallel)(run, message, calls)
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
        await end_all(tasks)
    # What failed comes before the cancellations it caused.
    for task in sorted(tasks, key=asyncio.Future.cancelled):
        task.result()


async def _prepare(run: Run, message: AssistantMessage, content: ToolCallContent) -> ToolCall | ToolCallOutcome:
    """Look a call up, check its arguments and ask the guards."""
    call = _validated(run, message, content)
    if "before_tool_call" not in run.hooked or not isinstance(call, ToolCall):
        return call
    try:
        verdict = await run.hooks.before_tool_call(call, run.ctx)
    except Exception as error:
        return _failure(content, error_text(error))
    if run.aborted:
        return _failure(content, ABORTED)
    if isinstance(verdict, Block):
        blocked = _failure(content, verdict.reason or BLOCKED)
        blocked.result.terminate = verdict.terminate or None
        return blocked
    return verdict


def _validated(run: Run, message: AssistantMessage, content: ToolCallContent) -> ToolCall | ToolCallOutcome:
    if run.aborted:
        return _failure(content, ABORTED)
    tool = find_tool(run.context.tools, content.name)
    if tool is None:
        return _failure(content, f"Tool {content.name} not found")
    try:
        arguments = tool.prepare(content)
    except Exception as error:
        return _failure(content, error_text(error))
    return ToolCall(content, arguments, tool, message, ToolContext(content.id, run.signal, run.ctx))


async def _execute(run: Run, call: ToolCall) -> ToolCallOutcome:
    """Run a prepared call and patch its result; only a failing listener or a cancellation comes out."""
    if run.aborted:
        return _failure(call.content, ABORTED)
    execution = Execution(run, call)
    began = time.perf_counter()
    try:
        result, is_error = await execution.result()
        duration = round((time.perf_counter() - began) * 1000)
        await execution.settle()
    except BaseException:
        await end_all(execution.handlers)
        raise
    run.check()
    if "after_tool_call" in run.hooked:
        try:
            result, is_error = await run.hooks.after_tool_call(call, result, is_error, run.ctx)
            result = checked(call.name, result)
        except Exception as error:
            result, is_error = ToolResult.error(error_text(error)), True
    return ToolCallOutcome(call.content, result, is_error, duration)


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
        if "record_tool_result" in run.hooked:
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
        hooked=hooks.implemented(),
        ctx=ctx or RunContext(signal=signal, context=around),
        sink=emit,
        signal=signal,
        new_messages=[],
        abort_grace_seconds=abort_grace_seconds,
    )
    prepared = await _prepare(run, assistant_message, call)
    return await _execute(run, prepared) if isinstance(prepared, ToolCall) else prepared
