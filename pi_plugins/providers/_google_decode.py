"""The answer of the Gemini API: chunks into stream events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pi_core import ErrorDetails, MessageAssembler, Model, StopReason, StreamEvent, Usage

from ._errors import ResponseError, cut, stream_error
from ._google_calls import ToolCalls
from ._json import EventJson, StringTemplate
from ._text import SurrogateJoiner, clean
from ._usage import count, make_usage

_STOP: Final = "STOP"
_STOP_REASONS: Final[Mapping[str, StopReason]] = {
    _STOP: "stop",
    "FUNCTION_CALL": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
}
_BAD_REASONS: Final = frozenset(
    {
        "BLOCKLIST",
        "ESCALATION",
        "FINISH_REASON_UNSPECIFIED",
        "IMAGE_OTHER",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "IMAGE_SAFETY",
        "LANGUAGE",
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "MISSING_THOUGHT_SIGNATURE",
        "MODEL_ARMOR",
        "NO_IMAGE",
        "OTHER",
        "PROHIBITED_CONTENT",
        "RECITATION",
        "SAFETY",
        "SPII",
        "TOO_MANY_TOOL_CALLS",
        "UNEXPECTED_TOOL_CALL",
    }
)
_OWN_FIELDS: Final = ("candidates", "modelVersion", "promptFeedback", "responseId", "usageMetadata")


class GoogleDecoder:
    """Decodes the chunks of one response.

    Text and thinking go on in the same block until something else comes. A reason to stop does not end the reading:
    servers give one early, and go on.
    """

    def __init__(self, assembler: MessageAssembler, model: Model) -> None:
        self.complete = False
        self.ended = False
        self.answered = False
        self._assembler = assembler
        self._model = model
        self._json = EventJson()
        self._template = StringTemplate("text")
        self._joiner = SurrogateJoiner()
        self._calls = ToolCalls(assembler)
        self._open: str | None = None
        self._index = -1
        self._said = False
        self._finish: str | None = None
        self._finish_message = ""
        self._blocked: str | None = None
        self._block_message = ""
        self._usage: dict[str, Any] | None = None
        self._id = ""
        self._response_model = ""

    def feed(self, events: Sequence[tuple[bytes, bytes]]) -> Iterator[StreamEvent]:
        """Take events; see :class:`~pi_plugins.providers._reader.Decoder`."""
        match = self._template.match
        text_delta = self._assembler.text_delta
        for name, data in events:
            text = match(data)
            if text is not None:
                self.complete = False
                yield text_delta(self._index, text)
                continue
            if data.strip() == b"[DONE]":
                self.ended = self.answered = True
                return
            chunk = self._json.parse(data)
            if self._json.lenient:
                # Half a character may be waiting, so every later text has to pass it.
                self._template.forget()
            for one in chunk if isinstance(chunk, list) else (chunk,):
                yield from self._chunk(one, name, data)

    def finish(self) -> Iterator[StreamEvent]:
        """Close what is open, unless the answer ended in an unknown way."""
        known = (self._finish or _STOP).upper()
        if known in _STOP_REASONS or known in _BAD_REASONS:
            yield from self._close()
            yield from self._calls.finish()

    def reason(self) -> StopReason:
        """Return the stop reason; a bad one, or none at all, is an error."""
        finish = self._finish
        if finish is None:
            if self._blocked is not None:
                text = f"Google blocked the prompt: {self._blocked}{self._block_message}"
                raise ResponseError(text, ErrorDetails(type=self._blocked, retryable=False))
            raise ResponseError("Google stream ended without a finish reason", ErrorDetails(retryable=True))
        reason = _STOP_REASONS.get(finish.upper())
        if reason is None:
            known = finish.upper() in _BAD_REASONS
            text = f"{'Provider stopped with' if known else 'Unhandled stop reason'}: {finish}{self._finish_message}"
            raise ResponseError(text, ErrorDetails(type=finish, retryable=False))
        return "toolUse" if reason == "stop" and self._calls else reason

    def summary(self) -> dict[str, Any]:
        """Return usage and the provider's own words."""
        fields: dict[str, Any] = {}
        if self._usage is not None:
            fields["usage"] = usage_of(self._model, self._usage)
        if self._finish is not None:
            fields["raw_stop_reason"] = self._finish
        return fields

    # --- one chunk ---

    def _chunk(self, chunk: Any, name: bytes, data: bytes) -> Iterator[StreamEvent]:
        if not isinstance(chunk, dict):
            return
        if chunk.get("error") or name == b"error":
            raise stream_error(chunk)
        self.answered = self.answered or any(field in chunk for field in _OWN_FIELDS)
        self._note(chunk)
        candidates = chunk.get("candidates")
        candidate = _object(candidates[0]) if isinstance(candidates, list) and candidates else {}
        parts = _object(candidate.get("content")).get("parts")
        parts = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        if parts:
            self.complete = False
        for part in parts:
            yield from self._part(part)
        finish = candidate.get("finishReason")
        if isinstance(finish, str) and finish:
            self._finish, self._finish_message = clean(finish), _more(candidate.get("finishMessage"))
        if (isinstance(finish, str) and (self._said or finish.upper() != _STOP)) or self._blocked is not None:
            self.complete = True
        elif len(parts) == 1 and isinstance(candidates, list) and len(candidates) == 1:
            self._learn(parts[0], data)

    def _part(self, part: dict[str, Any]) -> Iterator[StreamEvent]:
        text, call = part.get("text"), part.get("functionCall")
        signature = part.get("thoughtSignature")
        signature = clean(signature) if isinstance(signature, str) and signature else None
        if text is None and signature is not None and len(part.keys() - {"thought", "thoughtSignature"}) == 0:
            text = ""
        if isinstance(text, str):
            yield from self._text("thinking" if part.get("thought") is True else "text", text, signature)
        if isinstance(call, dict):
            self._said = True
            yield from self._close()
            yield from self._calls.take(call, signature)

    def _text(self, kind: str, text: str, signature: str | None) -> Iterator[StreamEvent]:
        assembler = self._assembler
        if self._open != kind:
            yield from self._close()
            self._open, self._index = kind, assembler.next_index
            yield (assembler.text_start if kind == "text" else assembler.thinking_start)(self._index)
        if signature is not None:
            assembler.sign(self._index, signature)
        if self._json.lenient:
            text = self._joiner.feed(text)
        self._said = self._said or bool(text)
        yield (assembler.text_delta if kind == "text" else assembler.thinking_delta)(self._index, text)

    def _close(self) -> Iterator[StreamEvent]:
        kind, self._open = self._open, None
        if kind is None:
            return
        self._template.forget()
        assembler, index = self._assembler, self._index
        rest = self._joiner.finish()
        if rest:
            yield (assembler.text_delta if kind == "text" else assembler.thinking_delta)(index, rest)
        yield (assembler.text_end if kind == "text" else assembler.thinking_end)(index)

    def _learn(self, part: dict[str, Any], data: bytes) -> None:
        """Remember a chunk that was a piece of text and nothing else that counts."""
        plain = bool(part.get("text")) and not part.get("thoughtSignature") and "functionCall" not in part
        if plain and self._open == "text" and not self._json.lenient:
            self._template.learn(data)

    def _note(self, chunk: dict[str, Any]) -> None:
        identity = chunk.get("responseId")
        if not self._id and isinstance(identity, str) and identity:
            self._id = identity
            self._assembler.update(response_id=clean(identity))
        version = chunk.get("modelVersion")
        if not self._response_model and isinstance(version, str) and version:
            self._response_model = version.removeprefix("models/")
            if self._response_model != self._model.id.removeprefix("models/"):
                self._assembler.update(response_model=clean(self._response_model))
        usage = chunk.get("usageMetadata")
        if isinstance(usage, dict):
            self._usage = usage
        feedback = _object(chunk.get("promptFeedback"))
        blocked = feedback.get("blockReason")
        if isinstance(blocked, str) and blocked:
            self._blocked, self._block_message = clean(blocked), _more(feedback.get("blockReasonMessage"))


def usage_of(model: Model, usage: Mapping[str, Any]) -> Usage:
    """Return the usage that a usage object of the wire means.

    Thoughts and the results of the server's own tools are not in the counts of answer and prompt.
    """
    thoughts = count(usage.get("thoughtsTokenCount"))
    made = make_usage(
        model,
        prompt=count(usage.get("promptTokenCount")) + count(usage.get("toolUsePromptTokenCount")),
        output=count(usage.get("candidatesTokenCount")) + thoughts,
        cache_read=count(usage.get("cachedContentTokenCount")),
        reasoning=thoughts,
        reported=usage,
    )
    total = count(usage.get("totalTokenCount"))
    return made.model_copy(update={"total_tokens": total}) if total else made


def _more(message: Any) -> str:
    return f". {cut(clean(message))}" if isinstance(message, str) and message.strip() else ""


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
