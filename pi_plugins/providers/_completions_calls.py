"""The tool calls of a chat completions response, from their fragments."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pi_core import MessageAssembler, StreamEvent

from ._grammar import DEFAULT_ARGUMENT, FreeText
from ._text import clean, clean_value


class _Call:
    __slots__ = ("content_index", "free_text", "id", "name", "thought")

    def __init__(self, content_index: int, call_id: str, name: str) -> None:
        self.content_index = content_index
        self.id = call_id
        self.name = name
        self.thought: str | None = None
        self.free_text: FreeText | None = None


class ToolCalls:
    """Assigns each fragment to its call and makes the events.

    Servers tell calls apart by index, by id, or by neither. A new id on a used index begins a new call if a name comes
    with it; otherwise id and name are set once and later ones are ignored.

    :param valid: makes the text of a block valid.
    :param grammar_tools: the argument's name of tools that take one free text, by tool.
    """

    def __init__(
        self,
        assembler: MessageAssembler,
        valid: Callable[[int, str], str],
        grammar_tools: Mapping[str, str],
    ) -> None:
        self._assembler = assembler
        self._valid = valid
        self._grammar_tools = grammar_tools
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def take(self, fragment: Any) -> Iterator[StreamEvent]:
        """Take a fragment of a call."""
        if not isinstance(fragment, dict):
            return
        custom = fragment.get("custom")
        function = custom if isinstance(custom, dict) else fragment.get("function")
        function = function if isinstance(function, dict) else {}
        call_id, name = _text(fragment.get("id")), _text(function.get("name"))
        call = self._find(fragment.get("index"), call_id, name)
        if call is None:
            call = _Call(self._assembler.next_index, call_id, name)
            self._calls.append(call)
            if isinstance(fragment.get("index"), int):
                self._by_index[fragment["index"]] = call
            yield self._assembler.toolcall_start(call.content_index, call_id, name)
        elif (call_id and not call.id) or (name and not call.name):
            call.id, call.name = call.id or call_id, call.name or name
            self._assembler.toolcall_name(call.content_index, call.id, call.name)
        call.thought = call.thought or _thought_signature(fragment)
        if isinstance(custom, dict):
            delta = self._custom(call, function)
        else:
            delta = self._valid(call.content_index, _arguments(function.get("arguments")))
        yield self._assembler.toolcall_delta(call.content_index, delta)

    def end(self, content_index: int, rest: str) -> Iterator[StreamEvent]:
        """Close the call at a content index; ``rest`` is what is left of its text."""
        call = next(call for call in self._calls if call.content_index == content_index)
        if call.free_text is not None:
            rest += call.free_text.finish()
        if rest:
            yield self._assembler.toolcall_delta(content_index, rest)
        fields: dict[str, Any] = {} if call.thought is None else {"thought_signature": call.thought}
        if not call.id:
            fields["id"] = f"call_{uuid.uuid4().hex[:24]}"
        event = self._assembler.toolcall_end(content_index, **fields)
        arguments = clean_value(event.tool_call.arguments)
        if arguments is not event.tool_call.arguments:
            event = self._assembler.toolcall_end(content_index, arguments=arguments, **fields)
        yield event

    def _find(self, index: Any, call_id: str, name: str) -> _Call | None:
        if isinstance(index, int):
            call = self._by_index.get(index)
            if call is None or not call_id or not call.id or call.id == call_id or not name:
                return call
            return next((known for known in self._calls if known.id == call_id), None)
        if call_id:
            return next((known for known in self._calls if known.id == call_id), None)
        return None if name or not self._calls else self._calls[-1]

    def _custom(self, call: _Call, custom: dict[str, Any]) -> str:
        """Free text as the JSON text of an object with one string."""
        text = custom.get("input")
        text = self._valid(call.content_index, text) if isinstance(text, str) else ""
        if call.free_text is None:
            call.free_text = FreeText(self._grammar_tools.get(call.name, DEFAULT_ARGUMENT))
        return call.free_text.feed(text)


def _text(value: Any) -> str:
    return clean(value) if isinstance(value, str) else ""


def _arguments(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _thought_signature(fragment: dict[str, Any]) -> str | None:
    extra = fragment.get("extra_content")
    google = extra.get("google") if isinstance(extra, dict) else None
    signature = google.get("thought_signature") if isinstance(google, dict) else None
    return _text(signature) or None
