"""What surrounds a run: the abort signal, the context of a request, and what hooks are given about the run."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast, overload

from ._log import log
from .messages import (
    AgentMessage,
    AssistantMessage,
    CustomMessage,
    ThinkingLevel,
    ToolResultMessage,
    UserMessage,
    WireModel,
)
from .providers import UNKNOWN_MODEL, Model

if TYPE_CHECKING:
    from .hooks import Hooks
    from .tools import Tool


T = TypeVar("T")
_MESSAGES: Final = (UserMessage, AssistantMessage, ToolResultMessage, CustomMessage)


class AbortSignal:
    """Says whether a run was aborted; handed to providers, tools and hooks. Made by :class:`AbortController`."""

    __slots__ = ("_aborted", "_callbacks", "_reason")

    def __init__(self) -> None:
        self._aborted = False
        self._reason = ""
        self._callbacks: dict[int, Callable[[], None]] = {}

    @property
    def aborted(self) -> bool:
        """Whether :meth:`AbortController.abort` was called."""
        return self._aborted

    @property
    def reason(self) -> str:
        """Why, for the transcript; empty when nobody said."""
        return self._reason

    def on_abort(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` when the signal is aborted, at once if it already is.

        :returns: a function that takes the callback back.
        """
        if self._aborted:
            callback()
            return lambda: None
        key = next(_callback_keys)
        self._callbacks[key] = callback
        return lambda: cast("None", self._callbacks.pop(key, None))

    async def wait(self) -> None:
        """Wait until the signal is aborted."""
        if self._aborted:
            return
        import asyncio

        future = asyncio.get_running_loop().create_future()
        remove = self.on_abort(lambda: None if future.done() else future.set_result(None))
        try:
            await future
        finally:
            remove()


_callback_keys = itertools.count()


class AbortController:
    """Owns an :class:`AbortSignal` and can abort it, once and for all."""

    __slots__ = ("signal",)

    def __init__(self) -> None:
        self.signal = AbortSignal()

    def abort(self, reason: str = "") -> None:
        """Abort the signal; its callbacks run now, and what one raises is logged. A second call does nothing.

        :param reason: a sentence for the transcript.
        """
        signal = self.signal
        if signal._aborted:
            return
        signal._aborted = True
        signal._reason = reason
        callbacks, signal._callbacks = list(signal._callbacks.values()), {}
        for callback in callbacks:
            try:
                callback()
            except Exception:
                log().exception("a callback of an abort signal failed")


class ListView(Sequence[T]):
    """The first ``length`` items of a list that only grows: a snapshot that costs nothing."""

    __slots__ = ("_items", "_length")

    def __init__(self, items: list[T], length: int | None = None) -> None:
        self._items = items
        self._length = len(items) if length is None else length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._length)
            return [self._items[position] for position in range(start, stop, step)]
        position = index + self._length if index < 0 else index
        if not 0 <= position < self._length:
            raise IndexError(index)
        return self._items[position]

    def __iter__(self) -> Iterator[T]:
        return itertools.islice(self._items, self._length)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ListView | list | tuple):
            return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


@dataclass(slots=True)
class AgentContext:
    """What the next request is made from: system prompt, the agent's messages, and its tools."""

    system_prompt: str = ""
    messages: list[AgentMessage] = field(default_factory=list)
    tools: list[Tool] = field(default_factory=list)

    def copy(self, **changes: Any) -> AgentContext:
        """Return a context with lists of its own, and some fields changed."""
        changed = replace(self, **changes)
        changed.messages = list(changed.messages)
        changed.tools = list(changed.tools)
        return changed


@dataclass(slots=True)
class Turn:
    """A completed turn, as ``prepare_next_turn`` and ``should_stop_after_turn`` see it.

    ``context`` already holds the turn's messages; ``new_messages`` is what the run would return if it stopped now.
    """

    message: AssistantMessage
    tool_results: list[ToolResultMessage]
    context: AgentContext
    new_messages: list[AgentMessage]

    def copy(self, **changes: Any) -> Turn:
        """Return a turn with lists of its own, and some fields changed."""
        changed = replace(self, **changes)
        changed.tool_results = list(changed.tool_results)
        changed.new_messages = list(changed.new_messages)
        changed.context = changed.context.copy()
        return changed


@dataclass(slots=True, kw_only=True)
class TurnUpdate:
    """What ``prepare_next_turn`` changes for the rest of the run; ``None`` keeps what is there.

    :param messages: appended at the start of the next turn, before steering and follow-up messages.
    :param thinking_level: ``off`` clears it.
    """

    context: AgentContext | None = None
    model: Model | None = None
    thinking_level: ThinkingLevel | None = None
    messages: Sequence[AgentMessage] | None = None


class StashKey(Generic[T]):
    """The typed key of a value that a plugin keeps for one run. Make one per plugin at module level."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"StashKey({self.name!r})"


class Stash:
    """What plugins keep for the length of a run, under keys only they have."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[StashKey[Any], Any] = {}

    def __setitem__(self, key: StashKey[T], value: T) -> None:
        self._values[key] = value

    def __getitem__(self, key: StashKey[T]) -> T:
        return cast("T", self._values[key])

    def __contains__(self, key: StashKey[Any]) -> bool:
        return key in self._values

    def get(self, key: StashKey[T], default: T) -> T:
        """Return the value, or ``default`` when there is none."""
        return cast("T", self._values.get(key, default))

    def setdefault(self, key: StashKey[T], make: Callable[[], T]) -> T:
        """Return the value, made by ``make`` at the first call."""
        if key not in self._values:
            self._values[key] = make()
        return cast("T", self._values[key])


class RunActions:
    """What a hook may ask of the agent that runs it. The base does it for a bare loop: nothing can be queued."""

    def steer(self, *messages: AgentMessage) -> None:
        """Queue messages for the next turn of this run.

        :raises RuntimeError: the loop runs without an agent, so there is no queue.
        """
        raise RuntimeError("steer: this run has no agent; return the messages from the steering_messages hook instead")

    def follow_up(self, *messages: AgentMessage) -> None:
        """Queue messages for when the run would stop.

        :raises RuntimeError: the loop runs without an agent, so there is no queue.
        """
        raise RuntimeError("follow_up: this run has no agent; use the follow_up_messages hook instead")

    def abort(self, reason: str = "") -> None:
        """Abort the run.

        :param reason: a sentence for the message that ends the transcript of the run.
        :raises RuntimeError: the loop runs without an agent; abort its signal instead.
        """
        raise RuntimeError("abort: this run has no agent; abort the signal that was passed to the loop instead")


class RunContext:
    """The current run, as every hook of the run gets it.

    ``signal``, ``model``, ``thinking_level``, ``system_prompt`` are those of the moment; ``turn_index`` counts from 0;
    ``stash`` belongs to the run, and so do ``failures``, the driver's count of what observers raised.
    """

    __slots__ = (
        "_actions",
        "_context",
        "_hooks",
        "failures",
        "model",
        "signal",
        "stash",
        "thinking_level",
        "turn_index",
    )

    def __init__(
        self,
        *,
        signal: AbortSignal | None = None,
        model: Model = UNKNOWN_MODEL,
        thinking_level: ThinkingLevel = "off",
        context: AgentContext | None = None,
        actions: RunActions | None = None,
    ) -> None:
        self.signal = signal
        self.model = model
        self.thinking_level = thinking_level
        self.turn_index = 0
        self.stash = Stash()
        self.failures: dict[Any, int] = {}
        self._hooks: Hooks | None = None
        self._context = context or AgentContext()
        self._actions = actions or RunActions()

    @property
    def system_prompt(self) -> str:
        """The system prompt of the next request."""
        return self._context.system_prompt

    @property
    def messages(self) -> Sequence[AgentMessage]:
        """The messages so far, oldest first; read only."""
        return ListView(self._context.messages)

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools the model may call; read only."""
        return tuple(self._context.tools)

    @property
    def context(self) -> AgentContext:
        """A copy of what the next request is made from."""
        return self._context.copy()

    @property
    def hooks(self) -> Hooks:
        """The hooks of the run, to call those that a plugin offers: ``await ctx.hooks.call("name", ...)``.

        :raises RuntimeError: the context was made by hand and belongs to no run.
        """
        if self._hooks is None:
            raise RuntimeError("this context belongs to no run, so there are no hooks to call")
        return self._hooks

    def begin(self, hooks: Hooks) -> None:
        """Belong to a run; called by the loop."""
        self._hooks = hooks

    def enter(self, context: AgentContext) -> None:
        """Show another context; called by the loop when a turn replaced it."""
        self._context = context

    def steer(self, *messages: AgentMessage) -> None:
        """Queue messages for the next turn of this run."""
        self._actions.steer(*messages)

    def follow_up(self, *messages: AgentMessage) -> None:
        """Queue messages for when the run would stop."""
        self._actions.follow_up(*messages)

    def abort(self, reason: str = "") -> None:
        """Abort the run; the reason, a sentence, is the error message of the response that ends it."""
        self._actions.abort(reason)


@dataclass(slots=True)
class SelectionContext:
    """What a model is chosen with, before there is a run.

    :param environ: environment variables, the process's own by default.
    :param base_url: a server address given on the command line or in the build.
    :param api: the wire protocol given with it.
    :param provider: the provider whose models are looked at; ``None`` for all.
    :param api_key: a key given for this run, which makes its provider usable.
    :param thinking_level: the level that is asked for; the plugin that resolves a name sets the one that it carries
        (``sonnet:high``).
    :param notices: one sentence for each thing that was chosen without being named.
    """

    environ: Mapping[str, str] = field(default_factory=dict)
    base_url: str | None = None
    api: str | None = None
    provider: str | None = None
    api_key: str | None = field(default=None, repr=False)
    thinking_level: ThinkingLevel | None = None
    notices: list[str] = field(default_factory=list)

    def notice(self, text: str) -> None:
        """Tell the user about a choice that was made for them."""
        self.notices.append(text)


def as_messages(value: AgentMessage | Iterable[AgentMessage] | None) -> list[AgentMessage]:
    """Return a list of messages from what a hook may answer: one, several, or nothing.

    :raises TypeError: there is something else among them.
    """
    if value is None:
        return []
    found = list(value) if isinstance(value, Iterable) and not isinstance(value, WireModel) else [value]
    for message in found:
        if not isinstance(message, _MESSAGES):
            raise TypeError(f"expected a message, got {type(message).__name__}; user_message(text) makes one of a text")
    return found
