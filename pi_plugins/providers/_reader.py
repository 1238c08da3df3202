"""The events of one response, whatever way the server answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol, TypeAlias

from pi_core import ErrorDetails, StopReason, StreamEvent

from ._errors import ResponseError, cut, excerpt, page_text
from ._http import Exchange, HttpResponse
from ._sse import EVENT_LIMIT, SseParser
from ._watch import InactivityError, Watch

FINISHED_MS: Final = 10_000
"""Longest wait for what may follow when the answer itself is complete, milliseconds."""

Events: TypeAlias = list[tuple[bytes, bytes]]


class Decoder(Protocol):
    """Turns the events of one response into stream events."""

    complete: bool
    """Whether the answer is whole, so that a connection that breaks now does no harm."""
    ended: bool
    """Whether the server said that nothing follows."""
    answered: bool
    """Whether there was any event of this API."""

    def feed(self, events: Sequence[tuple[bytes, bytes]]) -> Iterator[StreamEvent]:
        """Take events, each as its name and its data.

        :raises ResponseError: an event says so, or makes no sense.
        """

    def finish(self) -> Iterator[StreamEvent]:
        """Close what is open: the stream ended."""

    def reason(self) -> StopReason:
        """Return why the response ended.

        :raises ResponseError: it ended badly.
        """

    def summary(self) -> dict[str, Any]:
        """Return the fields of the final message that are known so far."""


class EventReader:
    """Reads the events of a response.

    A connection that breaks before the first event is made again. A body that is no event stream counts as one event
    if it is JSON: some servers answer in one piece, and many report errors that way.

    :ivar response: the response of the latest try.
    """

    def __init__(self, exchange: Exchange, decoder: Decoder, watch: Watch) -> None:
        self.response: HttpResponse | None = None
        self._exchange = exchange
        self._decoder = decoder
        self._watch = watch
        self._restart()

    async def open(self) -> None:
        """Send the request."""
        self.response = await self._exchange.open()

    async def read(self) -> Events:
        """Return the next events; nothing when there are no more.

        :raises ResponseError: the connection broke, or what came is no answer.
        """
        decoder = self._decoder
        if decoder.answered:
            self._watch.restart(FINISHED_MS if decoder.complete else None)
        assert self.response is not None
        if decoder.ended:
            self._over = True
            await self.response.drain()
        while not self._over:
            try:
                events = await self._next(await self.response.read())
            except ResponseError as broken:
                await self._mend(broken)
                continue
            if events:
                return events
        if not decoder.answered:
            raise _no_answer(self._whole or bytes(self._parser.head))
        return []

    async def close(self) -> None:
        """Close the response."""
        if self.response is not None:
            await self.response.close()

    def _restart(self) -> None:
        self._parser = SseParser()
        self._blank = True
        self._over = False
        self._whole = b""

    async def _next(self, chunk: bytes) -> Events:
        if not chunk:
            self._over = True
            return self._parser.finish()
        if self._blank and (begin := chunk.lstrip()):
            self._blank = False
            if begin[:1] in b"{[<":
                assert self.response is not None
                self._over = True
                self._whole = begin + await self.response.read_rest(EVENT_LIMIT)
                return [] if begin[:1] == b"<" else [(b"", self._whole)]
        return self._parser.feed(chunk)

    async def _mend(self, broken: ResponseError) -> None:
        """Go on after a failure: with the answer as it is if that is whole, or with another try; else raise it."""
        if self._decoder.complete:
            self._over = True
            return
        if self._parser.count or isinstance(broken, InactivityError):
            raise broken
        await self.close()
        await self._exchange.before_retry(broken)
        self._restart()
        await self.open()


def _no_answer(received: bytes) -> ResponseError:
    if not received.strip():
        return ResponseError("The server closed the stream without sending anything", ErrorDetails(retryable=True))
    shown = page_text(received.decode("utf-8", "replace")) or excerpt(received)
    return ResponseError(f"Expected an event stream, the server sent this instead: {cut(shown)}")
