"""The message of a response in the making: put together from its events, at constant cost per delta.

The assembler keeps each block's text in one growing buffer. An update event carries the assembler, a version and a
length; the message as of that event is put together from these only when somebody reads it, so an event costs the same
whether the message is ten or a hundred thousand characters long.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from io import StringIO
from operator import itemgetter
from typing import Any, TypeAlias, cast

from .events import (
    DoneEvent,
    ErrorEvent,
    StartEvent,
    TextDeltaEvent,
    TextEndEvent,
    TextStartEvent,
    ThinkingDeltaEvent,
    ThinkingEndEvent,
    ThinkingStartEvent,
    ToolCallDeltaEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
    UpdateEvent,
)
from .messages import (
    AssistantContent,
    AssistantMessage,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    Usage,
    now_ms,
)
from .partial_json import ArgumentsParser

Frame: TypeAlias = "tuple[MessageAssembler, int] | tuple[Replay, UpdateEvent | None]"
"""Where an event stands: an assembler at a version, between two of which a block has only grown; or, as long as nobody
has read it, behind another event made by hand. Frames point only backwards, so that nothing waits for the garbage
collector."""


_NO_USAGE = Usage()


class _Block:
    """One block in the making: its growing text, and its past states as (version, length, fields)."""

    __slots__ = ("arguments", "feed", "kind", "length", "previous", "states", "text")

    def __init__(self, kind: str, version: int, fields: dict[str, Any], previous: _Block | None, text: str) -> None:
        self.kind = kind
        self.previous = previous
        self.length = len(text)
        self.states = [(version, self.length, fields)]
        if kind == "toolcall":
            self.arguments = ArgumentsParser()
            self.feed = self.arguments.feed
        else:
            self.text = StringIO()
            self.text.write(text)

    def set(self, version: int, fields: dict[str, Any]) -> None:
        self.states.append((version, self.length, fields))

    @property
    def fields(self) -> dict[str, Any]:
        return self.states[-1][2]

    def view(self, version: int, length: int | None) -> AssistantContent | None:
        """The block as of a version, ``length`` characters long if it grew just then; ``None`` if it was not there."""
        block: _Block | None = self
        while block is not None and block.states[0][0] > version:
            block = block.previous
        if block is None:
            return None
        _, past, fields = block.states[bisect_right(block.states, version, key=itemgetter(0)) - 1]
        return block.build(past if length is None else length, fields)

    def build(self, length: int, fields: dict[str, Any]) -> AssistantContent:
        final = fields.get("final")
        if self.kind == "text":
            text = self.text.getvalue()[:length] if final is None else final
            return TextContent(text=text, text_signature=fields.get("signature"))
        if self.kind == "thinking":
            text = self.text.getvalue()[:length] if final is None else final
            return ThinkingContent(
                thinking=text, thinking_signature=fields.get("signature"), redacted=fields.get("redacted")
            )
        if final is not None:
            return cast("ToolCallContent", final)
        return ToolCallContent(id=fields["id"], name=fields["name"], arguments=self.arguments.value_at(length))


class MessageAssembler:
    """Builds the message of one response from its events, at constant cost per delta.

    A provider makes its events with the methods below and yields what they return; events made by hand are taken in
    with :meth:`apply`. :meth:`done` and :meth:`error` make the terminal event with the whole message.

    :param api: the wire protocol.
    :param provider: who serves the model.
    :param model: the model id.
    :param timestamp: when the request started, Unix milliseconds; now by default.
    """

    def __init__(self, api: str, provider: str, model: str, *, timestamp: int | None = None) -> None:
        self._identity = {"api": api, "provider": provider, "model": model}
        self._timestamp = now_ms() if timestamp is None else timestamp
        self._extras: list[dict[str, Any]] = [{}]
        self._extra_versions = [0]
        self._blocks: dict[int, _Block] = {}
        self._order: list[int] = []
        self._version = 0
        self._active = -1
        self._cached: tuple[int, int, int, AssistantMessage] | None = None

    # --- making events ---

    @property
    def next_index(self) -> int:
        """The content index a new block would get."""
        return self._order[-1] + 1 if self._order else 0

    def update(self, **fields: Any) -> None:
        """Set message fields known before the end (``response_id``, ``usage`` ...), seen by later events."""
        self._extras.append({**self._extras[-1], **fields})
        self._extra_versions.append(self._next_version())

    def start(self) -> StartEvent:
        """Begin the response."""
        return StartEvent(self.message("pending") if self._order else None, (self, self._version))

    def text_start(self, index: int, text: str = "") -> TextStartEvent:
        """Open a text block, which may already hold text."""
        self._open(index, "text", {}, text)
        return TextStartEvent(index, text, (self, self._version), len(text))

    def text_delta(self, index: int, delta: str) -> TextDeltaEvent:
        """Add text to a block."""
        block = self._blocks[index]
        if index != self._active:
            self._activate(index)
        block.text.write(delta)
        block.length = length = block.length + len(delta)
        return TextDeltaEvent(index, delta, (self, self._version), length)

    def text_end(self, index: int, content: str | None = None, signature: str | None = None) -> TextEndEvent:
        """Close a text block; ``content`` replaces what the deltas gave, ``None`` as signature keeps it."""
        block = self._end_text(index, content, signature)
        fields = block.fields
        return TextEndEvent(index, fields["final"], fields.get("signature"), (self, self._version), block.length)

    def thinking_start(
        self, index: int, thinking: str = "", signature: str | None = None, redacted: bool | None = None
    ) -> ThinkingStartEvent:
        """Open a thinking block."""
        self._open(index, "thinking", {"signature": signature, "redacted": redacted}, thinking)
        return ThinkingStartEvent(index, thinking, signature, redacted, (self, self._version), len(thinking))

    def thinking_delta(self, index: int, delta: str) -> ThinkingDeltaEvent:
        """Add thinking to a block."""
        block = self._blocks[index]
        if index != self._active:
            self._activate(index)
        block.text.write(delta)
        block.length = length = block.length + len(delta)
        return ThinkingDeltaEvent(index, delta, (self, self._version), length)

    def thinking_end(self, index: int, content: str | None = None, signature: str | None = None) -> ThinkingEndEvent:
        """Close a thinking block; ``content`` replaces what the deltas gave, ``None`` as signature keeps it."""
        block = self._end_text(index, content, signature)
        fields = block.fields
        return ThinkingEndEvent(index, fields["final"], fields.get("signature"), (self, self._version), block.length)

    def sign(self, index: int, signature: str) -> None:
        """Set the signature of an open text or thinking block, seen by later events."""
        self._change(index, {**self._blocks[index].fields, "signature": signature})

    def toolcall_start(self, index: int, id: str = "", name: str = "") -> ToolCallStartEvent:  # noqa: A002
        """Open a tool call."""
        self._open(index, "toolcall", {"id": id, "name": name}, "")
        return ToolCallStartEvent(index, id, name, (self, self._version), 0)

    def toolcall_name(self, index: int, id: str, name: str) -> None:  # noqa: A002
        """Set id and name of an open call that came without them."""
        self._change(index, {**self._blocks[index].fields, "id": id, "name": name})

    def toolcall_delta(self, index: int, delta: str) -> ToolCallDeltaEvent:
        """Add to the JSON text of a call's arguments."""
        block = self._blocks[index]
        if index != self._active:
            self._activate(index)
        block.feed(delta)
        block.length = length = block.length + len(delta)
        return ToolCallDeltaEvent(index, delta, (self, self._version), length)

    def toolcall_end(self, index: int, **fields: Any) -> ToolCallEndEvent:
        """Close a call: its arguments are the final parse of the text unless ``fields`` has them."""
        block = self._blocks[index]
        if "arguments" not in fields:
            fields["arguments"], fields["arguments_error"] = block.arguments.finish()
        known = block.fields
        call = ToolCallContent(**{"id": known["id"], "name": known["name"], **fields})
        self._end_call(index, call)
        return ToolCallEndEvent(index, call, (self, self._version), block.length)

    def done(self, reason: StopReason, **fields: Any) -> DoneEvent:
        """End the response; ``fields`` are further fields of the final message."""
        return DoneEvent(self.message(reason, **fields))

    def error(self, message: str, *, aborted: bool = False, **fields: Any) -> ErrorEvent:
        """End the response as failed or aborted; what has arrived stays in the message."""
        return ErrorEvent(self.message("aborted" if aborted else "error", error_message=message, **fields))

    # --- taking in events ---

    def apply(self, event: UpdateEvent) -> UpdateEvent:
        """Take in an event made by hand, so that its ``partial`` can be read; returns the same event.

        :raises ValueError: a delta or an end for a block of another type.
        """
        index = event.content_index
        match event:
            case TextDeltaEvent(delta=delta):
                self._grow(self._block(event, "text"), index, delta)
            case ThinkingDeltaEvent(delta=delta):
                self._grow(self._block(event, "thinking"), index, delta)
            case ToolCallDeltaEvent(delta=delta):
                self._grow(self._block(event, "toolcall"), index, delta)
            case TextStartEvent(text=text):
                self._open(index, "text", {}, text)
            case ThinkingStartEvent():
                fields = {"signature": event.signature, "redacted": event.redacted}
                self._open(index, "thinking", fields, event.thinking)
            case ToolCallStartEvent():
                self._open(index, "toolcall", {"id": event.id, "name": event.name}, "")
            case TextEndEvent() | ThinkingEndEvent():
                self._block(event, "text" if isinstance(event, TextEndEvent) else "thinking")
                self._end_text(index, event.content, event.signature)
            case ToolCallEndEvent(tool_call=call):
                self._block(event, "toolcall")
                self._end_call(index, call)
            case _:
                raise ValueError(f"unknown stream event {event.type!r}")
        event.frame, event.length = (self, self._version), self._blocks[index].length
        return event

    def begin(self, partial: AssistantMessage) -> None:
        """Take over what the message of a start event that was made elsewhere already holds."""
        own = {"role", "content", "stop_reason", "usage"}
        given = {**partial.model_dump(exclude_none=True, by_alias=False, exclude=own), "usage": partial.usage}
        self._timestamp = given.pop("timestamp")
        self._identity = {name: given.pop(name) for name in ("api", "provider", "model")}
        self.update(**given)
        for index, block in enumerate(partial.content):
            if isinstance(block, TextContent):
                self._open(index, "text", {"signature": block.text_signature}, block.text)
            elif isinstance(block, ThinkingContent):
                fields = {"signature": block.thinking_signature, "redacted": block.redacted}
                self._open(index, "thinking", fields, block.thinking)
            elif isinstance(block, ToolCallContent):
                self._open(index, "toolcall", {"id": block.id, "name": block.name, "final": block}, "")

    # --- reading ---

    @property
    def usage(self) -> Usage:
        """The latest usage that was reported; zero before the first one."""
        usage: Usage = self._extras[-1].get("usage", _NO_USAGE)
        return usage

    def message(self, reason: StopReason = "pending", **fields: Any) -> AssistantMessage:
        """The message with everything that has arrived."""
        blocks = [self._blocks[index] for index in self._order]
        content = [block.build(block.length, block.fields) for block in blocks]
        return self._message(content, reason, {**self._extras[-1], **fields})

    def view(self, event: UpdateEvent) -> AssistantMessage:
        """The message as of an event that this assembler made or took in."""
        assert event.frame is not None
        return self.at(cast("int", event.frame[1]), event.content_index, event.length)

    def at(self, version: int, active: int, length: int) -> AssistantMessage:
        """The message at a version, when the block at index ``active`` was ``length`` characters long."""
        cached = self._cached
        if cached is not None and cached[:3] == (version, active, length):
            return cached[3]
        views = (self._blocks[index].view(version, length if index == active else None) for index in self._order)
        content = [block for block in views if block is not None]
        extra = self._extras[bisect_right(self._extra_versions, version) - 1]
        message = self._message(content, "pending", extra)
        self._cached = (version, active, length, message)
        return message

    def _message(self, content: list[AssistantContent], reason: StopReason, fields: dict[str, Any]) -> AssistantMessage:
        return AssistantMessage(
            **{"content": content, "stop_reason": reason, "timestamp": self._timestamp, **self._identity, **fields}
        )

    # --- blocks ---

    def _block(self, event: UpdateEvent, kind: str) -> _Block:
        block = self._blocks.get(event.content_index)
        if block is None or block.kind != kind:
            raise _misplaced(event, None if block is None else block.kind)
        return block

    def _next_version(self) -> int:
        self._version += 1
        return self._version

    def _open(self, index: int, kind: str, fields: dict[str, Any], text: str) -> None:
        version = self._activate(index)
        known = self._blocks.get(index)
        if known is None:
            insort(self._order, index)
        self._blocks[index] = _Block(kind, version, fields, known, text)

    def _end_text(self, index: int, content: str | None, signature: str | None) -> _Block:
        block = self._blocks[index]
        known = block.fields
        final = block.text.getvalue() if content is None else content
        self._change(
            index, {**known, "final": final, "signature": known.get("signature") if signature is None else signature}
        )
        return block

    def _end_call(self, index: int, call: ToolCallContent) -> None:
        self._change(index, {"id": call.id, "name": call.name, "final": call})

    def _change(self, index: int, fields: dict[str, Any]) -> None:
        self._blocks[index].set(self._activate(index), fields)

    def _activate(self, index: int) -> int:
        """Begin a version in which the block at this index may grow; the one that could so far keeps its length."""
        version = self._next_version()
        if self._active not in (-1, index):
            block = self._blocks[self._active]
            block.set(version, block.fields)
        self._active = index
        return version

    def _grow(self, block: _Block, index: int, delta: str) -> None:
        if index != self._active:
            self._activate(index)
        if block.kind == "toolcall":
            block.feed(delta)
        else:
            block.text.write(delta)
        block.length += len(delta)


class Replay:
    """Takes in events made by hand, and puts them together when the message as of one of them is read.

    :param assembler: takes the events in then.
    :param partial: the message of the start event; its blocks may go on.
    """

    __slots__ = ("_assembler", "_kinds", "_last", "_partial", "usage")

    def __init__(self, assembler: MessageAssembler, partial: AssistantMessage) -> None:
        self._assembler = assembler
        self.usage = partial.usage
        self._partial: AssistantMessage | None = partial
        self._last: UpdateEvent | None = None
        self._kinds = {index: _KINDS.get(block.type, "") for index, block in enumerate(partial.content)}

    def add(self, event: UpdateEvent) -> None:
        """Take in the next event.

        :raises ValueError: a delta or an end for a block of another type.
        """
        index, (kind, _, phase) = event.content_index, event.type.partition("_")
        if phase == "start":
            self._kinds[index] = kind
        elif self._kinds.get(index) != kind:
            raise _misplaced(event, self._kinds.get(index))
        event.frame = (self, self._last)
        self._last = event

    def view(self, event: UpdateEvent) -> AssistantMessage:
        """The message as of an event; those before it are taken in first."""
        self._apply(event)
        return event.partial

    def close(self) -> None:
        """Take in nothing more, and let go of the last event; all can still be read."""
        self._last = None

    def assembler(self) -> MessageAssembler:
        """The assembler, with all events taken in."""
        self._apply(self._last)
        return self._assembler

    def _apply(self, event: UpdateEvent | None) -> None:
        if self._partial is not None:
            self._assembler.begin(self._partial)
            self._partial = None
        waiting = []
        while event is not None and event.frame is not None and event.frame[0] is self:
            waiting.append(event)
            event = event.frame[1]
        for found in reversed(waiting):
            self._assembler.apply(found)


_KINDS = {"text": "text", "thinking": "thinking", "toolCall": "toolcall"}


def _misplaced(event: UpdateEvent, kind: str | None) -> ValueError:
    found = "no block" if kind is None else f"a {kind} block"
    return ValueError(f"{event.type} for content index {event.content_index}, which is {found}")
