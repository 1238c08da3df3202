"""What a proxy sends: lines, and the events on them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from pi_core import DoneEvent, ErrorDetails, ErrorEvent, MessageAssembler, StopReason, StreamEvent

from ._errors import ResponseError, cut, excerpt, page_text
from ._json import EventJson
from ._sse import EVENT_LIMIT
from ._text import SurrogateJoiner, clean_value

CLOSED: Final = "Connection closed by proxy server before the response completed"
EXTRAS: Final = ("content", "responseId", "responseModel", "rawStopReason", "endTurn", "errorDetails")
"""Fields of a final event beside the original's, for what would be lost otherwise; other clients pass over them."""

_BLOCKS: Final[Mapping[str, str]] = {"text": "text", "thinking": "thinking", "toolcall": "toolCall"}
_DONE_REASONS: Final[frozenset[StopReason]] = frozenset({"stop", "length", "toolUse", "deferred"})
_HEAD_LIMIT: Final = 65536


class LineParser:
    """Splits a byte stream into the data of its events, one to a line.

    Only lines that begin with ``data: `` count, whatever stands between them.
    """

    __slots__ = ("_head", "_parts", "_size", "_started")

    def __init__(self) -> None:
        self._head = bytearray()
        self._parts: list[bytes] = []
        self._size = 0
        self._started = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes and return the data of the lines they complete.

        :raises ResponseError: a line is too long to be an event.
        """
        if not self._started and len(self._head) < _HEAD_LIMIT:
            self._head += chunk[:_HEAD_LIMIT]
        lines = chunk.split(b"\n")
        if len(lines) > 1 and self._parts:
            lines[0] = b"".join([*self._parts, lines[0]])
            self._parts, self._size = [], 0
        rest = lines.pop()
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
            if self._size > EVENT_LIMIT:
                raise ResponseError(f"The proxy sent a line longer than {EVENT_LIMIT >> 20} MiB")
        return self._data(lines)

    def finish(self) -> list[bytes]:
        """Return the data of a last line without an end."""
        line = b"".join(self._parts)
        self._parts = []
        return self._data([line])

    def instead(self) -> str:
        """Return the beginning of what came in place of events; an empty text when it looks like events."""
        head = bytes(self._head).lstrip()
        if self._started or head[:1] not in (b"{", b"[", b"<"):
            return ""
        return cut(page_text(head.decode("utf-8", "replace")) or excerpt(head))

    def _data(self, lines: list[bytes]) -> list[bytes]:
        if not self._started and lines and lines[0].startswith(b"\xef\xbb\xbf"):
            lines[0] = lines[0][3:]
        found = [data for line in lines if line.startswith(b"data: ") and (data := line[6:].strip())]
        if found and not self._started:
            self._started = True
            self._head.clear()
        return found


class ProxyDecoder:
    """Turns the events of the wire into stream events.

    :ivar final: the event that ends the response, once it came; it is not among those that :meth:`take` returns.
    """

    def __init__(self, assembler: MessageAssembler) -> None:
        self.final: DoneEvent | ErrorEvent | None = None
        self._assembler = assembler
        self._json = EventJson()
        self._kinds: dict[int, str] = {}
        self._joiners: dict[int, SurrogateJoiner] = {}
        self._started = False
        self._unknown: set[str] = set()

    def take(self, data: bytes) -> list[StreamEvent]:
        """Take one event.

        :raises ResponseError: it makes no sense.
        """
        value = self._json.parse(data)
        kind = value.get("type") if isinstance(value, dict) else None
        if not isinstance(kind, str):
            self._skip(repr(kind))
            return []
        block, _, phase = kind.partition("_")
        try:
            if block in _BLOCKS and phase in ("start", "delta", "end"):
                events = self._begin() if not self._started else []
                return events + self._update(kind, block, phase, value)
            if kind == "start":
                return [] if self._started else self._begin()
            if kind in ("done", "error"):
                events = self._begin() if kind == "done" and not self._started else []
                self._finish(kind, value)
                return events
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, fault["loc"]))
            raise ResponseError(f"Received {kind} with a wrong {where}: {fault['msg']}", _BROKEN) from error
        self._skip(kind)
        return []

    def _begin(self) -> list[StreamEvent]:
        self._started = True
        return [self._assembler.start()]

    def _skip(self, kind: str) -> None:
        if kind not in self._unknown:
            self._unknown.add(kind)
            logging.getLogger("pi.proxy").warning("the proxy sent events of the unknown type %s", kind[:100])

    def _update(self, kind: str, block: str, phase: str, value: dict[str, Any]) -> list[StreamEvent]:
        index = value.get("contentIndex")
        if phase == "start":
            return [self._start(kind, block, index, value)]
        if not isinstance(index, int) or self._kinds.get(index) != block:
            if kind == "toolcall_end":
                return []
            raise ResponseError(f"Received {kind} for non-{_BLOCKS[block]} content", _BROKEN)
        if phase == "delta":
            delta = value.get("delta")
            if not isinstance(delta, str):
                raise ResponseError(f"Received {kind} without a text", _BROKEN)
            if self._json.lenient:
                delta = self._joiners.setdefault(index, SurrogateJoiner()).feed(delta)
            return [self._delta(block, index, delta)]
        joiner = self._joiners.pop(index, None)
        rest = joiner.finish() if joiner is not None else ""
        events = [self._delta(block, index, rest)] if rest else []
        return [*events, self._end(block, index, value)]

    def _start(self, kind: str, block: str, index: Any, value: dict[str, Any]) -> StreamEvent:
        if not isinstance(index, int) or isinstance(index, bool) or index < 0:
            raise ResponseError(f"Received {kind} with the content index {index!r}", _BROKEN)
        assembler = self._assembler
        self._kinds[index] = block
        if block == "text":
            return assembler.text_start(index)
        if block == "thinking":
            return assembler.thinking_start(index, redacted=True if value.get("redacted") is True else None)
        call_id, name = (clean_value(value.get(key, "")) for key in ("id", "toolName"))
        if not isinstance(call_id, str) or not isinstance(name, str):
            raise ResponseError(f"Received {kind} with an id or a name that is no text", _BROKEN)
        return assembler.toolcall_start(index, call_id, name)

    def _delta(self, block: str, index: int, delta: str) -> StreamEvent:
        assembler = self._assembler
        if block == "text":
            return assembler.text_delta(index, delta)
        if block == "thinking":
            return assembler.thinking_delta(index, delta)
        return assembler.toolcall_delta(index, delta)

    def _end(self, block: str, index: int, value: dict[str, Any]) -> StreamEvent:
        assembler = self._assembler
        if block == "toolcall":
            call = clean_value(value.get("toolCall"))
            if not isinstance(call, dict):
                raise ResponseError("Received toolcall_end without a tool call", _BROKEN)
            return assembler.toolcall_end(index, **{key: call[key] for key in call if key not in ("self", "index")})
        signature = clean_value(value.get("contentSignature"))
        if signature is not None and not isinstance(signature, str):
            raise ResponseError(f"Received {block}_end with a signature that is no text", _BROKEN)
        if block == "text":
            return assembler.text_end(index, signature=signature)
        return assembler.thinking_end(index, signature=signature)

    def _finish(self, kind: str, value: dict[str, Any]) -> None:
        value = clean_value(value)
        given = ("usage", "providerThinkingLevel", *EXTRAS)
        fields = {key: value[key] for key in given if value.get(key) is not None}
        reason = value.get("reason")
        if kind == "done":
            if not isinstance(reason, str) or reason not in _DONE_REASONS:
                raise ResponseError(f"Received done with the reason {reason!r}", _BROKEN)
            self.final = DoneEvent(self._assembler.message(reason, **fields))
            return
        text = value.get("errorMessage")
        if isinstance(text, str) and text:
            fields["error_message"] = text
        elif reason != "aborted":
            fields["error_message"] = "The proxy reported an error and did not say which"
        self.final = ErrorEvent(self._assembler.message("aborted" if reason == "aborted" else "error", **fields))


_BROKEN: Final = ErrorDetails(retryable=False)
