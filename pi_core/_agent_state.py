"""What an agent consists of: its queues, and its state as observers read it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from .context import as_messages
from .errors import ConfigError
from .messages import ThinkingLevel
from .providers import Model

if TYPE_CHECKING:
    from .events import MessageStartEvent, MessageUpdateEvent
    from .messages import AgentMessage
    from .tools import Tool

QueueMode: TypeAlias = Literal["all", "one-at-a-time"]


class MessageQueue:
    """Messages waiting for a run. Replace it by a subclass to store or watch them.

    :param mode: whether a drain takes all messages or the oldest one.
    :raises ValueError: another mode.
    """

    def __init__(self, mode: QueueMode = "one-at-a-time") -> None:
        if mode not in get_args(QueueMode):
            raise ValueError(f"a queue takes {' or '.join(get_args(QueueMode))} at a drain, got {mode!r}")
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
    """What an agent is at the moment. What is assigned is checked; of ``messages`` and ``tools`` the list is copied.

    :raises TypeError: it is something else, or there is something else among them.
    :raises ValueError: there is no such thinking level.
    :raises ConfigError: two tools have one name.
    """

    __slots__ = (
        "_messages",
        "_model",
        "_system_prompt",
        "_thinking_level",
        "_tools",
        "error_message",
        "is_streaming",
        "open",
        "running",
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
        self.tools = tools
        self.messages = messages
        self.is_streaming = False
        self.running: set[str] = set()
        self.error_message: str | None = None
        self.open: MessageStartEvent | MessageUpdateEvent | None = None

    @property
    def system_prompt(self) -> str:
        """The system prompt of the next run."""
        return self._system_prompt

    @system_prompt.setter
    def system_prompt(self, system_prompt: str) -> None:
        if not isinstance(system_prompt, str):
            raise TypeError(f"system_prompt is a text, perhaps empty, got {type(system_prompt).__name__}")
        self._system_prompt = system_prompt

    @property
    def model(self) -> Model:
        """Whom the next run asks."""
        return self._model

    @model.setter
    def model(self, model: Model) -> None:
        if not isinstance(model, Model):
            raise TypeError(f"model is a Model, got {type(model).__name__}; Build.resolve_model() finds one by name")
        self._model = model

    @property
    def thinking_level(self) -> ThinkingLevel:
        """How much the model of the next run is asked to think."""
        return self._thinking_level

    @thinking_level.setter
    def thinking_level(self, thinking_level: ThinkingLevel) -> None:
        if thinking_level not in get_args(ThinkingLevel):
            raise ValueError(f"thinking_level is one of {', '.join(get_args(ThinkingLevel))}, got {thinking_level!r}")
        self._thinking_level = thinking_level

    @property
    def messages(self) -> list[AgentMessage]:
        """The transcript."""
        return self._messages

    @messages.setter
    def messages(self, messages: Iterable[AgentMessage]) -> None:
        self._messages = as_messages(messages)

    @property
    def tools(self) -> list[Tool]:
        """The tools the model may call."""
        return self._tools

    @tools.setter
    def tools(self, tools: Iterable[Tool]) -> None:
        from .tools import Tool

        found = list(tools)
        names: set[str] = set()
        for given in found:
            if not isinstance(given, Tool):
                raise TypeError(f"expected a Tool, got {type(given).__name__}; @tool makes one of a typed function")
            if given.name in names:
                raise ConfigError(f"two tools are named '{given.name}'; give each a name of its own, or leave one out")
            names.add(given.name)
        self._tools = found

    @property
    def pending_tool_calls(self) -> frozenset[str]:
        """The ids of the tool calls that were taken up and are not final yet."""
        return frozenset(self.running)

    @property
    def streaming_message(self) -> AgentMessage | None:
        """The message between its start and its end, of whatever role."""
        return None if self.open is None else self.open.message

    def begin(self) -> None:
        """Mark a run as started."""
        self.is_streaming, self.error_message, self.open = True, None, None

    def settle(self) -> None:
        """Mark the agent as idle."""
        self.is_streaming, self.open = False, None
        self.running.clear()
