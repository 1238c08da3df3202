"""How much all workers together ask of a provider: a request waits for tickets from the engine's limited queues."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from dbos import DBOS, DBOSClient, WorkflowHandleAsync

from pi_core import Context, Model
from pi_plugins.sessions.compaction import context_tokens

from ._workflows import TICKET

if TYPE_CHECKING:
    from . import ProviderLimit

_PERIOD_SECONDS: Final = 60.0
_MOST_TICKETS: Final = 60
"""Most tickets for tokens within a period, so that the engine need not count tokens one by one."""
_POLL_SECONDS: Final = 0.1


class Limits:
    """Gives out tickets.

    :param limits: by name of provider.
    :param version: the build of this worker, which the tickets are for.
    """

    def __init__(self, limits: Mapping[str, ProviderLimit], client: DBOSClient, version: str) -> None:
        self._limits = limits
        self._client = client
        self._version = version

    def register(self) -> None:
        """Make the queues; the engine must have been started."""
        for provider, limit in self._limits.items():
            if limit.requests_per_minute is not None:
                _register(_requests(provider), limit.requests_per_minute)
            if limit.tokens_per_minute is not None:
                _register(_tokens(provider), min(_MOST_TICKETS, limit.tokens_per_minute))

    async def admit(self, model: Model, context: Context) -> None:
        """Wait until a request may start."""
        limit = self._limits.get(model.provider)
        if limit is None:
            return
        wanted: list[str] = []
        if limit.tokens_per_minute is not None:
            most = min(_MOST_TICKETS, limit.tokens_per_minute)
            fixed = math.ceil(len(context.system_prompt) / 4)
            tokens = context_tokens(context.messages, fixed=fixed)
            tickets = math.ceil(tokens * most / limit.tokens_per_minute)
            wanted += [_tokens(model.provider)] * max(1, min(most, tickets))
        if limit.requests_per_minute is not None:
            wanted.append(_requests(model.provider))
        handles: list[WorkflowHandleAsync[None]] = [
            await self._client.enqueue_async(
                {"workflow_name": TICKET, "queue_name": queue, "app_version": self._version}
            )
            for queue in wanted
        ]
        for handle in handles:
            await handle.get_result(polling_interval_sec=_POLL_SECONDS)


def _requests(provider: str) -> str:
    return f"pi-requests-{provider}"


def _tokens(provider: str) -> str:
    return f"pi-tokens-{provider}"


def _register(queue: str, limit: int) -> None:
    DBOS.register_queue(
        queue,
        limiter={"limit": limit, "period": _PERIOD_SECONDS},
        polling_interval_sec=_POLL_SECONDS,
        on_conflict="always_update",
    )
