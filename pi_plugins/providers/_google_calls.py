"""The tool calls of a Gemini response: whole ones, and those whose arguments come value by value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

from pi_core import MessageAssembler, StreamEvent, now_ms

from ._errors import compact
from ._text import clean, clean_value

_STEP: Final = re.compile(
    r"""\.([^.\[\]]+) | \[(\d{1,9})\] | \['((?:[^'\\]|\\.)*)'\] | \["((?:[^"\\]|\\.)*)"\]""", re.VERBOSE
)
_VALUES: Final = ("stringValue", "numberValue", "boolValue")
_INCOMPLETE: Final = "The arguments did not arrive whole"
_numbers: Final = count(1)


class _PathError(ValueError):
    pass


class _Arguments:
    """Arguments that come as values with their places: ``$.recipe.steps[0]``.

    A string may come in pieces.
    """

    def __init__(self) -> None:
        self.error: str | None = None
        self._root: dict[str, Any] = {}
        self._text_at: str | None = None
        self._text: list[str] = []

    def take(self, fragment: dict[str, Any]) -> None:
        """Take a fragment of the call."""
        whole = fragment.get("args")
        if isinstance(whole, dict):
            self._root.update(whole)
        pieces = fragment.get("partialArgs")
        for piece in pieces if isinstance(pieces, list) else ():
            if isinstance(piece, dict) and self.error is None:
                try:
                    self._piece(piece)
                except _PathError:
                    self.error = f"There is no place {piece.get('jsonPath')!r} in the arguments"

    def finish(self) -> dict[str, Any]:
        """Return the arguments, when no more comes."""
        try:
            self._flush()
        except _PathError:
            self.error = f"There is no place {self._text_at!r} in the arguments"
        return self._root

    def _piece(self, piece: dict[str, Any]) -> None:
        path = piece.get("jsonPath")
        if not isinstance(path, str):
            raise _PathError
        value = next((piece[name] for name in _VALUES if name in piece), None)
        if path != self._text_at or not isinstance(value, str):
            self._flush()
        if not isinstance(value, str):
            self._put(path, value)
            return
        self._text_at = path
        self._text.append(value)
        if not piece.get("willContinue"):
            self._flush()

    def _flush(self) -> None:
        if self._text_at is not None:
            path, text = self._text_at, "".join(self._text)
            self._put(path, text)
            self._text_at = None
            self._text.clear()

    def _put(self, path: str, value: Any) -> None:
        steps = _steps(path)
        node: Any = self._root
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            if isinstance(step, int):
                if not isinstance(node, list) or step > len(node):
                    raise _PathError
                if step == len(node):
                    node.append(_container(following))
            elif not isinstance(node, dict):
                raise _PathError
            elif step not in node:
                node[step] = _container(following)
            if following is None:
                node[step] = value
            else:
                node = node[step]


class _StreamedCall:
    def __init__(self, content_index: int, call_id: str, name: str, signature: str | None) -> None:
        self.content_index = content_index
        self.id = call_id
        self.name = name
        self.signature = signature
        self.arguments = _Arguments()


class ToolCalls:
    """Makes the events of tool calls.

    A call without an id, or with one that another call of the message has, gets one made up.
    """

    def __init__(self, assembler: MessageAssembler) -> None:
        self._assembler = assembler
        self._ids: set[str] = set()
        self._open: _StreamedCall | None = None
        self._any = False

    def __bool__(self) -> bool:
        return self._any

    def take(self, call: dict[str, Any], signature: str | None) -> Iterator[StreamEvent]:
        """Take a call, or a fragment of the one that is not whole yet."""
        name, wire_id = _text(call.get("name")), _text(call.get("id"))
        streamed = self._open
        if streamed is not None and not _continues(streamed, call, name, wire_id):
            yield self._close(whole=False)
            streamed = None
        more = call.get("willContinue") is True
        if streamed is None:
            if not name and not wire_id and "args" not in call and "partialArgs" not in call and not more:
                return
            self._any = True
            call_id = self._id(wire_id, name)
            if not more and "partialArgs" not in call:
                yield from self._whole(call_id, name, call.get("args"), signature)
                return
            self._open = streamed = _StreamedCall(self._assembler.next_index, call_id, name, signature)
            yield self._assembler.toolcall_start(streamed.content_index, call_id, name)
        streamed.signature = signature or streamed.signature
        streamed.arguments.take(call)
        if not more:
            yield from self._finish(streamed)

    def finish(self) -> Iterator[StreamEvent]:
        """Close a call whose end did not come."""
        if self._open is not None:
            yield self._close(whole=False)

    def _whole(self, call_id: str, name: str, arguments: Any, signature: str | None) -> Iterator[StreamEvent]:
        assembler, index = self._assembler, self._assembler.next_index
        start = assembler.toolcall_start(index, call_id, name)
        delta = assembler.toolcall_delta(index, _json(arguments))
        end = assembler.toolcall_end(index, thought_signature=signature)
        # The call arrived in one piece, so each of its events shows all of it.
        start.frame = delta.frame = end.frame
        yield from (start, delta, end)

    def _finish(self, streamed: _StreamedCall) -> Iterator[StreamEvent]:
        arguments = streamed.arguments.finish()
        if streamed.arguments.error is None:
            yield self._assembler.toolcall_delta(streamed.content_index, _json(arguments))
        yield self._close(whole=True)

    def _close(self, *, whole: bool) -> StreamEvent:
        streamed, self._open = self._open, None
        assert streamed is not None
        fields: dict[str, Any] = {"thought_signature": streamed.signature}
        error = streamed.arguments.error if whole else _INCOMPLETE
        if error is not None:
            fields |= {"arguments": {}, "arguments_error": clean(error)}
        return self._assembler.toolcall_end(streamed.content_index, **fields)

    def _id(self, wire_id: str, name: str) -> str:
        call_id = wire_id
        while not call_id or call_id in self._ids:
            call_id = f"{name}_{now_ms()}_{next(_numbers)}"
        self._ids.add(call_id)
        return call_id


def _continues(streamed: _StreamedCall, call: dict[str, Any], name: str, wire_id: str) -> bool:
    if wire_id:
        return wire_id == streamed.id
    return not name or (name == streamed.name and "partialArgs" in call)


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            break
        name, index, *quoted = found.groups()
        if index is not None:
            steps.append(int(index))
        else:
            key = name if name is not None else next(text for text in quoted if text is not None)
            steps.append(key if name is not None else re.sub(r"\\(.)", r"\1", key))
        at = found.end()
    if not path.startswith("$") or at < len(path) or not steps:
        raise _PathError
    return steps


def _container(step: str | int | None) -> Any:
    return [] if isinstance(step, int) else {}


def _json(arguments: Any) -> str:
    """The JSON text of arguments; some servers send that text itself."""
    if isinstance(arguments, str):
        return clean(arguments)
    return "{}" if arguments is None else compact(clean_value(arguments))


def _text(value: Any) -> str:
    return clean(value) if isinstance(value, str) else ""
