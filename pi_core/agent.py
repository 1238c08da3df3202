"""The agent: a transcript, two queues, subscribers, and one run at a time."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias, cast

from ._registry import Registry, collect_contributions
from .batch import ToolExecution
from .context import AbortController, AbortSignal, AgentContext, RunActions, RunContext
from .errors import AgentBusyError, ConfigError, ContinueError, HookError, error_text
from .events import (
    AgentEndEvent,
    AgentEvent,
    MessageEndEvent,
    MessageStartEvent,
    MessageUpdateEvent,
    ToolExecutionEndEvent,
    ToolExecutionStartEvent,
    TurnEndEvent,
)
from .hooks import Hooks
from .loop import AgentLoopConfig, observed, run_agent_loop, run_agent_loop_continue
from .messages import AgentMessage, AssistantMessage, ImageContent, TextContent, ThinkingLevel, user_message
from .providers import UNKNOWN_MODEL, Model, StreamFunction, StreamOptions, get_default_stream
from .tools import Tool

QueueMode: TypeAlias = Literal["all", "one-at-a-time"]
Subscriber: TypeAlias = Callable[[AgentEvent, AbortSignal], Awaitable[None] | None]


class MessageQueue:
    """Messages waiting for a run. Replace it by a subclass to store or watch them.

    :param mode: whether a drain takes all messages or the oldest one.
    """

    def __init__(self, mode: QueueMode = "one-at-a-time") -> None:
        self.mode = mode
        self._messages: list[AgentMessage] = []

    def __len__(self) -> int:
        return len(self._messages)

    def add(self, *messages: AgentMessage) -> None:
        """Append messages."""
        self._messages.extend(messages)

    def peek(self) -> list[AgentMessage]:
        """Return what the next drain would take."""
        return self._messages[: None if self.mode == "all" else 1]

    def drain(self) -> list[AgentMessage]:
        """Take what is due."""
        taken = self.peek()
        del self._messages[: len(taken)]
        return taken

    def clear(self) -> None:
        """Drop everything."""
        self._messages.clear()


class AgentState:
    """What an agent is at the moment. Assigning ``messages`` or ``tools`` stores a copy of the list."""

    __slots__ = (
        "_messages",
        "_open",
        "_tools",
        "error_message",
        "is_streaming",
        "model",
        "pending_tool_calls",
        "system_prompt",
        "thinking_level",
    )

    def __init__(
        self,
        system_prompt: str,
        model: Model,
        thinking_level: ThinkingLevel,
        tools: Iterable[Tool],
        messages: Iterable[AgentMessage],
    ) -> None:
        self.system_prompt = system_prompt
        self.model = model
        self.thinking_level = thinking_level
        self._tools = list(tools)
        self._messages = list(messages)
        self.is_streaming = False
        self.pending_tool_calls: frozenset[str] = frozenset()
        self.error_message: str | None = None
        self._open: MessageStartEvent | MessageUpdateEvent | None = None

    @property
    def messages(self) -> list[AgentMessage]:
        """The transcript."""
        return self._messages

    @messages.setter
    def messages(self, messages: Iterable[AgentMessage]) -> None:
        self._messages = list(messages)

    @property
    def tools(self) -> list[Tool]:
        """The tools the model may call."""
        return self._tools

    @tools.setter
    def tools(self, tools: Iterable[Tool]) -> None:
        self._tools = list(tools)

    @property
    def streaming_message(self) -> AgentMessage | None:
        """The message between its start and its end, of whatever role."""
        return None if self._open is None else self._open.message

    def reduce(self, event: AgentEvent) -> None:
        """Take an event in, before subscribers see it."""
        match event:
            case MessageUpdateEvent() | MessageStartEvent():
                self._open = event
            case MessageEndEvent(message=message):
                self._open = None
                self._messages.append(message)
            case ToolExecutionStartEvent(tool_call_id=call):
                self.pending_tool_calls |= {call}
            case ToolExecutionEndEvent(tool_call_id=call):
                self.pending_tool_calls -= {call}
            case TurnEndEvent(message=message):
                self.error_message = message.error_message or self.error_message
            case AgentEndEvent():
                self._open = None

    def begin(self) -> None:
        """Mark a run as started."""
        self.is_streaming, self.error_message, self._open = True, None, None

    def settle(self) -> None:
        """Mark the agent as idle."""
        self.is_streaming, self.pending_tool_calls, self._open = False, frozenset(), None


class Agent(RunActions):
    """Runs a model with tools, and keeps the transcript.

    :param model: whom to ask.
    :param stream: makes the requests, in place of a provider plugin or the process-wide default.
    :param plugins: plugin objects, the first called first.
    :param hooks: a facade to use instead, such as a build's.
    :param registry: what the plugins of ``hooks`` contribute; collected when it is not given.
    :param options: what every request is made with.
    :param tool_execution: ``sequential`` runs one tool call at a time.
    :param abort_grace_seconds: how long a tool may go on after an abort before it is given up.
    :param steering_queue: replaces the queue of steering messages, and with it ``steering_mode``.
    :param follow_up_queue: replaces the queue of follow-up messages, and with it ``follow_up_mode``.
    :param callables: implementations of hooks by name: ``before_tool_call=...``.
    :raises ConfigError: there is no stream function, no default one, and no provider for the model.
    :raises TypeError: a callable for a hook that does not exist.
    """

    def __init__(
        self,
        *,
        model: Model = UNKNOWN_MODEL,
        system_prompt: str = "",
        thinking_level: ThinkingLevel = "off",
        tools: Iterable[Tool] | None = None,
        messages: Iterable[AgentMessage] = (),
        stream: StreamFunction | None = None,
        plugins: Sequence[object] = (),
        hooks: Hooks | None = None,
        registry: Registry | None = None,
        options: StreamOptions | None = None,
        tool_execution: ToolExecution = "parallel",
        abort_grace_seconds: float | None = 5.0,
        steering_mode: QueueMode = "one-at-a-time",
        follow_up_mode: QueueMode = "one-at-a-time",
        steering_queue: MessageQueue | None = None,
        follow_up_queue: MessageQueue | None = None,
        **callables: Callable[..., Any],
    ) -> None:
        if hooks is not None and plugins:
            raise TypeError("Agent: pass plugins or hooks, not both")
        base = hooks if hooks is not None else Hooks.over(*plugins)
        self.hooks = base.extended(callables) if callables else base
        if registry is None:
            registry = collect_contributions(self.hooks) if plugins or hooks is not None else Registry()
        self.registry = registry
        if tools is None:
            tools = [tool for _, tool in registry.tools.items()]
        self.state = AgentState(system_prompt, model, thinking_level, tools, messages)
        self.stream_function = stream
        self.options = options or StreamOptions(transport="auto")
        self.tool_execution: ToolExecution = tool_execution
        self.abort_grace_seconds = abort_grace_seconds
        self.steering_queue = steering_queue or MessageQueue(steering_mode)
        self.follow_up_queue = follow_up_queue or MessageQueue(follow_up_mode)
        self._subscribers: list[Subscriber] = []
        self._run: _ActiveRun | None = None
        if stream is None and get_default_stream() is None and registry.providers.get(model.api) is None:
            apis = ", ".join(registry.providers.names()) or "none"
            raise ConfigError(
                f"No stream function: pass stream=..., install one with set_default_stream(), or add the plugin of a "
                f"provider that speaks '{model.api}' (providers here: {apis})"
            )

    # --- queues ---

    def steer(self, *messages: AgentMessage) -> None:
        """Queue messages for the next turn; a running batch of tool calls finishes first."""
        self.steering_queue.add(*messages)

    def follow_up(self, *messages: AgentMessage) -> None:
        """Queue messages for when the run would stop."""
        self.follow_up_queue.add(*messages)

    @property
    def has_queued_messages(self) -> bool:
        """Whether either queue holds a message."""
        return bool(len(self.steering_queue) or len(self.follow_up_queue))

    def peek_queued_messages(self) -> list[AgentMessage]:
        """Return what the next poll would take: steering messages, else follow-ups."""
        return self.steering_queue.peek() or self.follow_up_queue.peek()

    def clear_queues(self) -> None:
        """Drop all queued messages."""
        self.steering_queue.clear()
        self.follow_up_queue.clear()

    # --- running ---

    @property
    def signal(self) -> AbortSignal | None:
        """The abort signal of the current run, ``None`` when idle."""
        return self._run.controller.signal if self._run is not None else None

    async def prompt(
        self, prompt: str | AgentMessage | Sequence[AgentMessage], images: Iterable[ImageContent] = ()
    ) -> list[AgentMessage]:
        """Run with a new message and return the messages of the run.

        Failures of the model, a tool or a hook are messages, not exceptions. Cancelling the task that awaits this aborts
        the run, waits for its closing events and raises ``CancelledError``.

        :param prompt: a text, a message, or several; an empty list makes a request on the messages that are there.
        :param images: follow the text; ignored when ``prompt`` is not one.
        :raises AgentBusyError: another run is going on.
        :raises Exception: what a subscriber raised while the run was closing.
        """
        if self._run is not None:
            raise AgentBusyError(
                "Agent is already processing a prompt. Use steer() or follow_up() to queue messages, or wait for it."
            )
        if isinstance(prompt, str):
            prompts: list[AgentMessage] = [user_message(prompt, images)]
        else:
            prompts = list(prompt) if isinstance(prompt, list | tuple) else [cast("AgentMessage", prompt)]
        return await self._start(prompts)

    async def continue_(self) -> list[AgentMessage]:
        """Run on from the transcript; after an assistant message, with queued messages.

        :raises AgentBusyError: another run is going on.
        :raises ContinueError: there is nothing to go on from.
        """
        if self._run is not None:
            raise AgentBusyError("Agent is already processing. Wait for completion before continuing.")
        messages = self.state.messages
        if not messages:
            raise ContinueError("No messages to continue from")
        if not isinstance(messages[-1], AssistantMessage):
            return await self._start(None)
        run = _ActiveRun(self)
        self._run = run
        try:
            prompts = self.steering_queue.drain() + await self.hooks.steering_messages(run.ctx)
            skip = bool(prompts)
            prompts = prompts or self.follow_up_queue.drain() + await self.hooks.follow_up_messages(run.ctx)
        finally:
            self._run = None
        if not prompts:
            raise ContinueError("Cannot continue from message role: assistant")
        return await self._start(prompts, skip_first_poll=skip)

    def run_sync(self, prompt: str | AgentMessage | Sequence[AgentMessage]) -> list[AgentMessage]:
        """Run :meth:`prompt` in an event loop of its own, for scripts."""
        return asyncio.run(self.prompt(prompt))

    def abort(self) -> None:
        """Abort the current run; nothing when idle."""
        if self._run is not None:
            self._run.controller.abort()

    async def wait_for_idle(self) -> None:
        """Wait until the current run is over and its subscribers have seen the end."""
        if self._run is not None:
            await asyncio.shield(self._run.settled())

    def reset(self) -> None:
        """Forget messages, queues and errors; model, system prompt and tools stay.

        :raises AgentBusyError: a run is going on.
        """
        if self._run is not None:
            raise AgentBusyError("Agent is already processing. Wait for completion before resetting.")
        self.state.messages = []
        self.clear_queues()
        self.state.error_message = None
        self.state.settle()

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call ``subscriber`` with every event and the run's signal, and wait for what it returns.

        Subscribers are the application's own code: one that raises fails the run.

        :returns: a function that ends the subscription.
        """
        if subscriber not in self._subscribers:
            self._subscribers.append(subscriber)

        def unsubscribe() -> None:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)

        return unsubscribe

    # --- inside a run ---

    def _announce(self, event: AgentEvent) -> Awaitable[None] | None:
        run = self._run
        if run is None:
            raise RuntimeError("an event outside a run")
        self.state.reduce(event)
        run.reduce(event)
        subscribers = self._subscribers
        position = 0
        while position < len(subscribers):
            subscriber = subscribers[position]
            answer = subscriber(event, run.controller.signal)
            if answer is not None and inspect.isawaitable(answer):
                return self._announce_rest(event, run.controller.signal, subscriber, answer)
            position = _after(subscribers, subscriber, position)
        return None

    async def _announce_rest(
        self, event: AgentEvent, signal: AbortSignal, subscriber: Subscriber, answer: Awaitable[None]
    ) -> None:
        subscribers = self._subscribers
        position = subscribers.index(subscriber) if subscriber in subscribers else 0
        await answer
        position = _after(subscribers, subscriber, position)
        while position < len(subscribers):
            subscriber = subscribers[position]
            following = subscriber(event, signal)
            if following is not None and inspect.isawaitable(following):
                await following
            position = _after(subscribers, subscriber, position)

    async def _start(self, prompts: list[AgentMessage] | None, *, skip_first_poll: bool = False) -> list[AgentMessage]:
        run = self._run = _ActiveRun(self)
        self.state.begin()
        task = asyncio.ensure_future(self._drive(run, prompts, skip_first_poll))
        run.task = task
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.done():
                raise
            await _end_cancelled(run, task, self.abort_grace_seconds)
            raise

    async def _drive(
        self, run: _ActiveRun, prompts: list[AgentMessage] | None, skip_first_poll: bool
    ) -> list[AgentMessage]:
        state = self.state
        context = AgentContext(state.system_prompt, state.messages, state.tools)
        config = AgentLoopConfig(
            model=state.model,
            thinking_level=state.thinking_level,
            options=self.options,
            hooks=self.hooks,
            stream=self.stream_function or self._provider_stream,
            steering=self.steering_queue.drain,
            follow_up=self.follow_up_queue.drain,
            skip_first_poll=skip_first_poll,
            tool_execution=self.tool_execution,
            abort_grace_seconds=self.abort_grace_seconds,
            ctx=run.ctx,
            cancel=run.fail,
        )
        signal = run.controller.signal
        try:
            if prompts is None:
                await run_agent_loop_continue(context, config, self._announce, signal)
            else:
                await run_agent_loop(prompts, context, config, self._announce, signal)
        except asyncio.CancelledError:
            run.controller.abort()
            await self._close_failed(run, "Run was cancelled")
            raise
        except Exception as error:
            if run.ended:
                raise
            run.fail()
            await self._close_failed(run, error_text(error))
        finally:
            state.settle()
            self._run = None
        return run.produced

    async def _close_failed(self, run: _ActiveRun, text: str) -> None:
        """Emit the closing sequence of a run that failed: its failure as a message, turn_end, agent_end."""
        model = self.state.model
        message = AssistantMessage(
            content=[TextContent(text="")],
            api=model.api,
            provider=model.provider,
            model=model.id,
            stop_reason="aborted" if run.was_aborted else "error",
            error_message=text,
        )
        emit = observed(self.hooks, run.ctx, self._announce)
        for event in (MessageStartEvent(message), MessageEndEvent(message), TurnEndEvent(message, [])):
            if event.type == "message_end" and self.hooks.has("record_message"):
                try:
                    await self.hooks.record_message(message, run.ctx)
                except HookError as error:
                    message_text = f"{text}; {error}" if str(error) not in text else text
                    self.state.error_message = message_text
            pending = emit(event)
            if pending is not None:
                await pending
        pending = emit(AgentEndEvent(run.produced))
        if pending is not None:
            await pending

    def _provider_stream(self, model: Model, context: Any, options: StreamOptions) -> Any:
        provider = self.registry.providers.get(model.api)
        if provider is not None:
            return provider.stream(model, context, options)
        default = get_default_stream()
        if default is None:
            apis = ", ".join(self.registry.providers.names()) or "none"
            raise ConfigError(
                f"No provider speaks '{model.api}', which model {model.id} needs (providers here: {apis})"
            )
        return default(model, context, options)


class _ActiveRun:
    """The run an agent is in: its signal, its context for the hooks, and what it has produced."""

    def __init__(self, agent: Agent) -> None:
        self.controller = AbortController()
        state = agent.state
        self.ctx = RunContext(
            signal=self.controller.signal,
            model=state.model,
            thinking_level=state.thinking_level,
            context=AgentContext(state.system_prompt, state.messages, state.tools),
            actions=agent,
        )
        self.produced: list[AgentMessage] = []
        self.ended = False
        self.task: asyncio.Future[list[AgentMessage]] | None = None
        self._aborted_before_failure: bool | None = None

    @property
    def was_aborted(self) -> bool:
        """Whether the run was aborted, and not only cancelled because it failed."""
        before = self._aborted_before_failure
        return self.controller.signal.aborted if before is None else before

    def fail(self) -> None:
        """Note that the run has failed and end what still runs."""
        if self._aborted_before_failure is None:
            self._aborted_before_failure = self.controller.signal.aborted
        self.controller.abort()

    def reduce(self, event: AgentEvent) -> None:
        """Keep what the run produces."""
        if isinstance(event, MessageEndEvent):
            self.produced.append(event.message)
        elif isinstance(event, AgentEndEvent):
            self.ended = True

    async def settled(self) -> None:
        """Wait until the run is over, however it ends."""
        if self.task is not None:
            await asyncio.wait([self.task])


async def _end_cancelled(run: _ActiveRun, task: asyncio.Future[list[AgentMessage]], grace: float | None) -> None:
    """Abort a run whose caller was cancelled and wait until it has closed; one that does not listen is cancelled."""
    run.controller.abort()
    patience = None if grace is None else grace + 1
    while not task.done():
        try:
            done, _ = await asyncio.wait([task], timeout=patience)
        except asyncio.CancelledError:
            patience = 0
            continue
        if not done:
            task.cancel()
    if not task.cancelled():
        task.exception()


def _after(subscribers: list[Subscriber], subscriber: Subscriber, position: int) -> int:
    """Where the subscriber after this one is, even when this one has unsubscribed itself."""
    here = position < len(subscribers) and subscribers[position] is subscriber
    return position + 1 if here else position


__all__ = ["Agent", "AgentState", "MessageQueue", "QueueMode", "Subscriber"]
