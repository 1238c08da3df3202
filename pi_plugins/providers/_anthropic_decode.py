"""The answer of the messages API: events into stream events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from pi_core import (
    AssistantMessage,
    ErrorDetails,
    MessageAssembler,
    Model,
    ModelCost,
    StopReason,
    StreamEvent,
    Usage,
    now_ms,
)

from ._anthropic_blocks import Blocks
from ._anthropic_compat import Compat
from ._errors import ResponseError, cut, may_succeed_later, stream_error
from ._json import EventJson
from ._text import clean
from ._usage import count, make_usage

_STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "end_turn": "stop",
    "pause_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "toolUse",
}
_REFUSALS: Final[Mapping[str, str]] = {
    "refusal": "The model refused to answer",
    "sensitive": "The provider withheld the answer because of its content",
}
_STATUS_OF_ERROR: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""What the HTTP status of an error would have been had it come before the answer."""


class AnthropicDecoder:
    """Decodes the events of one response.

    :param notes: what happened to the request so far; it becomes the message's ``diagnostics``.
    :param on_complete: called with the message when it is whole.
    """

    def __init__(
        self,
        assembler: MessageAssembler,
        model: Model,
        compat: Compat,
        notes: Sequence[dict[str, Any]] = (),
        on_complete: Callable[[AssistantMessage], None] | None = None,
    ) -> None:
        self.complete = False
        self.ended = False
        self.answered = False
        self._assembler = assembler
        self._model = model
        self._compat = compat
        self._notes = list(notes)
        self._on_complete = on_complete
        self._json = EventJson()
        self._blocks = Blocks(assembler, self._json)
        self._usage: dict[str, Any] = {}
        self._stop: str | None = None
        self._explanation: str | None = None
        self._id = ""
        self._served_by = ""

    def feed(self, events: Sequence[tuple[bytes, bytes]]) -> Iterator[StreamEvent]:
        """Take events; see :class:`~pi_plugins.providers._reader.Decoder`."""
        blocks = self._blocks
        for name, data in events:
            event = blocks.shortcut(data)
            if event is not None:
                yield event
                continue
            if data.strip() == b"[DONE]":
                # Gateways end with this what the API itself ends with message_stop.
                self.ended = self.answered = True
                self.complete = self.complete or self._stop is not None
                return
            yield from self._event(self._json.parse(data), name, data)
            if self.ended:
                return

    def finish(self) -> Iterator[StreamEvent]:
        """Close what a whole answer left open; a broken one stays as it is."""
        if self.complete:
            yield from self._blocks.finish()

    def reason(self) -> StopReason:
        """Return the stop reason; a refusal, none at all, or an answer without its end is an error."""
        if not self.complete:
            raise ResponseError("Anthropic stream ended before message_stop", ErrorDetails(retryable=True))
        stop = self._stop
        if stop is None:
            raise ResponseError("Anthropic stream ended without a stop reason", ErrorDetails(retryable=True))
        if stop in _REFUSALS:
            text = self._explanation or _REFUSALS[stop]
            raise ResponseError(text, ErrorDetails(type=stop, retryable=False))
        reason = _STOP_REASONS.get(stop)
        if reason is None:
            reason = "toolUse" if self._blocks.has_calls else "stop"
            self._notes.append({"type": "unknown_stop_reason", "timestamp": now_ms(), "details": {"reason": stop}})
        if self._on_complete is not None:
            self._on_complete(self._assembler.message())
        return reason

    def summary(self) -> dict[str, Any]:
        """Return usage and the provider's own words."""
        fields: dict[str, Any] = {}
        if self._usage:
            fields["usage"] = usage_of(self._priced_model(), self._usage)
        if self._stop is not None:
            fields["raw_stop_reason"] = self._stop
        if self._notes:
            fields["diagnostics"] = self._notes
        return fields

    # --- one event ---

    def _event(self, event: Any, name: bytes, data: bytes) -> Iterator[StreamEvent]:
        if not isinstance(event, dict):
            if name == b"error":
                raise stream_error(event)
            return
        kind = event.get("type") or name.decode("utf-8", "replace")
        match kind:
            case "content_block_delta":
                self.answered = True
                yield from self._blocks.delta(event.get("index"), _object(event.get("delta")), data)
            case "content_block_start":
                self.answered = True
                yield from self._start_block(event.get("index"), _object(event.get("content_block")))
            case "content_block_stop":
                self.answered = True
                yield from self._blocks.stop(event.get("index"))
            case "message_start":
                self.answered = True
                self._start(_object(event.get("message")))
            case "message_delta":
                self.answered = True
                self._take_delta(_object(event.get("delta")), event.get("usage"))
            case "message_stop":
                self.answered = self.complete = self.ended = True
            case "message":
                self.answered = True
                yield from self._whole(event)
            case "ping":
                self.answered = True
            case _ if kind == "error" or event.get("error"):
                raise _failure(event, data)

    def _start(self, message: dict[str, Any]) -> None:
        """Take the head of a message. A gateway may send it twice, or begin another message in the midst of one."""
        identity = clean(message["id"]) if isinstance(message.get("id"), str) else ""
        if self._blocks.started:
            self._blocks.restart(at_once=identity != self._id)
        if identity != self._id:
            self._usage, self._stop, self._explanation = {}, None, None
        self._id = identity
        if identity:
            self._assembler.update(response_id=identity)
        self._served(message.get("model"))
        self._take_usage(message.get("usage"))

    def _start_block(self, index: Any, block: dict[str, Any]) -> Iterator[StreamEvent]:
        if block.get("type") != "fallback":
            yield from self._blocks.start(index, block)
        elif self._blocks.started:
            raise ResponseError("The server went on with another model in the midst of the answer")
        else:
            self._served(_object(block.get("to")).get("model"))

    def _take_delta(self, delta: dict[str, Any], usage: Any) -> None:
        stop = delta.get("stop_reason")
        if isinstance(stop, str) and stop:
            self._stop = clean(stop)
        explanation = _object(delta.get("stop_details")).get("explanation")
        if isinstance(explanation, str) and explanation.strip():
            self._explanation = explanation
        self._take_usage(usage)

    def _whole(self, message: dict[str, Any]) -> Iterator[StreamEvent]:
        """An answer in one piece, from a server that does not stream."""
        self._start(message)
        content = message.get("content")
        for index, block in enumerate(content if isinstance(content, list) else ()):
            yield from self._start_block(index, _object(block))
            yield from self._blocks.stop(index)
        self._take_delta(message, None)
        self.complete = self.ended = True

    def _served(self, model: Any) -> None:
        if isinstance(model, str) and model:
            self._served_by = clean(model)
            self._assembler.update(response_model=None if model == self._model.id else self._served_by)

    def _take_usage(self, usage: Any) -> None:
        self._usage.update((name, value) for name, value in _object(usage).items() if value is not None)

    def _priced_model(self) -> Model:
        """The model with the prices of the one that answered."""
        for entry in self._compat.allowed_fallback_models:
            if entry["model"] == self._served_by and isinstance(entry.get("cost"), dict):
                return self._model.model_copy(update={"cost": ModelCost.model_validate(entry["cost"])})
        return self._model


def usage_of(model: Model, usage: Mapping[str, Any]) -> Usage:
    """Return the usage that a usage object of the wire means."""
    creation = _object(usage.get("cache_creation"))
    hour = count(creation.get("ephemeral_1h_input_tokens"))
    read = count(usage.get("cache_read_input_tokens"))
    write = count(usage.get("cache_creation_input_tokens"))
    write = write or hour + count(creation.get("ephemeral_5m_input_tokens"))
    thinking = _object(usage.get("output_tokens_details")).get("thinking_tokens")
    return make_usage(
        model,
        prompt=count(usage.get("input_tokens")) + read + write,
        output=count(usage.get("output_tokens")),
        cache_read=read,
        cache_write=write,
        cache_write1h=min(hour, write),
        reasoning=None if thinking is None else count(thinking),
        reported=usage,
    )


def _failure(event: dict[str, Any], data: bytes) -> ResponseError:
    """An error inside the stream: its text is the event as it came."""
    details = stream_error(event).details
    text = cut(data.decode("utf-8", "replace"))
    status = details.status or _STATUS_OF_ERROR.get(details.type or "")
    return ResponseError(text, details.model_copy(update={"retryable": may_succeed_later(status, text)}))


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
