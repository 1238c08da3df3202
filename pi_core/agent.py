"""The agent: a transcript, two queues, subscribers, and one run at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ._agent_state import AgentState, MessageQueue, QueueMode
from .context import AbortSignal, RunActions, as_messages
from .errors import AgentBusyError, ConfigError, ContinueError
from .messages import AgentMessage, ImageContent, ThinkingLevel, user_message
from .providers import UNKNOWN_MODEL, Context, Model, StreamFunction, StreamOptions, get_default_stream

if TYPE_CHECKING:
    from ._agent_run import ActiveRun
    from ._registry import Registry
    from .events import AgentEvent
    from .hooks import Hooks
    from .tools import Tool

Subscriber: TypeAlias = "Callable[[AgentEvent, AbortSignal], Awaitable[None] | None]"
"""Called with every event and the signal of its run; what it returns is awaited."""


class Agent(RunActions):
    """Runs a model with tools, and keeps the transcript.

    :param model: whom to ask.
    :param stream: makes the requests, in place of a provider plugin or the process-wide default.
    :param plugins: plugin objects, the first called first.
    :param hooks: a facade to use instead, such as a build's.
    :param registry: what the plugins of ``hooks`` contribute; collected when it is not given.
    :param options: what every request is made with; the transport is ``auto`` unless they name one.
    :param tool_execution: ``sequential`` runs one tool call at a time.
    :param abort_grace_seconds: how long a tool may go on after an abort before it is given up.
    :param steering_queue: replaces the queue of steering messages, and with it ``steering_mode``.
    :param follow_up_queue: replaces the queue of follow-up messages, and with it ``follow_up_mode``.
    :param callables: implementations of hooks by name: ``before_tool_call=...``.
    :raises ConfigError: there is no stream function, no default one, and no provider for the model; or two tools have
        one name.
    :raises TypeError: a callable for a hook that does not exist, or a model, message, tool or text that is none.
    :raises ValueError: there is no such thinking level, queue mode or way to execute tools.
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
        tool_execution: Literal["parallel", "sequential"] = "parallel",
        abort_grace_seconds: float | None = 5.0,
        steering_mode: QueueMode = "one-at-a-time",
        follow_up_mode: QueueMode = "one-at-a-time",
        steering_queue: MessageQueue | None = None,
        follow_up_queue: MessageQueue | None = None,
        **callables: Callable[..., Any],
    ) -> None:
        if hooks is not None and plugins:
            raise TypeError("Agent: pass plugins or hooks, not both")
        if tool_execution not in ("parallel", "sequential"):
            raise ValueError(f"Agent: tool_execution is parallel or sequential, got {tool_execution!r}")
        # Naming an agent is cheap; making one prepares what its runs need, so that the first is not slower.
        from . import _agent_run
        from ._registry import Registry, collect_contributions
        from .hooks import Hooks

        _agent_run.prepare()

        base = hooks if hooks is not None else Hooks.over(*plugins)
        self.hooks = base.extended(callables) if callables else base
        self.hooks.implemented()
        if registry is None:
            registry = collect_contributions(self.hooks) if plugins or hooks is not None else Registry()
        self.registry = registry
        if tools is None:
            tools = [tool for _, tool in registry.tools.items()]
        self.state = AgentState(system_prompt, model, thinking_level, tools, messages)
        self.stream_function = stream
        given = options or StreamOptions()
        self.options = given if given.transport is not None else given.replace(transport="auto")
        self.tool_execution: Literal["parallel", "sequential"] = tool_execution
        self.abort_grace_seconds = abort_grace_seconds
        self.steering_queue = MessageQueue(steering_mode) if steering_queue is None else steering_queue
        self.follow_up_queue = MessageQueue(follow_up_mode) if follow_up_queue is None else follow_up_queue
        self.subscribers: list[Subscriber] = []
        self._run: ActiveRun | None = None
        if stream is None and get_default_stream() is None and registry.providers.get(model.api) is None:
            apis = ", ".join(registry.providers.names()) or "none"
            raise ConfigError(
                f"No stream function: pass stream=..., install one with set_default_stream(), or add the plugin of a "
                f"provider that speaks '{model.api}' (providers here: {apis})"
            )

    # --- queues ---

    def steer(self, *messages: AgentMessage) -> None:
        """Queue messages for the next turn; a running batch of tool calls finishes first.

        :raises TypeError: one is no message.
        """
        self.steering_queue.add(*as_messages(messages))

    def follow_up(self, *messages: AgentMessage) -> None:
        """Queue messages for when the run would stop.

        :raises TypeError: one is no message.
        """
        self.follow_up_queue.add(*as_messages(messages))

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

        Failures of the model, a tool or a hook are messages, not exceptions. Cancelling the task that awaits this
        aborts the run, waits for its closing events and raises ``CancelledError``; cancelling it again also cancels
        what the run is waiting for.

        :param prompt: a text, a message, or several; an empty list makes a request on the messages that are there.
        :param images: follow the text; ignored when ``prompt`` is not one.
        :raises AgentBusyError: another run is going on.
        :raises Exception: what a subscriber raised while the run was closing.
        """
        if self._run is not None:
            raise AgentBusyError(
                "Agent is already processing a prompt. Use steer() or follow_up() to queue messages, or wait for it."
            )
        return await self._start([user_message(prompt, images)] if isinstance(prompt, str) else as_messages(prompt))

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
        return await self._start(None)

    def run_sync(self, prompt: str | AgentMessage | Sequence[AgentMessage]) -> list[AgentMessage]:
        """Run :meth:`prompt` in an event loop of its own, for scripts."""
        import asyncio

        return asyncio.run(self.prompt(prompt))

    def abort(self, reason: str = "") -> None:
        """Abort the current run; nothing when idle.

        :param reason: a sentence that becomes the error message of the response that ends the run.
        """
        if self._run is not None:
            self._run.controller.abort(reason)

    async def wait_for_idle(self) -> None:
        """Wait until the current run is over and its subscribers have seen the end."""
        if self._run is not None:
            await self._run.over()

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

        Subscribers are the application's own code: one that raises fails the run. One that is added during an event
        gets it too, unless only the last of the others is still at work on it.

        :returns: a function that ends the subscription.
        """
        if subscriber not in self.subscribers:
            self.subscribers.append(subscriber)

        def unsubscribe() -> None:
            if subscriber in self.subscribers:
                self.subscribers[self.subscribers.index(subscriber)] = _unsubscribed

        return unsubscribe

    # --- inside a run ---

    async def _start(self, prompts: list[AgentMessage] | None) -> list[AgentMessage]:
        from ._agent_run import ActiveRun

        run = self._run = ActiveRun(self)
        self.subscribers = [subscriber for subscriber in self.subscribers if subscriber is not _unsubscribed]
        run.start(prompts, self._settle)
        return await run.wait(None if self.abort_grace_seconds is None else self.abort_grace_seconds + 1)

    def _settle(self) -> None:
        self.state.settle()
        self._run = None

    def provider_stream(self, model: Model, context: Context, options: StreamOptions) -> Any:
        """Make a request with the provider that serves the model's api, else with the process-wide default.

        :raises ConfigError: there is neither.
        """
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


def _unsubscribed(event: AgentEvent, signal: AbortSignal) -> None:
    """Stands where a subscriber was, so that the places of the others stay what they are."""


__all__ = ["Agent", "AgentState", "MessageQueue", "QueueMode", "Subscriber"]
