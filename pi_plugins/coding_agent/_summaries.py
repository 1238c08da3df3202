"""The requests for summaries: made beside the session, with the attempts that those of a run get."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING

from pi_core import AssistantMessage, Context, StreamOptions, complete
from pi_plugins.providers.tokens import total_usage

from .events import SummaryAttemptEvent, SummaryRetryEndEvent, SummaryRetryEvent
from .retry import RetryPolicy

if TYPE_CHECKING:
    from pi_plugins.sessions.compaction import CompactionReason

    from .events import SummarySource
    from .session import AgentSession


class SummaryRequests:
    """Makes the requests of one summary, with the session's model, plugins and key.

    :param source: what is summarised.
    :param reason: why a session is compacted.
    """

    def __init__(self, session: AgentSession, source: SummarySource, reason: CompactionReason | None = None) -> None:
        self._session = session
        self._source = source
        self._reason = reason
        self._answers: list[AssistantMessage] = []

    async def __call__(self, context: Context, options: StreamOptions) -> AssistantMessage:
        """Make a request, and make it again when it fails with what may be over soon."""
        policy = RetryPolicy(self._session.settings.retry)
        attempt = 0
        try:
            while True:
                answer = await self._request(context, options)
                self._answers.append(answer)
                failed = answer.stop_reason == "error" and self._session.runs.retrying
                delay = policy.delay(answer, attempt + 1) if failed else None
                if delay is None:
                    return answer
                attempt += 1
                error = answer.error_message or "the request failed"
                await self._session.say(SummaryRetryEvent(attempt, policy.max_retries, round(delay * 1000), error))
                await asyncio.sleep(delay)
                await self._session.say(SummaryAttemptEvent(self._source, self._reason))
        finally:
            if attempt:
                self._session.emit_soon(SummaryRetryEndEvent())

    def note_lost(self) -> None:
        """Note in the session what the requests cost that led to no summary."""
        usage = total_usage([answer.usage for answer in self._answers])
        if usage.total_tokens:
            model = self._answers[-1]
            self._session.store.append_usage(self._source, model.provider, model.model, usage)

    async def _request(self, context: Context, options: StreamOptions) -> AssistantMessage:
        given = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
        return await complete(
            self._session.model,
            list(context.messages),
            provider=self._session.build,
            system_prompt=context.system_prompt,
            **given,
        )
