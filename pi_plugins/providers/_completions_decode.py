"""The answer of the chat completions API: chunks into stream events."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, Final

from pi_core import MessageAssembler, Model, StopReason, StreamEvent, Usage

from ._completions_calls import ToolCalls
from ._completions_compat import Compat
from ._errors import ResponseError, compact, stream_error
from ._json import EventJson, StringTemplate
from ._text import SurrogateJoiner, clean
from ._think_tags import ThinkTags
from ._usage import count, make_usage

THINKING_FIELDS: Final = ("reasoning_content", "reasoning", "reasoning_text")
_STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "stop": "stop",
    "end": "stop",
    "eos": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "tool_calls": "toolUse",
    "function_call": "toolUse",
}


class CompletionsDecoder:
    """Decodes the chunks of one response.

    A message has one text block and one thinking block. All blocks stay open until the stream ends.

    :param grammar_tools: for tools whose argument is one free text: the name of that argument, by tool.
    """

    def __init__(
        self, assembler: MessageAssembler, model: Model, compat: Compat, grammar_tools: Mapping[str, str] | None = None
    ) -> None:
        self.complete = False
        self.ended = False
        self.answered = False
        self._assembler = assembler
        self._model = model
        self._compat = compat
        self._json = EventJson()
        self._template = StringTemplate("content")
        self._joiners: dict[int, SurrogateJoiner] = {}
        self._text: int | None = None
        self._thinking: int | None = None
        self._calls = ToolCalls(assembler, self._valid, grammar_tools or {})
        self._tags = ThinkTags() if compat.thinking_in_text else None
        self._details: list[dict[str, Any]] = []
        self._finish: str | None = None
        self._usage: dict[str, Any] | None = None
        self._usage_follows = False
        self._id = ""
        self._response_model = ""

    def feed(self, events: Sequence[tuple[bytes, bytes]]) -> Iterator[StreamEvent]:
        """Take events; see :class:`~pi_plugins.providers._reader.Decoder`."""
        match = self._template.match
        text_delta = self._assembler.text_delta
        for name, data in events:
            text = match(data)
            if text:
                assert self._text is not None
                yield text_delta(self._text, text)
            elif text is None:
                if data.strip() == b"[DONE]":
                    self.ended = self.answered = True
                    return
                chunk = self._json.parse(data)
                if self._json.lenient:
                    # Half a character may be waiting, so every later text has to pass it.
                    self._template.forget()
                yield from self._chunk(chunk, name, data)

    def finish(self) -> Iterator[StreamEvent]:
        """Close the blocks in content order."""
        assembler = self._assembler
        if self._tags is not None and not self._tags.done:
            yield from self._say(*self._tags.finish())
        for index in range(assembler.next_index):
            if index == self._text:
                if rest := self._rest(index):
                    yield assembler.text_delta(index, rest)
                yield assembler.text_end(index)
            elif index == self._thinking:
                if rest := self._rest(index):
                    yield assembler.thinking_delta(index, rest)
                signature = clean(compact(self._details))
                yield assembler.thinking_end(index, signature=signature if self._details else None)
            else:
                yield from self._calls.end(index, self._rest(index))

    def reason(self) -> StopReason:
        """Return the stop reason; a bad one, or none at all, is an error."""
        finish = self._finish
        if finish is not None:
            reason = _STOP_REASONS.get(finish.lower())
            if reason is None:
                raise ResponseError(f"Provider finish_reason: {finish}")
            return reason
        # A server that counts the tokens at the end and says that it is done has finished, whatever it left out.
        if self._compat.supports_finish_reason and not (self.ended and self._usage_follows):
            raise ResponseError("Stream ended without finish_reason")
        return "toolUse" if self._calls else "stop"

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
        if chunk.get("error") or chunk.get("object") == "error" or name == b"error":
            raise stream_error(chunk)
        self._note(chunk)
        choices = chunk.get("choices")
        usage = _usage_object(chunk)
        if isinstance(choices, list):
            self.answered = True
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            self._take_usage(usage, True)
            return
        if choice.get("error"):
            raise stream_error(choice)
        own_usage = choice.get("usage")
        self._take_usage(usage or (own_usage if isinstance(own_usage, dict) else None), bool(chunk.get("usage")))
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            self._finish = clean(finish)
            self.complete = True
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            plain = yield from self._delta(delta)
            if plain and not finish and usage is None and len(choices or ()) == 1 and not self._json.lenient:
                self._template.learn(data)

    def _delta(self, delta: dict[str, Any]) -> Generator[StreamEvent, None, bool]:
        """Take one delta; returns whether it was text and nothing else."""
        content = delta.get("content")
        thinking, text = _split(content) if isinstance(content, list) else ("", content)
        field = None
        for name in THINKING_FIELDS:
            value = delta.get(name)
            if isinstance(value, str) and value:
                thinking, field = value, name
                break
        plain = not thinking
        details = delta.get("reasoning_details")
        if isinstance(details, list) and details:
            plain = False
            merge_details(self._details, details)
        if not text and isinstance(delta.get("refusal"), str):
            text, plain = delta["refusal"], False
        if not isinstance(text, str):
            text = ""
        if self._tags is not None and not self._tags.done:
            inline, text = self._tags.feed(text)
            thinking, plain = thinking + inline, False
        yield from self._say(thinking, text, field)
        plain = plain and bool(text)
        calls = delta.get("tool_calls")
        if isinstance(calls, list) and calls:
            plain = False
            for fragment in calls:
                yield from self._calls.take(fragment)
        return plain

    def _say(self, thinking: str, text: str, field: str | None = None) -> Iterator[StreamEvent]:
        """Add to the thinking, then to the text; ``field`` is where the thinking stood."""
        if (thinking or self._details) and self._thinking is None:
            self._thinking = self._assembler.next_index
            yield self._assembler.thinking_start(self._thinking, signature=field)
        if thinking:
            assert self._thinking is not None
            yield self._assembler.thinking_delta(self._thinking, self._valid(self._thinking, thinking))
        if text:
            if self._text is None:
                self._text = self._assembler.next_index
                yield self._assembler.text_start(self._text)
            yield self._assembler.text_delta(self._text, self._valid(self._text, text))

    def _note(self, chunk: dict[str, Any]) -> None:
        identity = chunk.get("id")
        if not self._id and isinstance(identity, str) and identity:
            self._id = identity
            self._assembler.update(response_id=clean(identity))
        model = chunk.get("model")
        if not self._response_model and isinstance(model, str) and model and model != self._model.id:
            self._response_model = model
            self._assembler.update(response_model=clean(model))

    def _take_usage(self, usage: dict[str, Any] | None, follows: bool) -> None:
        if usage is not None:
            self._usage = usage
            self._usage_follows = self._usage_follows or follows

    # --- text ---

    def _valid(self, index: int, piece: str) -> str:
        """Text of a block without halves of surrogate pairs, which only lenient parsing lets through."""
        if not self._json.lenient:
            return piece
        return self._joiners.setdefault(index, SurrogateJoiner()).feed(piece)

    def _rest(self, index: int) -> str:
        joiner = self._joiners.get(index)
        return joiner.finish() if joiner is not None else ""


def usage_of(model: Model, usage: Mapping[str, Any]) -> Usage:
    """Return the usage that a usage object of the wire means."""
    prompt_details = usage.get("prompt_tokens_details")
    prompt_details = prompt_details if isinstance(prompt_details, dict) else {}
    output_details = usage.get("completion_tokens_details")
    output_details = output_details if isinstance(output_details, dict) else {}
    reads = (prompt_details.get("cached_tokens"), usage.get("prompt_cache_hit_tokens"), usage.get("cached_tokens"))
    return make_usage(
        model,
        prompt=count(usage.get("prompt_tokens")),
        output=count(usage.get("completion_tokens")),
        cache_read=count(next((read for read in reads if read is not None), 0)),
        cache_write=count(prompt_details.get("cache_write_tokens")),
        reasoning=count(output_details.get("reasoning_tokens")) or count(usage.get("reasoning_tokens")),
        reported=usage,
    )


def merge_details(merged: list[dict[str, Any]], details: Sequence[Any]) -> None:
    """Add reasoning details of a chunk to those so far: pieces of one text or summary become one entry."""
    for detail in details:
        kind = detail.get("type") if isinstance(detail, dict) else None
        field = {"reasoning.text": "text", "reasoning.summary": "summary"}.get(str(kind))
        if field is None and kind != "reasoning.encrypted":
            continue
        last = merged[-1] if merged else None
        if field is None or last is None or last["type"] != kind or last.get("index") != detail.get("index"):
            merged.append(dict(detail))
            continue
        text = (last.get(field) or "") + (detail.get(field) or "")
        last.update({name: value for name, value in detail.items() if value is not None})
        last[field] = text


def _usage_object(chunk: dict[str, Any]) -> dict[str, Any] | None:
    usage = chunk.get("usage")
    if not isinstance(usage, dict):
        groq = chunk.get("x_groq")
        usage = groq.get("usage") if isinstance(groq, dict) else None
    return usage if isinstance(usage, dict) else None


def _split(content: list[Any]) -> tuple[str, str]:
    """Thinking and text of content that comes as a list of parts."""
    thinking = text = ""
    for part in content:
        if not isinstance(part, dict):
            continue
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            pieces = inner if isinstance(inner, list) else [{"text": inner}]
            thinking += "".join(
                piece["text"] for piece in pieces if isinstance(piece, dict) and isinstance(piece.get("text"), str)
            )
        elif isinstance(part.get("text"), str):
            text += part["text"]
    return thinking, text
