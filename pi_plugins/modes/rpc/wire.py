"""The two directions of the wire, each with a thread, so that a slow client does not stop the agent."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import Any

from pi_core import ConfigError

from .._stdout import json_line, write_all

_MAX_WAITING_LINES = 256
_HIGH_WATER = 1 << 20


class LineReader:
    """Reads lines that end with LF and nothing else, and not more of them than are being taken.

    :param descriptor: what is read.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = threading.Semaphore(_MAX_WAITING_LINES)
        # A thread that reads cannot be ended: as a daemon it ends with the process.
        threading.Thread(target=self._read, name="pi-rpc-input", daemon=True).start()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (line := await self._lines.get()) is not None:
            self._room.release()
            yield line

    def close(self) -> None:
        """End the iteration after the lines that were read."""
        self._lines.put_nowait(None)

    def _read(self) -> None:
        rest = bytearray()
        while True:
            try:
                data = os.read(self._descriptor, 1 << 16)
            except OSError:
                data = b""
            if not data:
                break
            rest += data
            if b"\n" in data:
                *lines, tail = rest.split(b"\n")
                rest = tail
                for line in lines:
                    self._room.acquire()
                    self._put(bytes(line))
        if rest.strip():
            self._put(bytes(rest))
        self._put(None)

    def _put(self, line: bytes | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
        except RuntimeError:
            return  # the loop is closed: nobody takes lines any more


class RecordWriter:
    """Writes records in the order in which they are given.

    :param descriptor: what is written.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._changed = threading.Condition()
        self._closed = False
        self._drained: list[asyncio.Future[None]] = []
        self._ended = asyncio.Event()
        self.gone = asyncio.Event()
        self.failure: ConfigError | None = None
        threading.Thread(target=self._write, name="pi-rpc-output", daemon=True).start()

    def put(self, record: Mapping[str, Any]) -> Awaitable[None] | None:
        """Take a record; what is returned, when much waits to be read, is done when there is room again."""
        data = json_line(record)
        with self._changed:
            if self.gone.is_set() or self._closed:
                return None
            self._waiting.append(data)
            self._size += len(data)
            self._changed.notify()
            if self._size < _HIGH_WATER:
                return None
            future = self._loop.create_future()
            self._drained.append(future)
            return future

    async def close(self) -> None:
        """Write what waits, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        await self._ended.wait()

    def _write(self) -> None:
        self._write_on()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(self._ended.set)

    def _write_on(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if not self._waiting:
                    return
                data = b"".join(self._waiting)
                self._waiting.clear()
            try:
                there = write_all(self._descriptor, data)
            except ConfigError as error:
                self.failure, there = error, False
            with self._changed:
                self._size -= len(data)
                drained, self._drained = self._drained, []
            try:
                self._loop.call_soon_threadsafe(self._release, drained, there)
            except RuntimeError:
                return
            if not there:
                return

    def _release(self, drained: list[asyncio.Future[None]], there: bool) -> None:
        if not there:
            self.gone.set()
            drained = drained + self._drained
        for future in drained:
            if not future.done():
                future.set_result(None)
