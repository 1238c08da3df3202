"""What an agent consists of: its queues, and its state as observers read it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from .context import as_messages

if TYPE_CHECKING:
    from .events import MessageStartEvent, MessageUpdateEvent
    from .messages import AgentMessage, ThinkingLevel
    from .providers import Model
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
    """What an agent is at the moment. Assigning ``messages`` or ``tools`` stores a copy of the list.

    :raises TypeError: there is something else among them.
    """

    __slots__ = (
        "_messages",
        "_tools",
        "error_message",
        "is_streaming",
        "model",
        "open",
        "running",
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
        self.tools = tools
        self.messages = messages
        self.is_streaming = False
        self.running: set[str] = set()
        self.error_message: str | None = None
        self.open: MessageStartEvent | MessageUpdateEvent | None = None

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
        for given in found:
            if not isinstance(given, Tool):
                raise TypeError(f"expected a Tool, got {type(given).__name__}; @tool makes one of a typed function")
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
