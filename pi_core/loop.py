"""The double loop: the model speaks, the tools it names run, the results go back, until it asks for no more.

The inner loop goes on while there are tool results or steering messages to answer; the outer one starts it again when
follow-up messages arrive where the run would stop.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from ._requests import Requests
from ._run import Emit, Run, ToolExecution
from .batch import Batch, run_tool_batch
from .context import AbortSignal, AgentContext, RunContext, Turn, as_messages
from .errors import ContinueError
from .events import (
    AgentEndEvent,
    AgentEvent,
    AgentStartEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from .hooks import HOOKS_OF_EVENTS, NO_HOOKS, Hooks
from .messages import (
    AgentMessage,
    AssistantMessage,
    ThinkingLevel,
)
from .providers import (
    Model,
    StreamFunction,
    StreamOptions,
    get_default_stream,
)
from .streams import EventStream

Poll: TypeAlias = Callable[[], Iterable[AgentMessage] | Awaitable[Iterable[AgentMessage] | None] | None]


@dataclass(slots=True, kw_only=True)
class AgentLoopConfig:
    """How a run is made.

    :param thinking_level: ``off`` by default.
    :param options: what every request is made with; signal, key and reasoning are set by the loop.
    :param hooks: the facade whose hooks are called.
    :param stream: makes the requests; the process-wide default without it.
    :param steering: polled for messages to put in before the next request; they come before those of the plugins.
    :param follow_up: polled for messages where the run would stop; they come before those of the plugins.
    :param skip_first_poll: start without polling for steering.
    :param tool_execution: ``sequential`` runs one call at a time.
    :param abort_grace_seconds: how long a tool may go on after an abort before it is cancelled; ``None`` for ever.
    :param ctx: the run context the hooks get; made by the loop without it.
    :param cancel: called once when the run fails while calls still run.
    """

    model: Model
    thinking_level: ThinkingLevel = "off"
    options: StreamOptions = field(default_factory=StreamOptions)
    hooks: Hooks = NO_HOOKS
    stream: StreamFunction | None = None
    steering: Poll | None = None
    follow_up: Poll | None = None
    skip_first_poll: bool = False
    tool_execution: ToolExecution = "parallel"
    abort_grace_seconds: float | None = None
    ctx: RunContext | None = None
    cancel: Callable[[], None] | None = None


async def run_agent_loop(
    prompts: Sequence[AgentMessage],
    context: AgentContext,
    config: AgentLoopConfig,
    emit: Emit,
    signal: AbortSignal | None = None,
) -> list[AgentMessage]:
    """Run with new messages and return all messages of the run, the prompts first.

    :param context: stays as it is.
    :param emit: gets every event; what it returns is awaited. What it raises, and what a hook raises, comes out.
    """
    own = context.copy()
    run = _start(own, config, emit, signal)
    await run.say(AgentStartEvent())
    await run.say(TurnStartEvent())
    for message in prompts:
        await run.add_message(message)
        _append(run, message)
    return await _loop(run, config)


async def run_agent_loop_continue(
    context: AgentContext, config: AgentLoopConfig, emit: Emit, signal: AbortSignal | None = None
) -> list[AgentMessage]:
    """Run on from the messages that are there and return the new ones.

    :raises ContinueError: there are none, or the last one is an assistant message.
    """
    check_continuable(context)
    run = _start(context.copy(), config, emit, signal)
    await run.say(AgentStartEvent())
    await run.say(TurnStartEvent())
    return await _loop(run, config)


def agent_loop(
    prompts: Sequence[AgentMessage],
    context: AgentContext,
    config: AgentLoopConfig,
    signal: AbortSignal | None = None,
) -> EventStream[AgentEvent, list[AgentMessage]]:
    """As :func:`run_agent_loop`, as a stream of events whose result is the run's messages.

    A reader does not hold the loop back. What the run raises comes out of the iteration and of ``result()``; closing
    the stream ends the run.
    """
    return _as_stream(lambda emit: run_agent_loop(prompts, context, config, emit, signal))


def agent_loop_continue(
    context: AgentContext, config: AgentLoopConfig, signal: AbortSignal | None = None
) -> EventStream[AgentEvent, list[AgentMessage]]:
    """As :func:`run_agent_loop_continue`, as a stream.

    :raises ContinueError: at once.
    """
    check_continuable(context)
    return _as_stream(lambda emit: run_agent_loop_continue(context, config, emit, signal))


def check_continuable(context: AgentContext) -> None:
    """Refuse a context that no run can go on from.

    :raises ContinueError: there are no messages, or the last one is an assistant message.
    """
    if not context.messages:
        raise ContinueError("Cannot continue: no messages in context")
    if isinstance(context.messages[-1], AssistantMessage):
        raise ContinueError("Cannot continue from message role: assistant")


def _start(context: AgentContext, config: AgentLoopConfig, emit: Emit, signal: AbortSignal | None) -> Run:
    ctx = config.ctx or RunContext(signal=signal)
    ctx.model, ctx.thinking_level = config.model, config.thinking_level
    ctx.begin(config.hooks)
    ctx.enter(context)
    hooked = config.hooks.implemented()
    return Run(
        context=context,
        hooks=config.hooks,
        hooked=hooked,
        ctx=ctx,
        sink=emit,
        watched=frozenset(event for event, hook in HOOKS_OF_EVENTS.items() if hook in hooked),
        signal=signal,
        new_messages=[],
        tool_execution=config.tool_execution,
        abort_grace_seconds=config.abort_grace_seconds,
        cancel=config.cancel,
    )


def _append(run: Run, message: AgentMessage) -> None:
    run.context.messages.append(message)
    run.new_messages.append(message)


async def _loop(run: Run, config: AgentLoopConfig) -> list[AgentMessage]:
    requests = Requests(run, config.options, config.stream or get_default_stream())
    hooks, ctx = run.hooks, run.ctx
    pending: list[AgentMessage] = []
    if not config.skip_first_poll:
        pending = await _poll(run, config.steering, "steering_messages")
    last: Turn | None = None
    while True:
        more = True
        while more or pending:
            if last is not None:
                pending = await _between_turns(run, config, last, pending)
                ctx.turn_index += 1
                await run.say(TurnStartEvent())
            for message in pending:
                await run.add_message(message)
                _append(run, message)
            pending = []
            response = await requests.make()
            _append(run, response)
            if response.stop_reason in ("error", "aborted"):
                await run.say(TurnEndEvent(response, ()))
                return await _end(run)
            calls = response.tool_calls
            batch = await run_tool_batch(run, response, calls) if calls else Batch([], True)
            for result in batch.results:
                _append(run, result)
            more = not batch.terminate
            await run.say(TurnEndEvent(response, tuple(batch.results)))
            last = Turn(response, batch.results, run.context, run.new_messages)
            if "should_stop_after_turn" in run.hooked and await hooks.should_stop_after_turn(last.copy(), ctx):
                return await _end(run)
            pending = await _poll(run, config.steering, "steering_messages")
        pending = await _poll(run, config.follow_up, "follow_up_messages")
        if not pending:
            return await _end(run)


async def _end(run: Run) -> list[AgentMessage]:
    await run.say(AgentEndEvent(run.new_messages))
    return run.new_messages


async def _between_turns(
    run: Run, config: AgentLoopConfig, last: Turn, pending: list[AgentMessage]
) -> list[AgentMessage]:
    """Let the next turn be prepared and return the messages it starts with."""
    prepared: list[AgentMessage] = []
    if "prepare_next_turn" in run.hooked and not run.aborted:
        update = await run.hooks.prepare_next_turn(last.copy(), run.ctx)
        if update is not None:
            prepared = list(update.messages or ())
            if update.context is not None:
                run.context = update.context.copy()
                run.ctx.enter(run.context)
            run.ctx.model = update.model or run.ctx.model
            run.ctx.thinking_level = update.thinking_level or run.ctx.thinking_level
    if not pending:
        pending = await _poll(run, config.steering, "steering_messages")
    return prepared + pending


async def _poll(run: Run, queue: Poll | None, hook: str) -> list[AgentMessage]:
    """Take what a queue and the plugins have; nothing once the run is aborted.

    The plugins are asked first, so that nothing has been taken from the queue when one of them fails.
    """
    if run.aborted:
        return []
    offered = await getattr(run.hooks, hook)(run.ctx) if hook in run.hooked else []
    if queue is None:
        return cast("list[AgentMessage]", offered)
    taken: Any = queue()
    if not taken:
        return offered
    return as_messages(await taken if inspect.isawaitable(taken) else taken) + offered


def _as_stream(
    start: Callable[[Emit], Awaitable[list[AgentMessage]]],
) -> EventStream[AgentEvent, list[AgentMessage]]:
    stream: EventStream[AgentEvent, list[AgentMessage]] = EventStream(
        lambda event: (list(event.messages),) if isinstance(event, AgentEndEvent) else None
    )

    async def drive() -> None:
        try:
            stream.end(await start(stream.push))
        except BaseException as error:
            stream.fail(error)
            if not isinstance(error, Exception):
                raise

    task = asyncio.ensure_future(drive())

    async def stop() -> None:
        task.cancel()
        await asyncio.wait([task])

    stream.on_close(stop)
    return stream
