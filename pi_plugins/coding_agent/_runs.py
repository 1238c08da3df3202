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
from pi_plugins.models.shared import RUNTIME
from pi_plugins.tools import SHELL_ENVIRONMENT

from .events import EntryEvent, NoticeEvent, RetryEndEvent, RetryStartEvent, RunEndEvent, SettledEvent
from .retry import RetryPolicy, is_overflow

if TYPE_CHECKING:
    from .session import AgentSession

Next: TypeAlias = Literal["retry", "overflow", "queued", "nothing"]


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
        self._attempt = 0
        self._recovered = False
        self._next: Next = "nothing"
        self._give_up = asyncio.Event()
        self._chosen: Chosen | None = None
        self.retrying = session.settings.retry.enabled
        self.aborted = False

    @property
    def _policy(self) -> RetryPolicy:
        return RetryPolicy(self._session.settings.retry)

    @property
    def active(self) -> bool:
        """Whether a run goes on, or waits for its next attempt."""
        return self._task is not None and not self._task.done()

    @property
    def waits_for_retry(self) -> bool:
        """Whether the session waits before it makes a failed request again."""
        return self._attempt > 0 and not self._session.agent.state.is_streaming and self.active

    def start(self, messages: Sequence[AgentMessage] | None) -> None:
        """Begin to run with messages; ``None`` goes on from the transcript."""
        self._task = asyncio.create_task(self._drive(messages))

    async def wait(self) -> None:
        """Wait until nothing goes on any more.

        :raises Exception: what failed outside of the agent, such as a hook or a full disk.
        """
        while self.active:
            assert self._task is not None
            await asyncio.wait([self._task])
        task, self._task = self._task, None
        if task is not None and not task.cancelled() and (error := task.exception()) is not None:
            raise error

    def abort(self, reason: str = "") -> None:
        """Abort the run, or the wait for its next attempt."""
        if self.active:
            self.aborted = True
            self._give_up.set()
            self._session.agent.abort(reason)

    async def aborted_run(self) -> None:
        """Wait until what was aborted is over; what is queued may begin then."""
        await self._session.agent.wait_for_idle()
        await self._session.compactor.wait()

    def abort_retry(self) -> None:
        """Give up the wait for the next attempt."""
        self._give_up.set()

    # --- driving ---

    async def _drive(self, messages: Sequence[AgentMessage] | None) -> None:
        session = self._session
        self._attempt, self._recovered, self.aborted = 0, False, False
        self._give_up.clear()
        try:
            if messages is not None:
                await session.compactor.at_threshold()
                messages = await session.prepare_run(messages)
                await self._run(session.agent.prompt(list(messages)))
            else:
                await self._run(session.agent.continue_())
            while await self._go_on():
                await self._run(session.agent.continue_())
        finally:
            session.bash.flush()
            await session.say(SettledEvent(self.aborted))
        await session.call_hook("agent_settled", session=session, aborted=self.aborted)

    async def _run(self, running: Awaitable[object]) -> None:
        self._next = "nothing"
        await running

    async def _go_on(self) -> bool:
        """Do what is to be done after a run, and return whether there is to be another one."""
        session = self._session
        match self._next:
            case "retry":
                return await self._wait_for_retry()
            case "overflow":
                self._recovered = True
                if not session.compactor.possible:
                    return False
                self._omit_failed()
                if await session.compactor.run("overflow", will_retry=True) is None:
                    return False
                return not self.aborted
        await session.compactor.at_threshold()
        if session.agent.has_queued_messages and not session.closed:
            self.aborted = False
            self._give_up.clear()
            return True
        return False

    async def _wait_for_retry(self) -> bool:
        session = self._session
        failed = session.last_answer
        assert failed is not None
        self._attempt += 1
        delay = self._policy.delay(failed, self._attempt)
        assert delay is not None
        error = failed.error_message or "the request failed"
        await session.say(RetryStartEvent(self._attempt, self._policy.max_retries, round(delay * 1000), error))
        self._omit_failed()
        try:
            await asyncio.wait_for(self._give_up.wait(), delay)
        except TimeoutError:
            return True
        await session.say(RetryEndEvent(False, self._attempt, "The wait for the next attempt was given up"))
        self._attempt = 0
        return False

    def _omit_failed(self) -> None:
        """Take the failed response out of the context; the session keeps it."""
        session = self._session
        leaf = session.store.leaf_id
        if leaf is not None and isinstance(session.agent.state.messages[-1], AssistantMessage):
            session.emit_soon(EntryEvent(session.store.append_context_edit(leaf, None)))
        session.agent.state.messages = session.store.projection().messages

    # --- what the agent tells ---

    def on_event(self, event: AgentEvent, signal: object) -> Awaitable[None] | None:
        """Pass an event of the agent on to the listeners, with what the session adds to it."""
        if isinstance(event, AgentEndEvent):
            return self._run_ended(event)
        pending = self._session.emit(event)
        if self._attempt and isinstance(event, MessageEndEvent) and isinstance(event.message, AssistantMessage):
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
        if is_overflow(last, session.model.context_window) and not self._recovered:
            return "overflow" if session.compactor.enabled else "nothing"
        if last.stop_reason == "length" and not self._recovered and session.compactor.is_due():
            return "overflow" if session.compactor.enabled else "nothing"
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
