"""How a response travels: an event queue with a result."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

from .events import (
    DoneEvent,
    ErrorEvent,
    StreamEvent,
    TextDeltaEvent,
    TextStartEvent,
)
from .messages import (
    AssistantMessage,
)

T = TypeVar("T")
R = TypeVar("R")


class EventStream(Generic[T, R]):
    """A queue with one producer and a result.

    Iterate it for the events, await :meth:`result` for what the final event carries. Several waiting readers are served
    in the order they came.

    :param final_result: returns a one-element tuple with the result when the event is the final one, else ``None``.
    """

    def __init__(self, final_result: Callable[[T], tuple[R] | None]) -> None:
        self._final_result = final_result
        self._events: deque[T] = deque()
        self._readers: deque[asyncio.Future[tuple[T] | None]] = deque()
        self._waiters: list[asyncio.Future[None]] = []
        self._done = False
        self._outcome: tuple[R] | None = None
        self._error: BaseException | None = None
        self._closed = False
        self._on_close: Callable[[], object] | None = None

    @property
    def settled(self) -> tuple[R] | None:
        """The result in a tuple once it is known, else ``None``."""
        return self._outcome

    def push(self, event: T) -> None:
        """Add an event; ignored once the stream is done. The final event is still delivered."""
        if self._done:
            return
        outcome = self._final_result(event)
        self._deliver(event)
        if outcome is not None:
            self._outcome = outcome
            self._finish()

    def end(self, *result: R) -> None:
        """End the stream, with a result if one is given and none was known."""
        if result and self._outcome is None:
            self._outcome = (result[0],)
        self._finish()

    def fail(self, error: BaseException) -> None:
        """End the stream with an error, which iteration and :meth:`result` raise after the queued events."""
        if not self._done:
            self._error = error
            self._finish()

    def on_close(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` when the consumer gives up (:meth:`aclose`), and wait for what it returns."""
        self._on_close = callback

    async def aclose(self) -> None:
        """Give up reading: queued and further events are dropped, and the producer is told."""
        self._closed = True
        self._events.clear()
        self._finish()
        callback, self._on_close = self._on_close, None
        answer = callback() if callback is not None else None
        if inspect.isawaitable(answer):
            await answer

    async def result(self) -> R:
        """Wait for the result; pending for ever if the producer ended the stream without one.

        :raises BaseException: what the producer failed with.
        :raises RuntimeError: the stream was closed before its result was known.
        """
        while self._outcome is None:
            if self._error is not None:
                raise self._error
            if self._closed:
                raise RuntimeError("the stream was closed before its result was known")
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        return self._outcome[0]

    def __aiter__(self) -> EventStream[T, R]:
        return self

    async def __anext__(self) -> T:
        if self._events:
            return self._events.popleft()
        event: tuple[T] | None = None
        if not self._done:
            reader: asyncio.Future[tuple[T] | None] = asyncio.get_running_loop().create_future()
            self._readers.append(reader)
            try:
                event = await reader
            except asyncio.CancelledError:
                if not reader.cancelled() and (given := reader.result()) is not None:
                    self._deliver(given[0], first=True)
                raise
        if event is not None:
            return event[0]
        if self._error is not None:
            raise self._error
        raise StopAsyncIteration

    def _deliver(self, event: T, *, first: bool = False) -> None:
        """Hand an event to the reader who has waited longest, or keep it for the next one."""
        while self._readers:
            reader = self._readers.popleft()
            if not reader.done():
                reader.set_result((event,))
                return
        (self._events.appendleft if first else self._events.append)(event)

    def _finish(self) -> None:
        self._done = True
        while self._readers:
            reader = self._readers.popleft()
            if not reader.done():
                reader.set_result(None)
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


def _final_message(event: StreamEvent) -> tuple[AssistantMessage] | None:
    return (event.message,) if isinstance(event, DoneEvent | ErrorEvent) else None


class AssistantStream(EventStream[StreamEvent, AssistantMessage]):
    """A response as a queue, for providers that push events; its result is the final message."""

    def __init__(self) -> None:
        super().__init__(_final_message)

    async def text(self) -> AsyncIterator[str]:
        """Iterate the text as it arrives, without thinking and tool calls."""
        async for event in self:
            if isinstance(event, TextDeltaEvent):
                yield event.delta
            elif isinstance(event, TextStartEvent) and event.text:
                yield event.text
