"""One durable run in the process that has it: its hooks, which make steps of requests and tool calls.

A run that is taken over is played again from the start: what has a record is taken from it, and the first step without
one is where the run goes on. The steps are numbered when an answer is there: two for each of its calls and one for the
next request, so that they are the same however the calls interleave.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias, cast

from dbos import DBOS, StepReservation
from dbos import error as engine_error

from pi_core import (
    AbortSignal,
    Agent,
    AgentMessage,
    AssistantMessage,
    Context,
    DoneEvent,
    ErrorEvent,
    Model,
    RunContext,
    StreamEvent,
    StreamOptions,
    ToolCall,
    ToolCallContent,
    ToolResult,
    ToolResultMessage,
    parse_message,
)

from ._follow import Feed
from ._mail import Kind, Mail
from ._order import Order, Place
from ._records import ANSWER, BEGIN, EFFECT, Json, result_from_json, result_to_json
from .replay import Replay, replay_of, unknown_text, with_key

Admit: TypeAlias = Callable[[Model, Context], Awaitable[None]]
"""Waits until the limits of the model's provider allow a request."""

_LOST = (engine_error.DBOSWorkflowConflictIDError, engine_error.DBOSWorkflowCancelledError)
"""What the engine raises when the run belongs to another execution now, or was cancelled."""

_within_step: ContextVar[bool] = ContextVar("pi_dbos_within_step", default=False)
"""Whether a request or a tool is being executed, so that what it asks of a model is a part of that step."""


class DurableRun:
    """The hooks of one run, and what it knows of its records.

    Made within the workflow, since the first step is numbered then.

    :param recorded: what the engine keeps of the run's steps, by number.
    :param owner: names this execution of the run; another one has another name.
    :param rules: what may be done with a call whose outcome was lost, by tool name or pattern.
    :param admit: waits for the provider's limits.
    """

    def __init__(
        self,
        run_id: str,
        agent: Agent,
        *,
        recorded: Mapping[int, Any],
        owner: str,
        rules: Mapping[str, Replay],
        admit: Admit | None = None,
    ) -> None:
        self.run_id = run_id
        self.lost: BaseException | None = None
        self._agent = agent
        self._recorded = recorded
        self._owner = owner
        self._rules = rules
        self._admit = admit
        self._live = False
        self._next = DBOS.reserve_step()
        self._calls: Sequence[tuple[StepReservation, StepReservation]] = ()
        self._answer: tuple[AssistantMessage, int] | None = None
        self._entries: list[Json] = []
        self._unplaced: list[ToolResultMessage] = []
        self._mailbox: Sequence[Mail] = ()
        self._taken: set[str] = set()
        self._mail: list[Json] = []
        self._starts, self._ends = Order(), Order()
        self._feed = Feed(lambda: agent.state.messages)
        agent.subscribe(self._feed.take)
        agent.hooks = agent.hooks.extended(
            {
                "stream": self._stream,
                "execute_tool": self._execute_tool,
                "record_message": self._record_message,
                "record_tool_result": self._record_tool_result,
                "steering_messages": self._steering_messages,
                "follow_up_messages": self._follow_up_messages,
            }
        )

    def tail(self) -> list[Json]:
        """Return the messages after the last answer that is kept, and results of a batch that was not completed."""
        return [*self._entries, *({"message": result.to_json()} for result in self._unplaced)]

    # --- from outside ---

    def deliver(self, mail: Sequence[Mail]) -> None:
        """Take note of everything that was sent to the run so far; an abort that is new ends what is running."""
        self._mailbox = mail
        if self._live:
            self._obey()

    def follow(self) -> None:
        """Let the run be followed from another process."""
        self._feed.want()

    def _obey(self) -> None:
        """Abort the run if that was asked for."""
        for mail in self._mailbox:
            if mail.kind == "abort" and mail.key not in self._taken:
                self._take(mail)
                self._agent.abort(mail.text)

    def _take(self, mail: Mail) -> None:
        self._taken.add(mail.key)
        self._mail.append({"key": mail.key, **mail.to_json()})

    def _poll(self, kind: Kind) -> list[AgentMessage]:
        """Return the next message of a kind; when the run is played again, those that were taken here before."""
        kept = self._recorded.get(self._next.step_id)
        if kept is None:
            found = [mail for mail in self._mailbox if mail.kind == kind and mail.key not in self._taken][:1]
        else:
            mails = (Mail.from_json(data) for data in kept["mail"])
            found = [mail for mail in mails if mail.kind == kind and mail.key not in self._taken]
        for mail in found:
            self._take(mail)
        return [mail.message() for mail in found]

    async def _steering_messages(self) -> list[AgentMessage]:
        return self._poll("steer")

    async def _follow_up_messages(self) -> list[AgentMessage]:
        return self._poll("followUp")

    # --- steps ---

    async def _step(self, step: StepReservation, name: str, work: Callable[[], Awaitable[Json]]) -> Json:
        """Return what is kept of a step; without a record the work is done and its outcome kept.

        :raises Exception: what the work raised, now or before, or that the run is no longer this execution's.
        """
        try:
            return cast("Json", await step.run_async({"name": name}, work))
        except _LOST as error:
            self.lost = error
            self._agent.abort("The run was taken over by another worker, or cancelled")
            raise

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Surround what a step does for the first time."""
        self._live = True
        self._feed.go_live()
        self._obey()
        token = _within_step.set(True)
        try:
            yield
        finally:
            _within_step.reset(token)

    # --- the transcript ---

    async def _record_message(self, message: AgentMessage) -> None:
        if isinstance(message, ToolResultMessage):
            self._unplaced = [result for result in self._unplaced if result.tool_call_id != message.tool_call_id]
        if self._answer is not None and message is self._answer[0]:
            self._entries.append({"answer": self._answer[1]})
        else:
            self._entries.append({"message": message.to_json()})

    async def _record_tool_result(self, call: ToolCallContent, result: ToolResultMessage) -> None:
        self._unplaced.append(result)

    # --- a request ---

    async def _stream(
        self, model: Model, context: Context, options: StreamOptions, ctx: RunContext, *, proceed: Any
    ) -> AsyncIterable[StreamEvent]:
        if _within_step.get():
            return cast("AsyncIterable[StreamEvent]", await proceed())
        step = self._next
        events: asyncio.Queue[StreamEvent | None] = asyncio.Queue()
        opened = asyncio.Event()

        async def request() -> Json:
            with self._working():
                if self._admit is not None:
                    await _unless_aborted(self._admit(model, context), options.signal)
                async with self._feed.during_step():
                    stream = await proceed()
                    opened.set()
                    final = await _forward(stream, events)
            if final is not None:
                self._answer = final, step.step_id
            answer = None if final is None else final.to_json()
            return {"before": list(self._entries), "mail": list(self._mail), "answer": answer}

        def ended(task: asyncio.Future[Json]) -> None:
            opened.set()
            events.put_nowait(None)

        task = asyncio.ensure_future(self._step(step, ANSWER, request))
        task.add_done_callback(ended)
        try:
            await opened.wait()
            if task.done():
                task.result()
        except BaseException:
            await _end(task)
            raise
        return self._response(step, task, events)

    async def _response(
        self, step: StepReservation, task: asyncio.Future[Json], events: asyncio.Queue[StreamEvent | None]
    ) -> AsyncIterator[StreamEvent]:
        """Yield the events of a response as they arrive, and the last one when the answer is kept."""
        try:
            while (event := await events.get()) is not None:
                yield event
            kept = await task
        except BaseException:
            await _end(task)
            self._number(0)  # the step is spent, and the next request needs one of its own
            raise
        self._entries, self._mail = [], []
        self._taken.update(data["key"] for data in kept["mail"])
        if kept["answer"] is None:
            self._number(0)
            return
        if self._answer is None or self._answer[1] != step.step_id:
            self._answer = cast("AssistantMessage", parse_message(kept["answer"])), step.step_id
        message = self._answer[0]
        self._number(len(message.tool_calls))
        yield ErrorEvent(message) if message.stop_reason in ("error", "aborted") else DoneEvent(message)

    def _number(self, calls: int) -> None:
        """Number the steps of an answer's calls and of the next request."""
        self._calls = [(DBOS.reserve_step(), DBOS.reserve_step()) for _ in range(calls)]
        self._next = DBOS.reserve_step()

    # --- a tool call ---

    async def _execute_tool(self, call: ToolCall, ctx: RunContext, *, proceed: Any) -> ToolResult:
        if _within_step.get():
            return cast("ToolResult", await proceed())
        begin, effect = self._steps_of(call)
        # The calls of a batch start in source order and end in the order they finish, whatever the database takes.
        start, finish = self._starts.take(), None
        result: ToolResult | None = None
        raised: BaseException | None = None

        async def execute() -> Json:
            nonlocal finish, result, raised
            try:
                await start.turn()
                if begun_by != self._owner:
                    return {"result": _unknown(call.name).to_json()}
                with self._working(), with_key(f"{self.run_id}:{effect.step_id}:{call.id}"):
                    if ctx.signal is not None and ctx.signal.aborted:
                        raise RuntimeError("Operation aborted")
                    async with self._feed.during_step():
                        result = await self._starting(start, proceed)
                return {"result": result_to_json(result)}
            except asyncio.CancelledError as error:
                raised = error
                return {"cancelled": True}
            except Exception as error:
                raised = error
                return {"error": f"KeyError: {error}" if isinstance(error, KeyError) else str(error)}
            finally:
                finish = self._ends.take()

        begun_by = self._owner
        try:
            if replay_of(call.tool, self._rules) == "never":
                begun_by = (await self._step(begin, BEGIN, self._begin))["by"]
            kept = await self._step(effect, EFFECT, execute)
            if finish is not None:
                await finish.turn()
        finally:
            start.leave()
            if finish is not None:
                finish.leave()
        if raised is not None:
            raise raised
        if result is not None:
            return result
        if "result" in kept:
            return result_from_json(kept["result"])
        if "cancelled" in kept:
            raise asyncio.CancelledError
        raise RuntimeError(kept["error"])

    async def _starting(self, start: Place, proceed: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
        """Execute a call, and let the next one start when this one waits for something for the first time."""
        asyncio.get_running_loop().call_soon(start.leave)
        return await proceed()

    async def _begin(self) -> Json:
        """Say who begins a call that must not be made twice."""
        return {"by": self._owner}

    def _steps_of(self, call: ToolCall) -> tuple[StepReservation, StepReservation]:
        """Return the steps of a call: one that says that it begins, and one for its effect."""
        for position, content in enumerate(call.message.tool_calls):
            if content is call.content and position < len(self._calls):
                return self._calls[position]
        return DBOS.reserve_step(), DBOS.reserve_step()


def _unknown(tool: str) -> ToolResult:
    result = ToolResult.error(unknown_text(tool))
    result.is_error = True
    return result


async def _forward(
    stream: AsyncIterable[StreamEvent], events: asyncio.Queue[StreamEvent | None]
) -> AssistantMessage | None:
    """Pass the events of a response on and return its final message; ``None`` when it ended without one."""
    try:
        async for event in stream:
            if isinstance(event, DoneEvent | ErrorEvent):
                return event.message
            events.put_nowait(event)
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
    settled = getattr(stream, "settled", None)
    return settled[0] if settled is not None else None


async def _unless_aborted(waiting: Awaitable[None], signal: AbortSignal | None) -> None:
    """Wait for something, but not on when the signal is aborted."""
    task = asyncio.ensure_future(waiting)
    stop = signal.on_abort(lambda: cast("None", task.cancel())) if signal is not None else None
    try:
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()
    finally:
        task.cancel()
        if stop is not None:
            stop()


async def _end(task: asyncio.Future[Json]) -> None:
    """Cancel a step that is not wanted any more, and wait until it has ended."""
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
