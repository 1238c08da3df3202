"""The answer of the responses API: its events into stream events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pi_core import Cost, ErrorDetails, MessageAssembler, Model, StopReason, StreamEvent, Usage

from ._errors import ResponseError, stream_error
from ._json import EventJson
from ._responses_input import HOSTED_ITEMS
from ._responses_items import OutputItems
from ._text import clean
from ._usage import count, make_usage

if TYPE_CHECKING:
    from ._completions_decode import CompletionsDecoder

ENDED_EARLY: Final = "OpenAI Responses stream ended before a terminal response event"
_TIER_FACTORS: Final[Mapping[str, float]] = {"flex": 0.5, "priority": 2, "fast": 2}
_DELTAS: Final[Mapping[str, str]] = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "text",
    "response.reasoning_summary_text.delta": "thinking",
    "response.reasoning_text.delta": "thinking",
    "response.function_call_arguments.delta": "call",
    "response.custom_tool_call_input.delta": "call",
}
# Each with the kind of its item and the field of the final text.
_FINAL_TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "response.output_text.done": ("text", "text"),
    "response.refusal.done": ("text", "refusal"),
    "response.reasoning_summary_text.done": ("thinking", "text"),
    "response.reasoning_text.done": ("thinking", "text"),
    "response.function_call_arguments.done": ("call", "arguments"),
    "response.custom_tool_call_input.done": ("call", "input"),
}
# Each with what it means when the response itself does not say how it ended.
_LAST: Final[Mapping[str, str]] = {
    "response.completed": "completed",
    "response.done": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}


class ResponsesDecoder:
    """Decodes the events of one response.

    :param grammar_tools: for tools whose argument is one free text: the name of that argument, by tool.
    :param service_tier: the tier that was asked for, which decides the price if the response names none.
    """

    def __init__(
        self,
        assembler: MessageAssembler,
        model: Model,
        grammar_tools: Mapping[str, str] | None = None,
        service_tier: str | None = None,
    ) -> None:
        self.complete = False
        self.ended = False
        self.answered = False
        self._assembler = assembler
        self._model = model
        self._service_tier = service_tier
        self._json = EventJson()
        self._items = OutputItems(assembler, grammar_tools or {})
        self._id = ""
        self._usage: Usage | None = None
        self._raw_reason: str | None = None
        self._reason: StopReason | None = None
        self._failure: ResponseError | None = None
        self._other: CompletionsDecoder | None = None
        self._handlers: dict[str, Callable[[dict[str, Any]], Iterator[StreamEvent]]] = {
            "response.output_item.added": self._added,
            "response.output_item.done": self._done,
            "response.reasoning_summary_part.done": self._summary_part,
        }

    def feed(self, events: Sequence[tuple[bytes, bytes]]) -> Iterator[StreamEvent]:
        """Take events; see :class:`~pi_plugins.providers._reader.Decoder`."""
        for name, data in events:
            if self._other is not None:
                yield from self._feed_other(name, data)
                continue
            if data.strip() == b"[DONE]":
                self.ended = self.answered = True
                return
            event = self._json.parse(data)
            if not isinstance(event, dict):
                continue
            kind = event.get("type")
            if not isinstance(kind, str):
                kind = name.decode("utf-8", "replace")
            slot_kind = _DELTAS.get(kind)
            if slot_kind is not None:
                slot = self._items.find(event, slot_kind)
                delta = event.get("delta")
                if slot is not None and isinstance(delta, str) and delta and not self.complete:
                    yield from self._items.delta(slot, delta, lenient=self._json.lenient)
            else:
                yield from self._event(kind, event, name, data)

    def finish(self) -> Iterator[StreamEvent]:
        """Close what is open; nothing is if the answer is whole, and what is cut off stays open."""
        return self._other.finish() if self._other is not None else iter(())

    def reason(self) -> StopReason:
        """Return the stop reason; a bad one, or none at all, is an error."""
        if self._other is not None:
            return self._other.reason()
        if self._failure is not None:
            raise self._failure
        if self._reason is None:
            raise ResponseError(ENDED_EARLY)
        return self._reason

    def summary(self) -> dict[str, Any]:
        """Return usage, the provider's own words, and what tools of the server left."""
        if self._other is not None:
            return self._other.summary()
        fields: dict[str, Any] = {}
        if self._usage is not None:
            fields["usage"] = self._usage
        if self._raw_reason is not None:
            fields["raw_stop_reason"] = self._raw_reason
        if self._items.hosted:
            fields[HOSTED_ITEMS] = self._items.hosted
        return fields

    # --- events ---

    def _event(self, kind: str, event: dict[str, Any], name: bytes, data: bytes) -> Iterator[StreamEvent]:
        if event.get("object") == "response":
            kind, event = "response.done", {"response": event}
        if kind in ("error", "response.error") or (event.get("error") and not kind.startswith("response.")):
            raise _error_event(event)
        if isinstance(event.get("choices"), list) and not (self._items or kind.startswith("response.")):
            self._start_other()
            yield from self._feed_other(name, data)
            return
        if kind.startswith("response."):
            self.answered = True
        response = event.get("response")
        if isinstance(response, dict):
            self._note(response)
        if self.complete:
            return
        if kind in _LAST:
            yield from self._last(response if isinstance(response, dict) else {}, _LAST[kind])
        elif kind in _FINAL_TEXTS:
            slot_kind, field = _FINAL_TEXTS[kind]
            slot = self._items.find(event, slot_kind)
            text = event.get(field)
            if slot is not None and isinstance(text, str):
                part = event.get("summary_index" if "summary" in kind else "content_index")
                yield from self._items.give(slot, (kind, str(part)), text)
        elif (handler := self._handlers.get(kind)) is not None:
            yield from handler(event)

    def _added(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        item = event.get("item")
        return self._items.begin(event, item) if isinstance(item, dict) else iter(())

    def _done(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        item = event.get("item")
        return self._items.end(event, item) if isinstance(item, dict) else iter(())

    def _summary_part(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        slot = self._items.find(event, "thinking")
        return self._items.delta(slot, "\n\n", lenient=False) if slot is not None else iter(())

    def _note(self, response: Mapping[str, Any]) -> None:
        identity, model = response.get("id"), response.get("model")
        fields: dict[str, Any] = {}
        if isinstance(identity, str) and identity and not self._id:
            self._id = fields["response_id"] = clean(identity)
            if isinstance(model, str) and model and model != self._model.id:
                fields["response_model"] = clean(model)
        if fields:
            self._assembler.update(**fields)

    # --- the end ---

    def _last(self, response: Mapping[str, Any], meant: str) -> Iterator[StreamEvent]:
        given = response.get("status")
        status = clean(given) if isinstance(given, str) and given and meant == "completed" else meant
        usage = response.get("usage")
        if isinstance(usage, dict):
            tier = response.get("service_tier")
            self._usage = usage_of(self._model, usage, tier if isinstance(tier, str) else self._service_tier)
        identity = response.get("id")
        if isinstance(identity, str) and identity:
            self._assembler.update(response_id=clean(identity))
        self._raw_reason = status
        self.complete = True
        output = response.get("output")
        if status in ("failed", "cancelled"):
            raise _failed(response, status)
        if status == "incomplete":
            why = response.get("incomplete_details")
            reason = why.get("reason") if isinstance(why, dict) else None
            if isinstance(reason, str) and reason:
                self._raw_reason = f"incomplete.{clean(reason)}"
                if reason != "max_output_tokens":
                    self._failure = ResponseError(f"Response incomplete: {reason}")
        yield from self._items.end_with(output if isinstance(output, list) else [])
        if self._failure is not None:
            return
        if status == "incomplete":
            self._reason = "length"
        elif (call := self._items.unfinished_call) is not None:
            text = f"OpenAI Responses stream completed with an unfinished tool call: {call}"
            self._failure = ResponseError(text, ErrorDetails(retryable=True))
            return
        else:
            self._reason = "toolUse" if self._items.has_calls else "stop"
        yield from self._items.end_rest()

    # --- another API's answer ---

    def _start_other(self) -> None:
        """Go on as the chat completions API: some servers answer in its events whatever they were asked in."""
        from ._completions_compat import compat_of
        from ._completions_decode import CompletionsDecoder

        self._other = CompletionsDecoder(self._assembler, self._model, compat_of(self._model))

    def _feed_other(self, name: bytes, data: bytes) -> Iterator[StreamEvent]:
        other = self._other
        assert other is not None
        yield from other.feed([(name, data)])
        self.complete, self.ended, self.answered = other.complete, other.ended, other.answered


def usage_of(model: Model, usage: Mapping[str, Any], tier: str | None = None) -> Usage:
    """Return the usage that a usage object of the wire means.

    :param tier: the service tier, which changes the price.
    """
    inputs, outputs = (usage.get(f"{name}_tokens_details") for name in ("input", "output"))
    inputs = inputs if isinstance(inputs, dict) else {}
    outputs = outputs if isinstance(outputs, dict) else {}
    made = make_usage(
        model,
        prompt=count(usage.get("input_tokens")),
        output=count(usage.get("output_tokens")),
        cache_read=count(inputs.get("cached_tokens")),
        cache_write=count(inputs.get("cache_write_tokens")),
        reasoning=count(outputs.get("reasoning_tokens")),
        reported=usage,
    )
    factor = _TIER_FACTORS.get(tier or "", 1)
    if tier == "priority" and model.id == "gpt-5.5":
        factor = 2.5
    changes: dict[str, Any] = {"cost": _times(made.cost, factor)} if factor != 1 else {}
    if total := count(usage.get("total_tokens")):
        changes["total_tokens"] = total
    return made.model_copy(update=changes)


def _times(cost: Cost, factor: float) -> Cost:
    parts = {name: getattr(cost, name) * factor for name in ("input", "output", "cache_read", "cache_write")}
    total = cost.total if cost.total_from_provider else sum(parts.values())
    return cost.model_copy(update={**parts, "total": total})


def _error_event(event: Mapping[str, Any]) -> ResponseError:
    if event.get("error"):
        return stream_error({name: value for name, value in event.items() if name != "type"})
    flat = {name: value for name, value in event.items() if name not in ("type", "sequence_number", "error")}
    failure = stream_error({"error": flat} if flat else event)
    code = event.get("code")
    if isinstance(code, str) and code:
        return ResponseError(f"Error Code {code}: {failure.text}", _details(failure, code))
    return failure


def _failed(response: Mapping[str, Any], status: str) -> ResponseError:
    error = response.get("error")
    if isinstance(error, dict) and error:
        failure = stream_error({"error": error})
        code, message = error.get("code"), error.get("message")
        text = message if isinstance(message, str) and message else "no message"
        return ResponseError(f"{code or 'unknown'}: {text}", _details(failure, code))
    if error:
        return stream_error({"error": error})
    why = response.get("incomplete_details")
    reason = why.get("reason") if isinstance(why, dict) else None
    if isinstance(reason, str) and reason:
        return ResponseError(f"incomplete: {reason}")
    return ResponseError(f"The response ended as {status}; the server does not say why")


def _details(failure: ResponseError, code: Any) -> ErrorDetails:
    """The data of a failure whose text is going to be another."""
    known = {"type": clean(code)} if isinstance(code, str) and code and failure.details.type is None else {}
    return failure.details.model_copy(update={**known, "retryable": None})
