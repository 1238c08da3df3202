"""The content blocks of a messages API response."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any, Final

from pi_core import MessageAssembler, StreamEvent

from ._anthropic_content import REDACTED
from ._json import EventJson, StringTemplate
from ._text import SurrogateJoiner, clean, clean_value

_KINDS: Final = {
    "text": "text",
    "thinking": "thinking",
    "redacted_thinking": "thinking",
    "tool_use": "toolcall",
}
_STRINGS: Final = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "input_json_delta": ("toolcall", "partial_json"),
}
"""By type of a delta: the kind of block it belongs to, and the key of its text."""


class _Block:
    __slots__ = ("content_index", "input", "joiner", "kind", "signature", "silent", "template")

    def __init__(self, kind: str, content_index: int) -> None:
        self.kind = kind
        self.content_index = content_index
        self.signature = ""
        self.input: Any = None
        self.silent = True
        self.joiner = SurrogateJoiner()
        self.template: StringTemplate | None = None


class Blocks:
    """Opens, fills and closes the blocks of one message.

    The server's indices may have gaps and count blocks that are not shown; the content indices here have none.

    :param parser: parses the events; it knows whether texts may hold halves of surrogate pairs.
    :ivar has_calls: whether there is a tool call.
    """

    def __init__(self, assembler: MessageAssembler, parser: EventJson) -> None:
        self.has_calls = False
        self._assembler = assembler
        self._parser = parser
        self._open: dict[Any, _Block] = {}
        self._seen: set[Any] = set()
        self._next = 0
        self._restarting = False
        self._recent: _Block | None = None

    @property
    def started(self) -> bool:
        """Whether there was any block."""
        return bool(self._seen)

    def restart(self, *, at_once: bool) -> None:
        """Begin anew, with the blocks so far given up: at once, or when a block begins that was there already."""
        self._restarting = True
        if at_once:
            self._give_up()

    def shortcut(self, data: bytes) -> StreamEvent | None:
        """Return the event of a delta like the latest one; ``None`` if it has to be looked at closely."""
        block = self._recent
        if block is None or block.template is None:
            return None
        text = block.template.match(_tidy(data))
        return None if text is None else self._delta_event(block, text)

    def start(self, index: Any, content: dict[str, Any]) -> Iterator[StreamEvent]:
        """Open a block; one of an unknown type is passed over."""
        index = _key(index)
        if self._restarting and index in self._seen:
            self._give_up()
        self._restarting = False
        self._seen.add(index)
        yield from self._close(index)
        kind = _KINDS.get(str(content.get("type")))
        if kind is None:
            return
        block = self._new(index, kind)
        assembler, at = self._assembler, block.content_index
        if kind == "text":
            yield assembler.text_start(at, self._valid(block, _string(content.get("text"))))
        elif content["type"] == "redacted_thinking":
            block.signature = clean(_string(content.get("data")))
            yield assembler.thinking_start(at, REDACTED, block.signature, True)
        elif kind == "thinking":
            block.signature = clean(_string(content.get("signature")))
            text = self._valid(block, _string(content.get("thinking")))
            yield assembler.thinking_start(at, text, block.signature)
        else:
            self.has_calls = True
            block.input = content.get("input")
            yield assembler.toolcall_start(at, clean(_string(content.get("id"))), clean(_string(content.get("name"))))

    def delta(self, index: Any, delta: dict[str, Any], data: bytes) -> Iterator[StreamEvent]:
        """Add to a block. Text and thinking that belong to none open one."""
        index = _key(index)
        kind = delta.get("type")
        self._restarting = False
        if kind == "signature_delta":
            block = self._open.get(index)
            if block is not None and block.kind == "thinking":
                block.signature += _string(delta.get("signature"))
            return
        if not isinstance(kind, str) or kind not in _STRINGS:
            return
        wanted, name = _STRINGS[kind]
        block = self._open.get(index)
        if block is None or block.kind != wanted:
            if wanted == "toolcall":
                return
            self._seen.add(index)
            yield from self._close(index)
            block = self._new(index, wanted)
            if wanted == "text":
                yield self._assembler.text_start(block.content_index)
            else:
                yield self._assembler.thinking_start(block.content_index, signature="")
        text = delta.get(name)
        if not isinstance(text, str):
            return
        yield self._delta_event(block, self._valid(block, text))
        self._recent = block
        if self._parser.lenient:
            block.template = None
            return
        if block.template is None:
            block.template = StringTemplate(name)
        block.template.learn(_tidy(data))

    def stop(self, index: Any) -> Iterator[StreamEvent]:
        """Close a block."""
        return self._close(_key(index))

    def finish(self) -> Iterator[StreamEvent]:
        """Close what is still open, and empty what was given up."""
        for index in list(self._open):
            yield from self._close(index)
        for at in range(self._next, self._assembler.next_index):
            yield self._assembler.text_start(at)
            yield self._assembler.text_end(at)

    def _new(self, index: Any, kind: str) -> _Block:
        block = self._open[index] = _Block(kind, self._next)
        self._next += 1
        return block

    def _give_up(self) -> None:
        self._open.clear()
        self._seen.clear()
        self._next = 0
        self._recent = None
        self._restarting = False
        self.has_calls = False

    def _close(self, index: Any) -> Iterator[StreamEvent]:
        block = self._open.pop(index, None)
        if block is None:
            return
        self._recent = None
        assembler, at = self._assembler, block.content_index
        rest = block.joiner.finish()
        if block.kind == "text":
            if rest:
                yield assembler.text_delta(at, rest)
            yield assembler.text_end(at)
        elif block.kind == "thinking":
            if rest:
                yield assembler.thinking_delta(at, rest)
            yield assembler.thinking_end(at, signature=clean(block.signature))
        else:
            yield from self._close_call(block, rest)

    def _close_call(self, block: _Block, rest: str) -> Iterator[StreamEvent]:
        assembler, at = self._assembler, block.content_index
        if block.silent and block.input:
            rest = json.dumps(clean_value(block.input), ensure_ascii=False)
        if rest:
            yield assembler.toolcall_delta(at, rest)
        fields: dict[str, Any] = {}
        event = assembler.toolcall_end(at)
        if not event.tool_call.id:
            fields["id"] = f"toolu_{uuid.uuid4().hex[:24]}"
        arguments = clean_value(event.tool_call.arguments)
        if arguments is not event.tool_call.arguments:
            fields["arguments"] = arguments
        yield assembler.toolcall_end(at, **fields) if fields else event

    def _delta_event(self, block: _Block, text: str) -> StreamEvent:
        if block.kind == "text":
            return self._assembler.text_delta(block.content_index, text)
        if block.kind == "thinking":
            return self._assembler.thinking_delta(block.content_index, text)
        block.silent = block.silent and not text
        return self._assembler.toolcall_delta(block.content_index, text)

    def _valid(self, block: _Block, piece: str) -> str:
        """Text without halves of surrogate pairs, which only lenient parsing lets through."""
        return block.joiner.feed(piece) if self._parser.lenient else piece


def _tidy(data: bytes) -> bytes:
    """An event without the blanks before its last brace, of which the API sends another number every time."""
    return data[:-1].rstrip(b" ") + b"}" if data.endswith(b" }") else data


def _key(index: Any) -> Any:
    """An index of the wire as a key, whatever it is."""
    return index if isinstance(index, int | str) else None


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
