"""The double loop: the model speaks, the tools it names run, the results go back, until it asks for no more.

The inner loop goes on while there are tool results or steering messages to answer; the outer one starts it again when
follow-up messages arrive where the run would stop.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from ._log import log
from ._run import Emit, Run, ToolExecution
from .assembler import MessageAssembler, Replay
from .batch import Batch, run_tool_batch
from .context import AbortSignal, AgentContext, ListView, RunContext, Turn, as_messages
from .errors import ConfigError, ContinueError
from .events import (
    AgentEndEvent,
    AgentEvent,
    AgentStartEvent,
    DoneEvent,
    ErrorEvent,
    MessageStartEvent,
    MessageUpdateEvent,
    StartEvent,
    StreamEvent,
    TurnEndEvent,
    TurnStartEvent,
    UpdateEvent,
)
from .hooks import NO_HOOKS, Hooks
from .messages import (
    LLM_ROLES,
    AgentMessage,
    AssistantMessage,
    CustomMessage,
    Message,
    ThinkingLevel,
)
from .providers import (
    Context,
    Model,
    ProviderResponse,
    StreamFunction,
    StreamOptions,
    get_default_stream,
)
from .streams import EventStream

Poll: TypeAlias = Callable[[], Iterable[AgentMessage] | Awaitable[Iterable[AgentMessage] | None] | None]

NO_FINAL_EVENT = "Stream ended without a final event"
REQUEST_ABORTED = "Request was aborted"


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


def observed(hooks: Hooks, ctx: RunContext, sink: Emit) -> Emit:
    """Return an emit function that calls the ``on_*`` hooks of an event, then ``sink``."""
    watched = {name[3:] for name in _EVENT_HOOKS if hooks.has(name)}
    if not watched:
        return sink

    async def both(event: AgentEvent) -> None:
        await hooks.notify_event(event, ctx)
        pending = sink(event)
        if pending is not None:
            await pending

    return lambda event: both(event) if event.type in watched else sink(event)


_EVENT_HOOKS = tuple(f"on_{event.type}" for event in AgentEvent.__args__)


def _start(context: AgentContext, config: AgentLoopConfig, emit: Emit, signal: AbortSignal | None) -> Run:
    ctx = config.ctx or RunContext(signal=signal)
    ctx.model, ctx.thinking_level = config.model, config.thinking_level
    ctx.begin(config.hooks)
    ctx.enter(context)
    return Run(
        context=context,
        hooks=config.hooks,
        hooked=config.hooks.implemented(),
        ctx=ctx,
        emit=observed(config.hooks, ctx, emit),
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
    requests = _Requests(run, config)
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
                await run.say(TurnEndEvent(response, []))
                return await _end(run)
            calls = response.tool_calls
            batch = await run_tool_batch(run, response, calls) if calls else Batch([], True)
            for result in batch.results:
                _append(run, result)
            more = not batch.terminate
            await run.say(TurnEndEvent(response, batch.results))
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


class _Requests:
    """Makes the requests of one run; what was converted for one is not converted again for the next."""

    __slots__ = ("_converted", "_options", "_plain", "_run", "_seen", "_source", "_stream")

    def __init__(self, run: Run, config: AgentLoopConfig) -> None:
        self._run = run
        self._stream = config.stream or get_default_stream()
        if self._stream is None and "stream" not in run.hooked:
            raise _no_stream(config.model)
        self._options = _with_provider_hooks(config.options, run)
        self._source: list[AgentMessage] | None = None
        self._seen = 0
        self._plain = True
        self._converted: list[Message] = []

    async def make(self) -> AssistantMessage:
        """Make one request, announce the response as it arrives, and return it."""
        run, hooks, ctx = self._run, self._run.hooks, self._run.ctx
        if run.aborted:
            return await self._not_made()
        messages = await self._messages()
        key = await hooks.get_api_key(ctx.model.provider, ctx) if "get_api_key" in run.hooked else None
        if run.aborted:
            return await self._not_made()
        level = ctx.thinking_level
        options = self._options
        if key or level != "off":
            options = options.replace(api_key=key or options.api_key, reasoning=None if level == "off" else level)
        context = Context(run.context.system_prompt, messages, tuple(run.context.tools))
        if "stream" in run.hooked:
            stream = await hooks.stream(ctx.model, context, options, ctx, self._core)
        else:
            made = self._core(ctx.model, context, options)
            stream = made if hasattr(made, "__aiter__") else await made
        return await self._consume(stream)

    def _core(self, model: Model, context: Context, options: StreamOptions) -> Any:
        if self._stream is None:
            raise _no_stream(model)
        return self._stream(model, context, options)

    async def _messages(self) -> Sequence[Message]:
        run, hooks, ctx = self._run, self._run.hooks, self._run.ctx
        if "transform_context" not in run.hooked and "convert_to_llm" not in run.hooked:
            return self._convert_new(run.context.messages)
        given = list(run.context.messages)
        messages = await hooks.transform_context(given, ctx) if "transform_context" in run.hooked else given
        converted = await hooks.convert_to_llm(messages, ctx) if "convert_to_llm" in run.hooked else None
        if converted is not None:
            return converted
        return self._convert_new(run.context.messages) if messages is given else convert_to_llm(messages)

    def _convert_new(self, messages: list[AgentMessage]) -> Sequence[Message]:
        """Convert what was added since the last request; a list without custom messages is used as it is."""
        if self._source is not messages:
            self._source, self._seen, self._plain, self._converted = messages, 0, True, []
        for position in range(self._seen, len(messages)):
            message = messages[position]
            if self._plain and isinstance(message, CustomMessage):
                self._plain = False
                self._converted = cast("list[Message]", messages[:position])
            if not self._plain:
                self._converted += convert_to_llm([message])
        self._seen = len(messages)
        return ListView(cast("list[Message]", messages) if self._plain else self._converted)

    async def _not_made(self) -> AssistantMessage:
        reason = self._run.signal.reason if self._run.signal is not None else ""
        message = self._assembler().message("aborted", error_message=reason or REQUEST_ABORTED)
        await self._run.add_message(message)
        return message

    async def _consume(self, stream: AsyncIterable[StreamEvent]) -> AssistantMessage:
        run, emit = self._run, self._run.emit
        started: StartEvent | None = None
        source: MessageAssembler | Replay | None = None
        final: AssistantMessage | None = None
        try:
            async for event in stream:
                if isinstance(event, UpdateEvent):
                    if started is None:
                        continue
                    if event.frame is not None:
                        source = event.frame[0]
                    else:
                        if not isinstance(source, Replay):
                            source = Replay(self._assembler(), started.partial)
                        source.add(event)
                    pending = emit(MessageUpdateEvent(event))
                    if pending is not None:
                        await pending
                elif isinstance(event, StartEvent):
                    if started is None:
                        started = event
                        await run.say(MessageStartEvent(event))
                elif isinstance(event, DoneEvent | ErrorEvent):
                    final = event.message
                    break
                else:
                    raise TypeError(f"a provider yields stream events, got {event!r}")
        finally:
            await _close(stream)
        if final is None:
            settled = getattr(stream, "settled", None)
            final = settled[0] if settled is not None else self._cut_off(source, started)
        if isinstance(source, Replay):
            source.close()
        if final.stop_reason == "aborted" and run.signal is not None and run.signal.reason:
            final = final.model_copy(update={"error_message": run.signal.reason})
        if started is None:
            await run.say(MessageStartEvent(final))
        await run.close_message(final)
        return final

    def _assembler(self) -> MessageAssembler:
        model = self._run.ctx.model
        return MessageAssembler(model.api, model.provider, model.id)

    def _cut_off(self, source: MessageAssembler | Replay | None, started: StartEvent | None) -> AssistantMessage:
        """What has arrived of a response that ended without a final event, as a failure."""
        if isinstance(source, Replay):
            source = source.assembler()
        if source is None:
            source = self._assembler()
            if started is not None:
                source.begin(started.partial)
        return source.message("error", error_message=NO_FINAL_EVENT)


async def _close(stream: object) -> None:
    """Let go of a response; a failure is logged, since what counts has been read or is being raised."""
    close = getattr(stream, "aclose", None)
    if close is not None:
        try:
            await close()
        except Exception:
            log().warning("closing the stream of a response failed", exc_info=True)


def _no_stream(model: Model) -> ConfigError:
    return ConfigError(
        "No stream function: pass stream=..., install one with set_default_stream(), or add the plugin of a provider "
        f"that speaks '{model.api}'"
    )


def convert_to_llm(messages: Iterable[AgentMessage]) -> list[Message]:
    """Return the messages a model understands: the plain ones, and what each custom message stands for."""
    converted: list[Message] = []
    for message in messages:
        if isinstance(message, CustomMessage):
            given = message.to_llm()
            converted += [given] if getattr(given, "role", None) in LLM_ROLES else given  # type: ignore[list-item]
        else:
            converted.append(message)
    return converted


def _with_provider_hooks(options: StreamOptions, run: Run) -> StreamOptions:
    """The options of a run's requests, with its signal, and its provider hooks behind their callbacks."""
    hooks, ctx = run.hooks, run.ctx
    changes: dict[str, Any] = {"signal": run.signal, "reasoning": None}
    if "provider_payload" in run.hooked:

        async def on_payload(payload: Any, model: Model) -> Any:
            if options.on_payload is not None:
                own = options.on_payload(payload, model)
                own = await own if inspect.isawaitable(own) else own
                payload = payload if own is None else own
            return await hooks.provider_payload(payload, model, ctx)

        changes["on_payload"] = on_payload
    if "provider_headers" in run.hooked:

        async def transform_headers(headers: Any) -> Any:
            if options.transform_headers is not None:
                own = options.transform_headers(headers)
                headers = await own if inspect.isawaitable(own) else own
            return await hooks.provider_headers(dict(headers), ctx.model, ctx)

        changes["transform_headers"] = transform_headers
    if "provider_response" in run.hooked:

        async def on_response(response: ProviderResponse, model: Model) -> None:
            if options.on_response is not None:
                own = options.on_response(response, model)
                if inspect.isawaitable(own):
                    await own
            await hooks.provider_response(response.status, response.headers, model, ctx)

        changes["on_response"] = on_response
    return options.replace(**changes)


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
