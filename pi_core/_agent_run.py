"""One run of an agent: drives the loop, tells the subscribers, and closes what fails or is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from .context import AbortController, AgentContext, RunContext
from .errors import ContinueError, HookError, PluginFailure, error_text
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
from .loop import AgentLoopConfig, run_agent_loop, run_agent_loop_continue
from .messages import AgentMessage, AssistantMessage, TextContent, ToolResultMessage, UserMessage

if TYPE_CHECKING:
    from .agent import Agent


@cache
def prepare() -> None:
    """Build what pydantic leaves to the first use of the messages that every run makes."""
    for message in (UserMessage, AssistantMessage, ToolResultMessage):
        message.model_rebuild()


class ActiveRun:
    """The run an agent is in: its signal, its context for the hooks, and what it has produced."""

    __slots__ = (
        "_aborted_before_failure",
        "agent",
        "closing",
        "controller",
        "ctx",
        "produced",
        "signal",
        "started",
        "task",
    )

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        state = agent.state
        self.controller = AbortController()
        self.signal = self.controller.signal
        self.ctx = RunContext(
            signal=self.controller.signal,
            model=state.model,
            thinking_level=state.thinking_level,
            context=AgentContext(state.system_prompt, state.messages, state.tools),
            actions=agent,
        )
        self.produced: list[AgentMessage] = []
        self.started = False
        self.closing = False
        self.task: asyncio.Task[list[AgentMessage]] | None = None
        self._aborted_before_failure: bool | None = None

    def start(self, prompts: list[AgentMessage] | None, settle: Callable[[], None]) -> None:
        """Begin to run.

        :param settle: called when the run is over, before anybody who waits for it goes on.
        """
        self.task = asyncio.create_task(self._drive(prompts))
        self.task.add_done_callback(lambda _: settle())

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

    async def over(self) -> None:
        """Wait until the run is over, however it ends."""
        if self.task is not None:
            await asyncio.wait([self.task])

    # --- driving ---

    async def _drive(self, prompts: list[AgentMessage] | None) -> list[AgentMessage]:
        try:
            await self._run_loop(prompts)
        except (Exception, asyncio.CancelledError) as error:
            if self.closing or not self.started:
                raise
            task = asyncio.current_task()
            cancelled = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
            if cancelled:
                self.controller.abort()
            text = "Run was cancelled" if cancelled else error_text(error) or type(error).__name__
            try:
                await self._close_failed(text)
            finally:
                self.controller.abort()
            if cancelled:
                raise
        return self.produced

    async def _run_loop(self, prompts: list[AgentMessage] | None) -> None:
        agent, state, skip_first_poll = self.agent, self.agent.state, False
        if prompts is None and isinstance(state.messages[-1], AssistantMessage):
            prompts, skip_first_poll = await self._queued()
        state.begin()
        context = AgentContext(state.system_prompt, state.messages, state.tools)
        config = AgentLoopConfig(
            model=state.model,
            thinking_level=state.thinking_level,
            options=agent.options,
            hooks=agent.hooks,
            stream=agent.stream_function or agent.provider_stream,
            steering=agent.steering_queue.drain,
            follow_up=agent.follow_up_queue.drain,
            skip_first_poll=skip_first_poll,
            tool_execution=agent.tool_execution,
            abort_grace_seconds=agent.abort_grace_seconds,
            ctx=self.ctx,
            cancel=self.fail,
        )
        if prompts is None:
            await run_agent_loop_continue(context, config, self.announce, self.controller.signal)
        else:
            await run_agent_loop(prompts, context, config, self.announce, self.controller.signal)

    async def _queued(self) -> tuple[list[AgentMessage], bool]:
        """Take what a run after an assistant message starts with, and whether it came from steering."""
        agent = self.agent
        steering = await agent.hooks.steering_messages(self.ctx)
        steering = agent.steering_queue.drain() + steering
        if steering:
            return steering, True
        follow_up = await agent.hooks.follow_up_messages(self.ctx)
        follow_up = agent.follow_up_queue.drain() + follow_up
        if not follow_up:
            raise ContinueError("Cannot continue from message role: assistant")
        return follow_up, False

    async def _close_failed(self, text: str) -> None:
        """Emit the closing sequence of a run that failed: its failure as a message, turn_end, agent_end.

        A cancellation ends only what is waited for; it comes out when the sequence is complete.
        """
        self.closing = True
        model = self.agent.state.model
        message = AssistantMessage(
            content=[TextContent(text="")],
            api=model.api,
            provider=model.provider,
            model=model.id,
            stop_reason="aborted" if self.was_aborted else "error",
            error_message=text,
        )
        cancelled: asyncio.CancelledError | None = None
        for event in (
            MessageStartEvent(message),
            MessageEndEvent(message),
            TurnEndEvent(message, []),
            AgentEndEvent(self.produced),
        ):
            try:
                if isinstance(event, MessageEndEvent):
                    await self._record_failure(message)
                await self.agent.hooks.notify_event(event, self.ctx)
                pending = self.announce(event)
                if pending is not None:
                    await pending
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    async def _record_failure(self, message: AssistantMessage) -> None:
        try:
            await self.agent.hooks.record_message(message, self.ctx)
        except HookError as error:
            cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
            self.agent.hooks.report(PluginFailure(error.plugin, error.distribution, error.hook, cause))

    # --- telling ---

    def announce(self, event: AgentEvent) -> Awaitable[None] | None:
        """Take an event in, then call the subscribers in order; what is returned waits for those that take time."""
        if type(event) is MessageUpdateEvent:
            self.agent.state.open = event
        elif (take_in := _REDUCERS.get(type(event))) is not None:
            take_in(self, event)
        signal = self.signal
        subscribers = self.agent.subscribers
        for position, subscriber in enumerate(subscribers, 1):
            answer = subscriber(event, signal)
            if answer is not None:
                if position == len(subscribers) and type(answer) is CoroutineType:
                    return answer  # nobody is left to be called when the last one is done
                return self._announce_rest(event, position, answer)
        return None

    async def _announce_rest(self, event: AgentEvent, position: int, answer: Awaitable[None] | None) -> None:
        subscribers = self.agent.subscribers
        while True:
            if answer is not None and hasattr(answer, "__await__"):
                await answer
            if position == len(subscribers):
                return
            answer = subscribers[position](event, self.signal)
            position += 1

    def _message_start(self, event: MessageStartEvent) -> None:
        self.agent.state.open = event

    def _message_end(self, event: MessageEndEvent) -> None:
        self.agent.state.open = None
        self.agent.state.messages.append(event.message)
        self.produced.append(event.message)

    def _tool_start(self, event: ToolExecutionStartEvent) -> None:
        self.agent.state.running.add(event.tool_call_id)

    def _tool_end(self, event: ToolExecutionEndEvent) -> None:
        self.agent.state.running.discard(event.tool_call_id)

    def _turn_end(self, event: TurnEndEvent) -> None:
        if event.message.error_message:
            self.agent.state.error_message = event.message.error_message

    def _agent_start(self, event: AgentStartEvent) -> None:
        self.started = True

    def _agent_end(self, event: AgentEndEvent) -> None:
        self.closing = True
        self.agent.state.open = None


_REDUCERS: Mapping[type[AgentEvent], Callable[[ActiveRun, Any], None]] = {
    AgentStartEvent: ActiveRun._agent_start,
    AgentEndEvent: ActiveRun._agent_end,
    TurnEndEvent: ActiveRun._turn_end,
    MessageStartEvent: ActiveRun._message_start,
    MessageEndEvent: ActiveRun._message_end,
    ToolExecutionStartEvent: ActiveRun._tool_start,
    ToolExecutionEndEvent: ActiveRun._tool_end,
}
"""Take an event in before subscribers see it: what the agent is now, and what the run has produced."""
