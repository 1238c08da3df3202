"""Waiting for a response: the inactivity limit, and abort at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from math import inf
from typing import Any, TypeVar

from pi_core import AbortSignal, ErrorDetails

from ._errors import AbortedError, ResponseError

T = TypeVar("T")


class InactivityError(ResponseError):
    """Nothing arrived for longer than the limit."""


class Watch:
    """Bounds every wait of one response by its abort signal and its inactivity limit.

    Time the consumer takes between two waits does not count.

    :param limit_ms: longest wait for one event, milliseconds; 0 means no limit.
    :param host: who is waited for, for the error text.
    """

    def __init__(self, signal: AbortSignal | None, limit_ms: int, host: str) -> None:
        self.host = host
        self._signal = signal
        self._limit = limit_ms / 1000 if limit_ms > 0 else inf
        self._left = self._limit
        self._loop = asyncio.get_running_loop()
        self._timeout: asyncio.Timeout | None = None
        self._close: Callable[[], Coroutine[Any, Any, None]] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._remove = signal.on_abort(self._on_abort) if signal is not None else None

    @property
    def aborted(self) -> bool:
        """Whether the signal was aborted."""
        return self._signal is not None and self._signal.aborted

    def restart(self, limit_ms: int | None = None) -> None:
        """Let the limit start anew: an event arrived. ``limit_ms`` lowers it from now on."""
        if limit_ms is not None:
            self._limit = min(self._limit, limit_ms / 1000)
        self._left = self._limit

    def close_with(self, close: Callable[[], Coroutine[Any, Any, None]] | None) -> None:
        """Say what an abort closes while nobody waits."""
        self._close = close

    async def wait(self, start: Callable[[], Awaitable[T]], limit_ms: int | None = None) -> T:
        """Wait for something of the response.

        :param start: begins it.
        :param limit_ms: a limit for this wait alone.
        :raises AbortedError: the signal was aborted.
        :raises InactivityError: the limit is over.
        """
        if self.aborted:
            raise AbortedError
        began = self._loop.time()
        limit = self._left if limit_ms is None else limit_ms / 1000
        timeout = asyncio.timeout_at(began + limit if limit < inf else None)
        try:
            async with timeout:
                self._timeout = timeout
                return await start()
        except TimeoutError:
            if self.aborted:
                raise AbortedError from None
            if not timeout.expired():
                raise
            seconds = self._limit if limit_ms is None else limit_ms / 1000
            raise InactivityError(
                f"Request timed out: {self.host} sent nothing for {seconds:g} s", ErrorDetails(retryable=True)
            ) from None
        finally:
            self._timeout = None
            if limit_ms is None:
                self._left -= self._loop.time() - began

    async def stop(self) -> None:
        """Forget the signal; the response is over."""
        if self._remove is not None:
            self._remove()
        if self._closing is not None:
            await self._closing

    def _on_abort(self) -> None:
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._abort()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._abort)

    def _abort(self) -> None:
        if self._timeout is not None:
            if not self._timeout.expired():
                self._timeout.reschedule(self._loop.time())
        elif self._close is not None:
            self._closing = self._loop.create_task(self._close())
