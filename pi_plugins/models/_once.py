"""Commands of stored credentials, which run once in a process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Final

from .templates import UnresolvedError


class Once:
    """What was resolved once in this process, also when it failed; who asks meanwhile waits for the same attempt."""

    def __init__(self) -> None:
        self._outcomes: dict[Hashable, str | UnresolvedError] = {}
        self._attempts: dict[Hashable, asyncio.Task[str | UnresolvedError]] = {}

    async def value(self, what: Hashable, resolve: Callable[[], Awaitable[str]]) -> str:
        """Return the value, resolved at the first call.

        :raises UnresolvedError: it could not be resolved then.
        """
        outcome = self._outcomes.get(what)
        if outcome is None:
            attempt = self._attempts.get(what)
            if attempt is None or attempt.get_loop() is not asyncio.get_running_loop():
                attempt = self._attempts[what] = asyncio.create_task(self._attempt(what, resolve))
            # Whoever is cancelled leaves the attempt to those who wait for it too.
            outcome = await asyncio.shield(attempt)
        if isinstance(outcome, UnresolvedError):
            raise UnresolvedError(str(outcome))
        return outcome

    async def _attempt(self, what: Hashable, resolve: Callable[[], Awaitable[str]]) -> str | UnresolvedError:
        try:
            outcome: str | UnresolvedError = await resolve()
        except UnresolvedError as error:
            outcome = error
        finally:
            self._attempts.pop(what, None)
        self._outcomes[what] = outcome
        return outcome


ONCE: Final = Once()
