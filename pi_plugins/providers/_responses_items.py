"""The output items of a responses API answer: how each one is found again, grows and is closed."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pi_core import MessageAssembler, StreamEvent, parse_arguments

from ._errors import compact
from ._grammar import DEFAULT_ARGUMENT, FreeText
from ._responses_input import text_signature
from ._text import SurrogateJoiner, clean, clean_value

_KINDS: Final[Mapping[str, str]] = {
    "reasoning": "thinking",
    "message": "text",
    "function_call": "call",
    "custom_tool_call": "call",
}


class _Slot:
    """One item.

    :ivar given: the texts of its parts that the server called final, by their number.
    :ivar pieces: what the deltas of a call have brought.
    :ivar whole: the text of a call that the server called final, when the deltas say something else.
    :ivar early: the text of a call that came with its opening.
    :ivar final: the text that was shown at the end of the block.
    """

    __slots__ = (
        "early",
        "final",
        "free_text",
        "given",
        "id",
        "index",
        "item",
        "joiner",
        "kind",
        "name",
        "open",
        "pieces",
        "whole",
    )

    def __init__(self, index: int, kind: str, item_id: str, name: str = "") -> None:
        self.index = index
        self.kind = kind
        self.id = item_id
        self.name = name
        self.open = True
        self.given: dict[Any, str] = {}
        self.pieces: list[str] = []
        self.whole: str | None = None
        self.early = ""
        self.free_text: FreeText | None = None
        self.joiner: SurrogateJoiner | None = None
        self.item: dict[str, Any] = {}
        self.final: str | None = None


class OutputItems:
    """Makes the events of items.

    Servers tell items apart by their index, by their id, or by neither. Where there is an index it counts alone: ids
    may change from event to event.

    :param grammar_tools: for tools whose argument is one free text: the name of that argument, by tool.
    :ivar hosted: the items that tools of the server left, each with how many blocks precede it.
    """

    def __init__(self, assembler: MessageAssembler, grammar_tools: Mapping[str, str]) -> None:
        self.hosted: list[dict[str, Any]] = []
        self._assembler = assembler
        self._grammar_tools = grammar_tools
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}
        self._by_id: dict[str, _Slot] = {}

    def __bool__(self) -> bool:
        return bool(self._slots)

    @property
    def has_calls(self) -> bool:
        """Whether there was a tool call."""
        return any(slot.kind == "call" for slot in self._slots)

    @property
    def unfinished_call(self) -> str | None:
        """Name and id of a call whose end never came."""
        return next((f"{slot.name} ({slot.id})" for slot in self._slots if slot.kind == "call" and slot.open), None)

    # --- the life of an item ---

    def find(self, event: Mapping[str, Any], kind: str) -> _Slot | None:
        """Return the open item that an event is about."""
        index = event.get("output_index")
        if isinstance(index, int):
            slot = self._by_index.get(index)
        else:
            slot = self._by_id.get(_text(event.get("item_id")))
            if slot is None and not event.get("item_id"):
                slot = next((slot for slot in reversed(self._slots) if slot.kind == kind and slot.open), None)
        return slot if slot is not None and slot.open and slot.kind == kind else None

    def begin(self, event: Mapping[str, Any], item: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Open an item, unless it is open already."""
        kind = _KINDS.get(str(item.get("type")))
        known = self._known(event, item)
        if kind is None or (known is not None and known.open and known.kind == kind):
            return
        assembler = self._assembler
        index = assembler.next_index
        item_id = _text(item.get("id"))
        if kind == "call":
            slot = _Slot(index, kind, _call_id(item), _text(item.get("name")))
            slot.early = _arguments(item)
            if item.get("type") == "custom_tool_call":
                slot.free_text = FreeText(self._grammar_tools.get(slot.name, DEFAULT_ARGUMENT))
            yield assembler.toolcall_start(index, slot.id, slot.name)
        else:
            slot = _Slot(index, kind, item_id)
            yield assembler.thinking_start(index) if kind == "thinking" else assembler.text_start(index)
        self._slots.append(slot)
        position = event.get("output_index")
        if isinstance(position, int):
            self._by_index[position] = slot
        if item_id:
            self._by_id[item_id] = slot

    def delta(self, slot: _Slot, piece: str, *, lenient: bool) -> Iterator[StreamEvent]:
        """Add to an item.

        :param lenient: whether the piece may hold halves of surrogate pairs.
        """
        if lenient:
            slot.joiner = slot.joiner or SurrogateJoiner()
            piece = slot.joiner.feed(piece)
        if slot.kind == "text":
            yield self._assembler.text_delta(slot.index, piece)
        elif slot.kind == "thinking":
            yield self._assembler.thinking_delta(slot.index, piece)
        else:
            slot.pieces.append(piece)
            if slot.free_text is not None:
                piece = slot.free_text.feed(piece)
            yield self._assembler.toolcall_delta(slot.index, piece)

    def give(self, slot: _Slot, part: Any, text: str) -> Iterator[StreamEvent]:
        """Take the text of a part, or of a call's arguments, that the server calls final."""
        text = clean(text)
        if slot.kind != "call":
            slot.given[part] = text
            return
        known = "".join(slot.pieces)
        if text.startswith(known):
            if text != known:
                yield from self.delta(slot, text[len(known) :], lenient=False)
        else:
            slot.whole = text

    def end(self, event: Mapping[str, Any], item: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Close an item with what the server says it is, opening it first if that was left out."""
        kind = _KINDS.get(str(item.get("type")))
        if kind is None:
            self._keep(item)
            return
        slot = self._known(event, item)
        if slot is None or slot.kind != kind or not (slot.open or _same_item(slot.item, item)):
            yield from self.begin(event, item)
            slot = self._slots[-1]
        if slot.open:
            slot.item = dict(item)
            yield from self._close(slot)

    def end_rest(self) -> Iterator[StreamEvent]:
        """Close what is open: the answer is over."""
        for slot in self._slots:
            if slot.open:
                yield from self._close(slot)

    def end_with(self, output: list[Any]) -> Iterator[StreamEvent]:
        """Take the items of the whole answer: all of them if nothing has arrived, else only what is still missing."""
        nothing = not self._slots and not self.hosted
        for position, item in enumerate(output):
            if not isinstance(item, dict):
                continue
            event = {"output_index": position}
            slot = self._known(event, item)
            if nothing or (slot is not None and slot.open and slot.kind == _KINDS.get(str(item.get("type")))):
                yield from self.end(event, item)
            elif slot is not None and slot.kind == "thinking" and item.get("type") == "reasoning":
                self._add_encrypted(slot, item.get("encrypted_content"))

    # --- closing ---

    def _known(self, event: Mapping[str, Any], item: Mapping[str, Any]) -> _Slot | None:
        index = event.get("output_index")
        slot = self._by_index.get(index) if isinstance(index, int) else None
        return slot if slot is not None else self._by_id.get(_text(item.get("id")))

    def _close(self, slot: _Slot) -> Iterator[StreamEvent]:
        slot.open = False
        item = slot.item
        final = None if slot.kind == "call" else _content(slot, item)
        rest = slot.joiner.finish() if slot.joiner is not None else ""
        if rest and final is None:
            yield from self.delta(slot, rest, lenient=False)
        if slot.kind == "text":
            signature = text_signature(_text(item.get("id")) or slot.id, item.get("phase"))
            yield self._assembler.text_end(slot.index, final, signature)
        elif slot.kind == "thinking":
            signature = clean(compact(item)) if item else None
            ended = self._assembler.thinking_end(slot.index, final, signature)
            slot.final = ended.content
            yield ended
        else:
            yield from self._close_call(slot, item)

    def _close_call(self, slot: _Slot, item: Mapping[str, Any]) -> Iterator[StreamEvent]:
        assembler = self._assembler
        known = "".join(slot.pieces)
        final = _arguments(item) or slot.whole or known or slot.early
        fields: dict[str, Any] = {}
        namespace = item.get("namespace")
        if isinstance(namespace, str) and namespace:
            fields["namespace"] = clean(namespace)
        if slot.free_text is not None:
            if known and final.startswith(known):
                if final != known:
                    yield from self.delta(slot, final[len(known) :], lenient=False)
                yield assembler.toolcall_delta(slot.index, slot.free_text.finish())
            else:
                fields["arguments"] = {self._grammar_tools.get(slot.name, DEFAULT_ARGUMENT): final}
        elif final != known:
            fields["arguments"], fields["arguments_error"] = parse_arguments(final)
        event = assembler.toolcall_end(slot.index, **fields)
        arguments = clean_value(event.tool_call.arguments)
        if arguments is not event.tool_call.arguments:
            event = assembler.toolcall_end(slot.index, **{**fields, "arguments": arguments})
        yield event

    def _add_encrypted(self, slot: _Slot, encrypted: Any) -> None:
        """Complete reasoning that was closed without its encrypted content; the block's end was told already."""
        if isinstance(encrypted, str) and encrypted and slot.item and not slot.item.get("encrypted_content"):
            slot.item["encrypted_content"] = encrypted
            self._assembler.thinking_end(slot.index, slot.final, clean(compact(slot.item)))

    def _keep(self, item: Mapping[str, Any]) -> None:
        if isinstance(item.get("type"), str):
            self.hosted.append({"before": self._assembler.next_index, "item": clean_value(dict(item))})


def _content(slot: _Slot, item: Mapping[str, Any]) -> str | None:
    """The text of a message or of reasoning as its item has it, or as the ends of its parts had it."""
    if slot.kind == "text":
        texts = _texts(item.get("content"), ("text", "refusal"))
        return "".join(texts) or "".join(slot.given.values()) or None
    texts = _texts(item.get("summary"), ("text",)) or _texts(item.get("content"), ("text",))
    texts = [text for text in texts or slot.given.values() if text]
    return "\n\n".join(texts) if texts else None


def _same_item(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether an item came twice, perhaps under another id."""
    if one.get("id") == other.get("id"):
        return True
    return {**one, "id": None} == {**other, "id": None}


def _texts(parts: Any, names: tuple[str, ...]) -> list[str]:
    found = []
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict):
            found += [clean(part[name]) for name in names if isinstance(part.get(name), str)]
    return found


def _arguments(item: Mapping[str, Any]) -> str:
    value = item.get("input" if item.get("type") == "custom_tool_call" else "arguments")
    if isinstance(value, str):
        return clean(value)
    return "" if value is None else clean(json.dumps(value, ensure_ascii=False))


def _call_id(item: Mapping[str, Any]) -> str:
    call_id, item_id = _text(item.get("call_id")), _text(item.get("id"))
    if not call_id:
        return item_id or f"call_{uuid.uuid4().hex[:24]}"
    return f"{call_id}|{item_id}" if item_id else call_id


def _text(value: Any) -> str:
    return clean(value) if isinstance(value, str) else ""
