"""When and how a session is compacted, and what is told about it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pi_core import Block, ConfigError
from pi_plugins.sessions.compaction import (
    CompactionPreparation,
    CompactionReason,
    CompactionResult,
    TokenMeter,
    prepare,
    should_compact,
    summarize,
)

from ._summaries import SummaryRequests
from .events import CompactionEndEvent, CompactionStartEvent

if TYPE_CHECKING:
    from .session import AgentSession


class Compactor:
    """Compacts a session: by hand, when its context passes the limit, and when a request did not fit."""

    def __init__(self, session: AgentSession) -> None:
        self._session = session
        self._task: asyncio.Task[CompactionResult] | None = None
        self._over = asyncio.Event()
        self._over.set()
        self._given_up = False
        self._meter = TokenMeter()
        self.enabled = session.settings.compaction.enabled

    @property
    def active(self) -> bool:
        """Whether a compaction goes on."""
        return not self._over.is_set()

    def abort(self) -> None:
        """Give the compaction up; the session stays as it is."""
        self._given_up = True
        if self._task is not None:
            self._task.cancel()

    async def wait(self) -> None:
        """Wait until no compaction goes on."""
        await self._over.wait()

    def tokens(self) -> int:
        """Return the estimated tokens of the context."""
        session = self._session
        return self._meter.tokens(session.agent.state.messages, fixed=session.fixed_tokens)

    @property
    def possible(self) -> bool:
        """Whether there is something to compact."""
        return self._prepared() is not None

    def _prepared(self, focus: str | None = None) -> CompactionPreparation | None:
        session = self._session
        return prepare(session.store.path_to(), session.settings.compaction, model=session.model, focus=focus)

    def _why_not(self) -> str:
        path = self._session.store.path_to()
        if path and path[-1].type == "compaction":
            return "nothing was said since the compaction before"
        return "the session is shorter than what is kept"

    def is_due(self) -> bool:
        """Whether the context has passed the limit of its model."""
        session = self._session
        return should_compact(self.tokens(), session.model, session.settings.compaction)

    async def at_threshold(self) -> CompactionResult | None:
        """Compact when the context has passed the limit; ``None`` when it has not, or it failed."""
        if not self.enabled or not self.is_due():
            return None
        return await self.run("threshold")

    async def manually(self, focus: str | None = None) -> CompactionResult:
        """Compact now. What is submitted meanwhile runs afterwards.

        :param focus: what the summary is to attend to.
        :raises ConfigError: something goes on, there is nothing to compact, or no summary could be made.
        """
        failures: list[str] = []
        with self._session.alone():
            result = await self.run("manual", focus=focus, failures=failures)
        if result is None:
            raise ConfigError(failures[0] if failures else "The compaction was given up")
        return result

    async def run(
        self,
        reason: CompactionReason,
        *,
        will_retry: bool = False,
        focus: str | None = None,
        failures: list[str] | None = None,
    ) -> CompactionResult | None:
        """Compact, tell the listeners and plugins, and return the result; ``None`` when there is none.

        :param will_retry: whether the request that did not fit is made again.
        :param failures: gets why there is no result.
        """
        session = self._session
        preparation = self._prepared(focus)
        if preparation is None:
            if failures is not None:
                failures.append(f"There is nothing to compact: {self._why_not()}")
            return None
        self._over.clear()
        self._given_up = False
        try:
            await session.say(CompactionStartEvent(reason))
            result, error = await self._attempt(preparation, reason)
            if failures is not None and error is not None:
                failures.append(error)
            aborted = result is None and error is None
            retry = will_retry and result is not None
            await session.say(CompactionEndEvent(reason, result, aborted, retry, error))
        finally:
            self._over.set()
        if result is None:
            await session.call_hook(
                "session_compact_failed", session=session, reason=reason, error=error or "", aborted=aborted
            )
        else:
            await session.call_hook("session_compact", session=session, result=result, reason=reason)
        return result

    async def _attempt(
        self, preparation: CompactionPreparation, reason: CompactionReason
    ) -> tuple[CompactionResult | None, str | None]:
        """Compact unless it is given up, and return the result or what failed; neither when it was given up."""
        if self._given_up:
            return None, None
        task = self._task = asyncio.create_task(self._compact(preparation, reason))
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()
            self._task = None
        if task.cancelled():
            return None, None
        failure = task.exception()
        return (task.result(), None) if failure is None else (None, str(failure))

    async def _compact(self, preparation: CompactionPreparation, reason: CompactionReason) -> CompactionResult:
        session = self._session
        verdict = await session.call_hook(
            "session_before_compact", session=session, preparation=preparation, reason=reason
        )
        if isinstance(verdict, Block):
            raise ConfigError(verdict.reason or "A plugin keeps the session from being compacted")
        result: CompactionResult | None = await session.call_hook("summarize", session=session, preparation=preparation)
        from_hook = result is not None
        if result is None:
            requests = SummaryRequests(session, "compaction", reason)
            try:
                result = await summarize(preparation, requests, session.model, session.thinking_level)
            except BaseException:
                requests.note_lost()
                raise
        session.store.append_compaction(
            result.summary,
            result.first_kept_entry_id,
            result.tokens_before,
            usage=result.usage,
            details=result.details,
            from_hook=from_hook,
        )
        session.agent.state.messages = session.store.projection().messages
        return result
