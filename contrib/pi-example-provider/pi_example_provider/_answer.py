"""The answer: chunks of the API into events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pi_core import Cost, MessageAssembler, Model, StopReason, StreamEvent, Usage

_STOP_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "length": "length",
    "model_length": "length",
    "tool_calls": "toolUse",
}


class Decoder:
    """Turns the chunks of one answer into events.

    :param answer: makes the events and keeps the message.
    """

    def __init__(self, answer: MessageAssembler, model: Model) -> None:
        self._answer = answer
        self._model = model
        self._open: tuple[str, int] | None = None
        self._calls: dict[int, int] = {}
        self._finish: str | None = None

    def add(self, chunk: Any) -> Iterator[StreamEvent]:
        """Take in a chunk.

        :raises ValueError: it is no chunk.
        """
        if not isinstance(chunk, dict):
            raise ValueError(f"unexpected chunk: {str(chunk)[:200]}")
        known: dict[str, Any] = {}
        if chunk.get("id"):
            known["response_id"] = chunk["id"]
        if chunk.get("usage"):
            known["usage"] = usage_of(chunk["usage"], self._model)
        if known:
            self._answer.update(**known)
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            yield from self._content(delta.get("content"))
            for call in delta.get("tool_calls") or ():
                yield from self._call(call)
            self._finish = choice.get("finish_reason") or self._finish

    def end(self) -> Iterator[StreamEvent]:
        """End the answer."""
        yield from self._close()
        for index in self._calls.values():
            yield self._answer.toolcall_end(index)
        reason = _STOP_REASONS.get(self._finish or "")
        if self._finish is None:
            yield self._answer.error("Mistral's answer ended without a finish reason")
        elif self._finish == "error":
            yield self._answer.error("Mistral server error", raw_stop_reason="error")
        else:
            yield self._answer.done(reason or "stop", raw_stop_reason=self._finish)

    def _content(self, content: Any) -> Iterator[StreamEvent]:
        parts: Any = [{"type": "text", "text": content}] if isinstance(content, str) else content or ()
        for part in parts:
            if part.get("type") == "thinking":
                text = "".join(piece.get("text", "") for piece in part.get("thinking") or ())
                yield from self._text("thinking", text)
            elif part.get("type") == "text":
                yield from self._text("text", part.get("text") or "")

    def _text(self, kind: str, text: str) -> Iterator[StreamEvent]:
        if not text:
            return
        answer = self._answer
        if self._open is None or self._open[0] != kind:
            yield from self._close()
            self._open = (kind, answer.next_index)
            yield answer.text_start(self._open[1]) if kind == "text" else answer.thinking_start(self._open[1])
        index = self._open[1]
        yield answer.text_delta(index, text) if kind == "text" else answer.thinking_delta(index, text)

    def _close(self) -> Iterator[StreamEvent]:
        if self._open is not None:
            kind, index = self._open
            self._open = None
            yield self._answer.text_end(index) if kind == "text" else self._answer.thinking_end(index)

    def _call(self, call: Any) -> Iterator[StreamEvent]:
        yield from self._close()
        position = call.get("index") or 0
        function = call.get("function") or {}
        if position not in self._calls:
            self._calls[position] = self._answer.next_index
            given = call.get("id")
            made = given if given and given != "null" else f"toolcall{position}"
            yield self._answer.toolcall_start(self._calls[position], made, function.get("name") or "")
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, separators=(",", ":"), ensure_ascii=False)
        if arguments:
            yield self._answer.toolcall_delta(self._calls[position], arguments)


def usage_of(data: Any, model: Model) -> Usage:
    """Return the tokens of an answer and what they cost by the model's prices."""
    cached = (data.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    fresh = max((data.get("prompt_tokens") or 0) - cached, 0)
    output = data.get("completion_tokens") or 0
    prices = [rate / 1_000_000 for rate in (model.cost.input, model.cost.output, model.cost.cache_read)]
    paid = [tokens * price for tokens, price in zip((fresh, output, cached), prices, strict=True)]
    return Usage(
        input=fresh,
        output=output,
        cache_read=cached,
        total_tokens=data.get("total_tokens") or fresh + cached + output,
        cost=Cost(input=paid[0], output=paid[1], cache_read=paid[2], total=sum(paid)),
    )
