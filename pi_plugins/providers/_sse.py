"""Server-sent events from bytes."""

from __future__ import annotations

from typing import Final

from ._errors import ResponseError

EVENT_LIMIT: Final = 64 * 1024 * 1024
"""Longest event, in bytes; a server that sends a longer one is not sending events."""

_HEAD_LIMIT: Final = 65536
_BOM: Final = b"\xef\xbb\xbf"


class SseParser:
    """Splits a byte stream into events, however it is cut into pieces.

    Lines end with ``\\n``, ``\\r\\n`` or ``\\r`` and nothing else; they stay bytes, so that no character is ever cut.

    :ivar count: how many events there were.
    :ivar head: the first bytes, as long as there was no event: what came instead.
    """

    __slots__ = ("_after_return", "_data", "_line", "_name", "_size", "_started", "count", "head")

    def __init__(self) -> None:
        self.count = 0
        self.head = bytearray()
        self._started = False
        self._after_return = False
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._name = b""
        self._size = 0

    def feed(self, chunk: bytes) -> list[tuple[bytes, bytes]]:
        """Take the next bytes and return the events they complete, each as its name and its data.

        :raises ResponseError: an event is longer than :data:`EVENT_LIMIT`.
        """
        if not chunk:
            return []
        if not self.count and len(self.head) < _HEAD_LIMIT:
            self.head += chunk[:_HEAD_LIMIT]
        self._size += len(chunk)
        if self._after_return or b"\r" in chunk:
            chunk = self._with_newlines(chunk)
        lines = chunk.split(b"\n")
        if len(lines) == 1:
            self._line.append(chunk)
            events = []
        else:
            if self._line:
                self._line.append(lines[0])
                lines[0] = b"".join(self._line)
            self._line = [lines.pop()]
            events = self._events(lines)
        if events:
            self._size = 0
        elif self._size > EVENT_LIMIT:
            raise ResponseError(f"The server sent an event longer than {EVENT_LIMIT >> 20} MiB")
        return events

    def finish(self) -> list[tuple[bytes, bytes]]:
        """Return the last event when the server ended without the empty line that closes it."""
        line = b"".join(self._line)
        self._line = []
        return self._events([line, b""])

    def _events(self, lines: list[bytes]) -> list[tuple[bytes, bytes]]:
        events = []
        data = self._data
        if not self._started:
            self._started = True
            lines[0] = lines[0].removeprefix(_BOM)
        for line in lines:
            if not line:
                if data:
                    joined = data[0] if len(data) == 1 else b"\n".join(data)
                    if joined:
                        events.append((self._name, joined))
                    data = self._data = []
                self._name = b""
            elif line.startswith(b"data:"):
                data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif line.startswith(b"event:"):
                self._name = line[6:].strip()
        if events:
            self.count += len(events)
            self.head.clear()
        return events

    def _with_newlines(self, chunk: bytes) -> bytes:
        if self._after_return:
            chunk = chunk.removeprefix(b"\n")
        self._after_return = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
