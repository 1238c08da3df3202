"""The runs of a session: prompts, attempts after failures, and compaction around them, until nothing is left to do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pi_core import (
    AgentContext,
    AgentEndEvent,
    AgentEvent,
    AgentMessage,
    AssistantMessage,
    MessageEndEvent,
    Model,
    RunContext,
    ThinkingLevel,
    Tool,
    Turn,
    TurnUpdate,
)
from pi_plugins.limits import USED, Used
from pi_plugins.models.shared import RUNTIME
from pi_plugins.tools import SHELL_ENVIRONMENT

from .events import EntryEvent, NoticeEvent, RetryEndEvent, RetryStartEvent, RunEndEvent, SettledEvent
from .retry import RetryPolicy, is_overflow

if TYPE_CHECKING:
    from .session import AgentSession

Next: TypeAlias = Literal["retry", "overflow", "nothing"]


class Chosen(NamedTuple):
    """What the user can change while a run goes on."""

    model: Model
    level: ThinkingLevel
    tools: tuple[Tool, ...]


class Runs:
    """Drives the agent of a session.

    :param session: whose agent it is.
    """

    def __init__(self, session: AgentSession) -> None:
        self._session = session
        self._task: asyncio.Task[None] | None = None
        self._settled = True
        self._waiting = 0
        self._attempt = 0
        self._recovered = False
        self._failed = False
        self._next: Next = "nothing"
        self._give_up = asyncio.Event()
        self._abort_over = asyncio.Event()
        self._abort_over.set()
        self._abort_reason = ""
        self._chosen: Chosen | None = None
        self._used: Used | None = None
        self.retrying = session.settings.retry.enabled
        self.aborted = False
        self.waits_for_retry = False
        """Whether the session waits before it makes a failed request again."""

    @property
    def _policy(self) -> RetryPolicy:
        return RetryPolicy(self._session.settings.retry)

    @property
    def active(self) -> bool:
        """Whether a run goes on, or waits for its next attempt."""
        return not self._settled

    def start(self, messages: Sequence[AgentMessage], *, aborted: bool = False) -> None:
        """Begin to run with messages, when what is left of the run before is over.

        :param aborted: keep the messages, and make no request.
        """
        before = self._task
        self._settled = False
        self._end_abort()
        if aborted:
            self.abort()
        self._task = asyncio.create_task(self._drive(messages, before))
        self._session.must_not_wait(self._task)

    async def wait(self) -> None:
        """Wait until nothing goes on any more.

        :raises Exception: what failed outside of the agent, such as a hook or a full disk.
        """
        self._waiting += 1
        try:
            while (task := self._task) is not None:
                await asyncio.wait([task])
                if self._task is task:
                    self._task = None
                if not task.cancelled() and (error := task.exception()) is not None:
                    raise error
        finally:
            self._waiting -= 1

    def abort(self, reason: str = "") -> None:
        """Abort the run, or the wait for its next attempt."""
        if self.active:
            self.aborted = True
            self._abort_reason = reason
            self._abort_over.clear()
            self._give_up.set()
            self._session.agent.abort(reason)

    async def aborted_run(self) -> None:
        """Wait until what was aborted is over; what is queued may begin then."""
        await self._abort_over.wait()
        await self._session.compactor.wait()

    def abort_retry(self) -> None:
        """Give up the wait for the next attempt."""
        if self.waits_for_retry:
            self._give_up.set()

    def _end_abort(self) -> None:
        self.aborted = False
        self._give_up.clear()
        self._abort_over.set()

    # --- driving ---

    async def _drive(self, messages: Sequence[AgentMessage], before: asyncio.Task[None] | None) -> None:
        """Run with messages and go on until nothing is left to do.

        :param before: the run before, whose plugins may still be at work.
        """
        session = self._session
        if before is not None:
            await asyncio.wait([before])
        await session.wait_until_free()
        try:
            if not self.aborted:
                await session.compactor.at_threshold()
            messages = await session.prepare_run(messages)
            await self._run(session.agent.prompt(list(messages)), again=False)
            while (again := await self._go_on()) is not None:
                await self._run(session.agent.continue_(), again=again)
        except Exception as error:
            if self._waiting:
                raise
            await session.say(NoticeEvent(str(error) or type(error).__name__, "error"))
        finally:
            await self._settle()

    async def _settle(self) -> None:
        session = self._session
        try:
            session.bash.flush()
        finally:
            self._settled, aborted = True, self.aborted
            await session.say(SettledEvent(aborted))
            if self._settled:
                self._abort_over.set()
        await session.call_hook("agent_settled", session=session, aborted=aborted)

    async def _run(self, running: Awaitable[object], *, again: bool) -> None:
        """Let the agent run.

        :param again: whether this is another attempt at the same request of the user, which has what is left of the
            limits of that.
        """
        self._next = "nothing"
        if not again:
            self._used, self._attempt, self._recovered = None, 0, False
        await running

    async def _go_on(self) -> bool | None:
        """Do what is to be done after a run.

        :returns: ``None`` when there is not to be another one; else whether it is another attempt.
        """
        session = self._session
        if self._next == "retry" and await self._wait_for_retry():
            return True
        tried = self._next == "overflow"
        if tried:
            self._recovered = True
            self._omit_failed()
            if await session.compactor.run("overflow", will_retry=True) is not None and not self.aborted:
                return True
        queued = session.agent.has_queued_messages and not session.closed
        if self.aborted and queued:
            self._end_abort()
        if not (tried or self.aborted or self._failed or session.closed):
            await session.compactor.at_threshold()
        if session.closed or not session.agent.has_queued_messages:
            return None
        self._end_abort()
        return False

    async def _wait_for_retry(self) -> bool:
        """Wait before the next attempt, and return whether there is to be one."""
        session = self._session
        failed = session.last_answer
        assert failed is not None
        self._attempt += 1
        delay = self._policy.delay(failed, self._attempt)
        assert delay is not None
        error = failed.error_message or "the request failed"
        self.waits_for_retry = True
        try:
            await session.say(RetryStartEvent(self._attempt, self._policy.max_retries, round(delay * 1000), error))
            self._omit_failed()
            await asyncio.wait_for(self._give_up.wait(), delay)
        except TimeoutError:
            return True
        finally:
            self.waits_for_retry = False
        await session.say(RetryEndEvent(False, self._attempt, "The wait for the next attempt was given up"))
        self._attempt = 0
        return False

    def _omit_failed(self) -> None:
        """Take the failed response out of the context; the session keeps it."""
        session = self._session
        answers = (entry for entry in reversed(session.store.path_to()) if entry.role == "assistant")
        failed = next(answers, None)
        if failed is not None:
            session.emit_soon(EntryEvent(session.store.append_context_edit(failed.id, None)))
        session.agent.state.messages = session.store.projection().messages

    # --- what the agent tells ---

    def on_event(self, event: AgentEvent, signal: object) -> Awaitable[None] | None:
        """Pass an event of the agent on to the listeners, with what the session adds to it."""
        if isinstance(event, AgentEndEvent):
            return self._run_ended(event)
        pending = self._session.emit(event)
        if isinstance(event, MessageEndEvent) and isinstance(event.message, AssistantMessage):
            if event.message.stop_reason in ("stop", "toolUse"):
                self._recovered = False
            if self._attempt:
                return self._attempted(event.message, pending)
        return pending

    async def _attempted(self, message: AssistantMessage, pending: Awaitable[None] | None) -> None:
        if pending is not None:
            await pending
        if message.stop_reason not in ("error", "aborted"):
            await self._session.say(RetryEndEvent(True, self._attempt))
            self._attempt = 0

    async def _run_ended(self, event: AgentEndEvent) -> None:
        last = event.messages[-1] if event.messages else None
        self._failed = isinstance(last, AssistantMessage) and last.stop_reason == "error"
        self._next = self._what_next(last) if isinstance(last, AssistantMessage) else "nothing"
        await self._session.say(RunEndEvent(event, self._next in ("retry", "overflow")))
        if not isinstance(last, AssistantMessage) or self._next == "retry":
            return
        if self._attempt:
            await self._session.say(RetryEndEvent(False, self._attempt, last.error_message))
            self._attempt = 0
        why = self._policy.refusal(last) if last.stop_reason == "error" else None
        if why is not None:
            await self._session.say(NoticeEvent(why, "warning"))

    def _what_next(self, last: AssistantMessage) -> Next:
        session = self._session
        if self.aborted or last.stop_reason == "aborted":
            return "nothing"
        full = is_overflow(last, session.model.context_window)
        if (full or (last.stop_reason == "length" and session.compactor.is_due())) and not self._recovered:
            return "overflow" if session.compactor.enabled and session.compactor.possible else "nothing"
        if last.stop_reason == "error" and self.retrying:
            return "nothing" if self._policy.delay(last, self._attempt + 1) is None else "retry"
        return "nothing"

    # --- hooks of the agent's runs ---

    async def between_turns(self, turn: Turn, ctx: RunContext) -> TurnUpdate | None:
        """Compact when the context has grown past its limit, and take over what the user chose since the last turn."""
        session = self._session
        compacted = await session.compactor.at_threshold() is not None
        before, now = self._chosen, self._choice()
        self._chosen = now
        model = now.model if before is not None and before.model is not now.model else None
        level = now.level if before is not None and before.level != now.level else None
        tools = now.tools if before is not None and before.tools != now.tools else None
        if model is not None or level is not None:
            self._tell_commands(ctx, now.model, now.level)
        if compacted or tools is not None:
            context: AgentContext = turn.context
            messages = session.agent.state.messages if compacted else context.messages
            changed = AgentContext(context.system_prompt, messages, list(context.tools if tools is None else tools))
            return TurnUpdate(context=changed, model=model, thinking_level=level)
        return None if model is None and level is None else TurnUpdate(model=model, thinking_level=level)

    def begin(self, ctx: RunContext) -> None:
        """Let the plugins know whose run it is: its models and credentials, and what commands are told."""
        ctx.stash[RUNTIME] = self._session.models
        if self._used is None:
            self._used = Used()
        ctx.stash[USED] = self._used
        if self.aborted:
            self._session.agent.abort(self._abort_reason)
        self._chosen = self._choice()
        self._tell_commands(ctx, ctx.model, ctx.thinking_level)

    def _choice(self) -> Chosen:
        state = self._session.agent.state
        return Chosen(state.model, state.thinking_level, tuple(state.tools))

    def _tell_commands(self, ctx: RunContext, model: Model, level: ThinkingLevel) -> None:
        """Set the variables that say to the model's commands in which session they run."""
        store = self._session.store
        given = {
            "PI_SESSION_ID": store.id,
            "PI_PROVIDER": model.provider,
            "PI_MODEL": model.id,
            "PI_REASONING_LEVEL": level,
        }
        if store.path is not None:
            given["PI_SESSION_FILE"] = str(store.path)
        ctx.stash[SHELL_ENVIRONMENT] = given
