"""What an agent consists of: its queues, its state as observers read it, and the run it is in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias

from .context import AbortController, AgentContext, RunActions, RunContext
from .events import (
    AgentEndEvent,
    AgentEvent,
    AgentStartEvent,
    MessageEndEvent,
    MessageStartEvent,
    MessageUpdateEvent,
    ToolExecutionEndEvent,
    ToolExecutionStartEvent,
    TurnEndEvent,
)
from .messages import AgentMessage, ThinkingLevel
from .providers import Model
from .tools import Tool

QueueMode: TypeAlias = Literal["all", "one-at-a-time"]


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
        "_tools",
        "error_message",
        "is_streaming",
        "model",
        "open",
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
        self.open: MessageStartEvent | MessageUpdateEvent | None = None

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
        return None if self.open is None else self.open.message

    def begin(self) -> None:
        """Mark a run as started."""
        self.is_streaming, self.error_message, self.open = True, None, None

    def settle(self) -> None:
        """Mark the agent as idle."""
        self.is_streaming, self.pending_tool_calls, self.open = False, frozenset(), None


class ActiveRun:
    """The run an agent is in: its signal, its context for the hooks, and what it has produced."""

    __slots__ = ("_aborted_before_failure", "closing", "controller", "ctx", "produced", "started", "state", "task")

    def __init__(self, state: AgentState, actions: RunActions) -> None:
        self.state = state
        self.controller = AbortController()
        self.ctx = RunContext(
            signal=self.controller.signal,
            model=state.model,
            thinking_level=state.thinking_level,
            context=AgentContext(state.system_prompt, state.messages, state.tools),
            actions=actions,
        )
        self.produced: list[AgentMessage] = []
        self.started = False
        self.closing = False
        self.task: asyncio.Task[list[AgentMessage]] | None = None
        self._aborted_before_failure: bool | None = None

    @property
    def was_aborted(self) -> bool:
        """Whether the run was aborted, and not only cancelled because it failed."""
        before = self._aborted_before_failure
        return self.controller.signal.aborted if before is None else before

    def fail(self) -> None:
        """Abort what still runs of a run that has failed."""
        if self._aborted_before_failure is None:
            self._aborted_before_failure = self.controller.signal.aborted
        self.controller.abort()

    def reduce(self, event: AgentEvent) -> None:
        """Take an event in, before subscribers see it: what the agent is now, and what the run has produced."""
        reduce = _REDUCERS.get(type(event))
        if reduce is not None:
            reduce(self, event)

    def _message_start(self, event: MessageStartEvent) -> None:
        self.state.open = event

    def _message_end(self, event: MessageEndEvent) -> None:
        self.state.open = None
        self.state.messages.append(event.message)
        self.produced.append(event.message)

    def _tool_start(self, event: ToolExecutionStartEvent) -> None:
        self.state.pending_tool_calls |= {event.tool_call_id}

    def _tool_end(self, event: ToolExecutionEndEvent) -> None:
        self.state.pending_tool_calls -= {event.tool_call_id}

    def _turn_end(self, event: TurnEndEvent) -> None:
        if event.message.error_message:
            self.state.error_message = event.message.error_message

    def _agent_start(self, event: AgentStartEvent) -> None:
        self.started = True

    def _agent_end(self, event: AgentEndEvent) -> None:
        self.closing = True
        self.state.open = None

    async def wait(self, patience: float | None) -> list[AgentMessage]:
        """Wait for the run and return its messages.

        A cancellation aborts the run and comes out when it is over; another one, or the end of the patience, cancels
        what the run is waiting for.

        :param patience: seconds that the run may go on after it was aborted; ``None`` for ever.
        """
        assert self.task is not None
        cancelled: asyncio.CancelledError | None = None
        while not self.task.done():
            try:
                await asyncio.wait([self.task], timeout=None if cancelled is None else patience)
                if not self.closing:
                    self.task.cancel()
            except asyncio.CancelledError as error:
                if cancelled is None:
                    self.controller.abort()
                else:
                    self.task.cancel()
                cancelled = error
        if cancelled is None:
            return self.task.result()
        if not self.task.cancelled():
            self.task.exception()
        raise cancelled


_REDUCERS: Mapping[type[AgentEvent], Callable[[ActiveRun, Any], None]] = {
    AgentStartEvent: ActiveRun._agent_start,
    AgentEndEvent: ActiveRun._agent_end,
    TurnEndEvent: ActiveRun._turn_end,
    MessageStartEvent: ActiveRun._message_start,
    MessageEndEvent: ActiveRun._message_end,
    ToolExecutionStartEvent: ActiveRun._tool_start,
    ToolExecutionEndEvent: ActiveRun._tool_end,
}
