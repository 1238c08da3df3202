"""How a run is followed from another process: what it says while it runs, and how that is read.

A run feeds the stream only once somebody wants to follow it. The first entry of each process that has the run is the
transcript so far, so a reader that joins late, or after a takeover, misses no message and prints none twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from typing import Final

from dbos import DBOS

from pi_core import AbortSignal, AgentEvent, AgentMessage, MessageUpdateEvent

from ._records import Json

STREAM: Final = "pi.events"
"""Name of the engine's stream with the events of a run."""

_FLUSH_SECONDS: Final = 0.1


class Feed:
    """Writes the events of a run to the engine's stream, while a step runs and at most ten times a second.

    Nothing is written of what is only played again: that is in the transcript which the stream begins with.

    :param transcript: returns the messages so far.
    """

    def __init__(self, transcript: Callable[[], Iterable[AgentMessage]]) -> None:
        self._transcript = transcript
        self._waiting: list[Json] = []
        self._writing = asyncio.Lock()
        self._steps: list[Context] = []
        self._writer: asyncio.Task[None] | None = None
        self._live = False
        self._wanted = False

    def want(self) -> None:
        """Feed the stream from now on, or from when the run is live."""
        if not self._wanted:
            self._wanted = True
            self._begin()

    def go_live(self) -> None:
        """Take note that from now on the run does what was not done before."""
        if not self._live:
            self._live = True
            self._begin()

    def _begin(self) -> None:
        if self._wanted and self._live:
            self._waiting.append({"transcript": [message.to_json() for message in self._transcript()]})
            self._start()

    def take(self, event: AgentEvent, signal: AbortSignal) -> None:
        """Take an event of the agent."""
        if self._wanted and self._live:
            data = event.to_json()
            if isinstance(event, MessageUpdateEvent):
                del data["message"]  # what has arrived so far, again with every piece
            self._waiting.append({"event": data})

    @asynccontextmanager
    async def during_step(self) -> AsyncIterator[None]:
        """Write while a step runs; the engine takes entries from within steps."""
        context = copy_context()
        self._steps.append(context)
        self._start()
        try:
            yield
        finally:
            self._steps.remove(context)
            writer = self._writer
            if writer is not None and not self._steps:
                self._writer = None
                writer.cancel()
                await asyncio.wait([writer])
            await self._write()

    def _start(self) -> None:
        """Begin to write, in the context of a step that runs."""
        if self._wanted and self._writer is None and self._steps:
            self._writer = asyncio.get_running_loop().create_task(self._write_on(), context=self._steps[-1])

    async def _write_on(self) -> None:
        while True:
            await asyncio.sleep(_FLUSH_SECONDS)
            await asyncio.shield(self._write())

    async def _write(self) -> None:
        if not self._waiting:
            return
        async with self._writing:
            waiting, self._waiting = self._waiting, []
            if waiting:
                await DBOS.write_stream_async(STREAM, waiting)


class Reader:
    """Turns the entries of the stream into events, each message once."""

    def __init__(self) -> None:
        self.messages = 0

    def events(self, entries: Iterable[Json]) -> Iterator[Json]:
        """Return the events of some entries that are new."""
        for entry in entries:
            if "transcript" in entry:
                yield from self.rest(entry["transcript"])
            else:
                if entry["event"]["type"] == "message_end":
                    self.messages += 1
                yield entry["event"]

    def rest(self, transcript: list[Json]) -> Iterator[Json]:
        """Return the ends of the messages of a transcript that were not there yet."""
        for message in transcript[self.messages :]:
            self.messages += 1
            yield {"type": "message_end", "message": message}
