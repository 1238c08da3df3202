"""The session of a coding agent: what every mode of ``pi`` runs, and what an application embeds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pi_core import (
    Agent,
    AgentBusyError,
    AssistantMessage,
    Build,
    ConfigError,
    CustomMessage,
    ImageContent,
    Model,
    PluginFailure,
    StreamOptions,
    TextContent,
    ThinkingLevel,
    Tool,
    UserMessage,
    user_message,
)

from ._choice import ModelChoice
from ._compactor import Compactor
from ._queues import WatchedQueue
from ._runs import Runs
from ._tree import TreeMoves
from .commands import SlashCommands
from .events import Listener, NoticeEvent, PluginErrorEvent, QueueEvent, SessionEvent, SessionNameEvent
from .inputs import Delivery, Disposition, Input, InputSource, RunStart
from .user_bash import UserBash

if TYPE_CHECKING:
    from pi_plugins.config import Settings
    from pi_plugins.models.runtime import ModelRuntime
    from pi_plugins.prompt import Resources
    from pi_plugins.sessions import Session, SessionStats


class AgentSession:
    """An agent with a session on disk, a system prompt made of resources, retries, compaction and commands.

    Made by :func:`~pi_plugins.coding_agent.create_session`. Only one run goes on at a time; what is submitted meanwhile
    waits in a queue.

    :param store: where the transcript is kept.
    :param folder: the folder of all sessions; ``None`` keeps new ones in memory.
    :param resources: context files, skills, templates and the texts for the system prompt.
    :param tools: the tools the model may call.
    :param scoped_models: the models that cycling goes through, with the level of each; all available ones when empty.
    :param source: the mode that runs it.
    :param trusted: whether the project's configuration is used.
    """

    def __init__(
        self,
        *,
        build: Build,
        store: Session,
        folder: Path | None = None,
        models: ModelRuntime,
        settings: Settings,
        resources: Resources,
        model: Model,
        thinking_level: ThinkingLevel = "off",
        tools: Sequence[Tool] = (),
        cwd: Path | None = None,
        system_prompt: str | None = None,
        append_system_prompt: Sequence[str] = (),
        scoped_models: Sequence[tuple[Model, ThinkingLevel | None]] = (),
        source: InputSource = "plugin",
        trusted: bool = False,
        options: StreamOptions | None = None,
        callables: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self.build = build
        self.store = store
        self.folder = folder
        self.models = models
        self.settings = settings
        self.resources = resources
        self.cwd = cwd or Path(store.cwd)
        self.source = source
        self.trusted = trusted
        self.system_prompt = system_prompt
        self.append_system_prompt = tuple(append_system_prompt)
        self._prompt_text = ""
        self.fixed_tokens = 0
        """Estimated tokens of system prompt and tools."""
        self._listeners: list[Listener] = []
        self._waiting: set[asyncio.Future[None]] = set()
        self._free = asyncio.Event()
        self._free.set()
        self._at_work: set[asyncio.Task[Any] | None] = set()
        self._aborts = 0
        self.steering = WatchedQueue(settings.steering_mode, self._queue_changed)
        self.follow_ups = WatchedQueue(settings.follow_up_mode, self._queue_changed)
        self.runs = Runs(self)
        self.compactor = Compactor(self)
        self.choice = ModelChoice(self, scoped_models)
        self.moves = TreeMoves(self)
        self.bash = UserBash(self)
        given: dict[str, Any] = dict(callables or {})
        self.agent = Agent(
            model=model,
            tools=tools,
            thinking_level=thinking_level,
            hooks=build.hooks,
            registry=build.registry,
            options=options,
            steering_queue=self.steering,
            follow_up_queue=self.follow_ups,
            messages=store.projection().messages,
            record_message=self._record_message,
            record_tool_result=self._record_tool_result,
            prepare_next_turn=self.runs.between_turns,
            on_agent_start=self.runs.begin,
            plugin_error=self._plugin_error,
            **given,
        )
        self.commands = SlashCommands(self)
        self._offered = {name for name, _, _ in self.agent.hooks.specifications()}
        self.agent.subscribe(self.runs.on_event)
        self.leaving = asyncio.Event()
        """Set by :meth:`shutdown`; the mode that runs waits for it."""
        self._closed = False

    # --- what it is at the moment ---

    @property
    def message_types(self) -> dict[str, type[CustomMessage]]:
        """The custom message types of the plugins, by role."""
        return dict(self.build.registry.message_types.items())

    @property
    def model(self) -> Model:
        """The model that is asked."""
        return self.agent.state.model

    @property
    def thinking_level(self) -> ThinkingLevel:
        """How much the model thinks."""
        return self.agent.state.thinking_level

    @property
    def is_idle(self) -> bool:
        """Whether nothing goes on: no run, no retry that waits, no compaction, no move to another place."""
        return not self.runs.active and not self.compactor.active and self._free.is_set()

    @property
    def last_answer(self) -> AssistantMessage | None:
        """The last response of the model in the transcript."""
        messages = self.agent.state.messages
        return next((found for found in reversed(messages) if isinstance(found, AssistantMessage)), None)

    def stats(self) -> SessionStats:
        """Return counts, tokens and cost of the whole session, every branch included."""
        return self.store.stats()

    async def find_model(self, provider: str, model_id: str) -> Model | None:
        """Return a model that can be used: of the catalog or ``models.json``, or known to a plugin."""
        from .factory import find_model

        return await find_model(self.build, self.models, provider, model_id)

    def context_usage(self) -> dict[str, Any] | None:
        """Return how full the model's context is: tokens, window and percent; ``None`` when the window is unknown."""
        window = self.model.context_window
        if window <= 0:
            return None
        tokens = self.compactor.tokens()
        return {"tokens": tokens, "contextWindow": window, "percent": 100 * tokens / window}

    # --- listeners ---

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` with every event of the session.

        :returns: a function that ends the subscription.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def emit(self, event: SessionEvent) -> Awaitable[None] | None:
        """Tell the listeners about an event; await what is returned where that is possible."""
        pending = [answer for listener in self._listeners if (answer := listener(event)) is not None]
        return None if not pending else _all(pending)

    async def say(self, event: SessionEvent) -> None:
        """Tell the listeners about an event, and wait for those that take time."""
        pending = self.emit(event)
        if pending is not None:
            await pending

    def emit_soon(self, event: SessionEvent) -> None:
        """Tell the listeners about an event from a place that cannot wait."""
        pending = self.emit(event)
        if pending is not None:
            future = asyncio.ensure_future(pending)
            self._waiting.add(future)
            future.add_done_callback(self._waiting.discard)

    async def call_hook(self, hook: str, default: Any = None, /, **arguments: Any) -> Any:
        """Call a hook that a plugin offers; ``default`` when the plugin is not loaded."""
        if hook not in self._offered:
            return default
        return await self.agent.hooks.call(hook, **arguments)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Do something beside which nothing else may go on; what is submitted meanwhile runs afterwards.

        :raises ConfigError: something goes on.
        """
        if not self.is_idle:
            raise ConfigError("The agent works: wait until it is done, or abort it first")
        self._free.clear()
        task = asyncio.current_task()
        if task is not None:
            self.must_not_wait(task)
        try:
            yield
        finally:
            self._free.set()
            self._at_work.discard(task)

    def must_not_wait(self, task: asyncio.Task[Any]) -> None:
        """Keep a task from waiting for itself in :meth:`wait_for_idle`, until it is done."""
        self._at_work.add(task)
        task.add_done_callback(self._at_work.discard)

    async def wait_until_free(self) -> None:
        """Wait until nothing is done :meth:`alone`."""
        while not self._free.is_set():
            await self._free.wait()

    # --- the life of the session ---

    async def start(self, reason: str = "startup") -> None:
        """Make the system prompt, note model and thinking level in a new session, and tell the plugins."""
        await self.make_ready()
        await self.announce(reason)

    async def make_ready(self) -> None:
        """Make the system prompt, and note model and thinking level in a session that does not say them."""
        await self.refresh_prompt()
        self.choice.note()

    async def announce(self, reason: str) -> None:
        """Tell the plugins that a session is ready."""
        await self.call_hook("session_start", session=self, reason=reason)

    async def refresh_prompt(self) -> None:
        """Make the system prompt again, after the tools or the resources have changed."""
        from pi_plugins.prompt import build_system_prompt
        from pi_plugins.sessions.compaction.estimate import text_tokens

        self._prompt_text = await build_system_prompt(
            self.resources,
            self.agent.state.tools,
            self.cwd,
            custom=self.system_prompt,
            append=self.append_system_prompt,
            hooks=self.agent.hooks,
        )
        self.agent.state.system_prompt = self._prompt_text
        described = [tool.description + json.dumps(tool.schema) for tool in self.agent.state.tools]
        self.fixed_tokens = text_tokens(len(self._prompt_text) + sum(map(len, described)))

    async def set_tools(self, names: Iterable[str]) -> None:
        """Let the model call other tools from its next request on; the prompt tells of them from the next run on.

        :raises ConfigError: there is no such tool.
        """
        self.agent.state.tools = self.build.tools(names)
        await self.refresh_prompt()

    async def change_tools(self, wanted: Sequence[str]) -> list[str]:
        """Let the model call other tools, as :meth:`set_tools` does, and return their names.

        :param wanted: names and ``*`` patterns, or changes (``+name``, ``-name``).
        :raises ConfigError: both kinds are mixed, or there is no such tool.
        """
        from ._tool_choice import apply_names

        before = [tool.name for tool in self.agent.state.tools]
        names = apply_names(wanted, before, self.build.registry.tools.names(), "tools")
        await self.set_tools(names)
        return names

    async def close(self, reason: str = "quit") -> None:
        """End what goes on, tell the plugins, and close the session file."""
        if self._closed:
            return
        self._closed = True
        try:
            self.runs.retrying = False
            self.abort()
            try:
                await self.wait_for_idle()
            finally:
                await self.bash.close()
                await self.call_hook("session_shutdown", session=self, reason=reason)
        finally:
            self.store.close()
        if self._waiting:
            await asyncio.wait(self._waiting)

    def shutdown(self) -> None:
        """Ask the mode that runs to end, as soon as nothing goes on any more."""
        self.leaving.set()

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closed

    # --- what the user says ---

    async def submit(
        self, text: str, images: Sequence[ImageContent] = (), *, delivery: Delivery | None = None
    ) -> Disposition:
        """Take what the user typed: a command, a message that starts a run, or one that waits in a queue.

        Returns as soon as it is clear what becomes of it; :meth:`wait_for_idle` waits for the end.

        :param delivery: how it reaches a run that goes on.
        :raises AgentBusyError: a run goes on and ``delivery`` does not say how to reach it.
        :raises HookError: a plugin failed on the input, which is not sent.
        :raises ConfigError: the session is closed.
        """
        if self._closed:
            raise ConfigError("The session is closed: nothing can be sent to it")
        aborts = self._aborts
        if await self.commands.run(text):
            return "handled"
        busy = self.runs.active
        given = Input(text, tuple(images), self.source, delivery if busy else None)
        given = await self.call_hook("input", given, given=given, session=self)
        if given.handled:
            return "handled"
        message = self.message(given.text, given.images)
        if self.runs.active:
            if delivery is None:
                raise AgentBusyError("The agent works: say whether the message steers it or follows up")
            (self.steering if delivery == "steer" else self.follow_ups).add(message)
            return "queued"
        self.runs.start([message], aborted=self._aborts != aborts)
        return "started"

    async def enqueue(self, text: str, images: Sequence[ImageContent], delivery: Delivery) -> Disposition:
        """Put a message into a queue, whether or not a run goes on; a run that starts later takes it.

        :raises ConfigError: the text is a command, which cannot wait.
        """
        if text.startswith("/") and self.commands.find(text[1:].partition(" ")[0]) is not None:
            raise ConfigError("A command cannot wait in a queue: submit it")
        given = Input(text, tuple(images), self.source, delivery)
        given = await self.call_hook("input", given, given=given, session=self)
        if given.handled:
            return "handled"
        (self.steering if delivery == "steer" else self.follow_ups).add(self.message(given.text, given.images))
        return "queued"

    async def prompt(self, text: str, images: Sequence[ImageContent] = ()) -> Disposition:
        """Take what the user typed as :meth:`submit` does, and wait until nothing goes on any more."""
        disposition = await self.submit(text, images)
        await self.wait_for_idle()
        return disposition

    def message(self, text: str, images: Sequence[ImageContent] = ()) -> UserMessage:
        """Return the message for a text, with skills and templates expanded."""
        from pi_plugins.prompt import expand

        return user_message(expand(text, self.resources), images)

    def clear_queue(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Empty both queues and return the texts that waited, steering messages first."""
        taken = self.steering.texts, self.follow_ups.texts
        self.steering.clear()
        self.follow_ups.clear()
        return taken

    def abort(self, reason: str = "") -> None:
        """Abort the run, the wait for a retry, and a compaction or a summary of a branch. Queued messages stay.

        A message whose run has not begun is kept, and the run ends before its first request.
        """
        self._aborts += 1
        self.runs.abort(reason)
        self.compactor.abort()
        self.moves.abort()

    async def wait_for_idle(self) -> None:
        """Wait until runs, retries, compaction and moves are over.

        :raises ConfigError: a hook of that work calls this, so that it would wait for itself.
        :raises Exception: what made a run fail outside of the agent, such as a hook or a full disk.
        """
        if asyncio.current_task() in self._at_work:
            raise ConfigError("A hook cannot wait for the work it is called in: submit, and return")
        await self.wait_until_free()
        await self.runs.wait()

    async def prepare_run(self, messages: Sequence[Any]) -> list[Any]:
        """Ask the plugins what a run starts with."""
        start = RunStart(tuple(messages), self._prompt_text)
        start = await self.call_hook("before_agent_start", start, start=start, session=self)
        self.agent.state.system_prompt = start.system_prompt
        return list(start.messages)

    def set_name(self, name: str | None) -> None:
        """Set or clear the display name of the session."""
        self.store.append_session_info(name or None)
        self.emit_soon(SessionNameEvent(name or None))
        self._later(self.call_hook("session_info_changed", session=self, name=name or None))

    def notify(self, text: str, level: str = "info") -> None:
        """Show the user a text."""
        self.emit_soon(NoticeEvent(text, level))

    def answer_text(self) -> str | None:
        """Return the text of the last response; ``None`` without one."""
        last = self.last_answer
        if last is None:
            return None
        return "\n".join(block.text for block in last.content if isinstance(block, TextContent))

    # --- what the agent tells ---

    def _record_message(self, message: Any) -> None:
        self.store.append_message(message)

    def _record_tool_result(self, call: Any, result: Any) -> None:
        self.store.record_tool_result(call, result)

    def _plugin_error(self, failure: PluginFailure) -> None:
        self.emit_soon(PluginErrorEvent(failure.plugin, failure.hook, str(failure.error)))

    def _queue_changed(self) -> None:
        self.emit_soon(QueueEvent(self.steering.texts, self.follow_ups.texts))

    def _later(self, awaitable: Awaitable[None]) -> None:
        future = asyncio.ensure_future(awaitable)
        self._waiting.add(future)
        future.add_done_callback(self._waiting.discard)


async def _all(pending: Sequence[Awaitable[None]]) -> None:
    for one in pending:
        await one


__all__ = ["AgentSession"]
