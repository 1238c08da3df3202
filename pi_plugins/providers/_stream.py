"""The course of a response, the same for every API.

An API prepares a request and decodes the events; everything between, and every way it can go wrong, is here. Nothing is
raised out of a stream, and its last event is always one done or one error.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from pi_core import Context, ErrorDetails, MessageAssembler, Model, StopReason, StreamEvent, StreamOptions

from ._connections import Connections
from ._errors import (
    ABORTED,
    AbortedError,
    ResponseError,
    cut,
    exception_text,
    excerpt,
    page_text,
    redact,
    request_id_of,
)
from ._headers import check_headers, encode_json, host_of, is_loopback, merge_headers
from ._http import Exchange, HttpRequest, HttpResponse
from ._sse import EVENT_LIMIT, SseParser
from ._watch import InactivityError, Watch

INACTIVITY_MS: Final = 600_000
FINISHED_MS: Final = 10_000
"""Longest wait for what may follow when the answer itself is complete, milliseconds."""

_KEY_VARIABLES: Final = {
    "github-copilot": "COPILOT_GITHUB_TOKEN",
    "google": "GEMINI_API_KEY",
    "huggingface": "HF_TOKEN",
    "moonshotai": "MOONSHOT_API_KEY",
    "vercel-ai-gateway": "AI_GATEWAY_API_KEY",
}
_SECRET_WORDS: Final = ("auth", "key", "token", "secret", "cookie", "credential")


class Decoder(Protocol):
    """Turns the events of one response into stream events."""

    complete: bool
    """Whether the answer is whole, so that a connection that breaks now does no harm."""
    ended: bool
    """Whether the server said that nothing follows."""
    answered: bool
    """Whether there was any event of this API."""

    def feed(self, events: Sequence[tuple[bytes, bytes]]) -> Iterator[StreamEvent]:
        """Take events, each as its name and its data.

        :raises ResponseError: an event says so, or makes no sense.
        """

    def finish(self) -> Iterator[StreamEvent]:
        """Close what is open: the stream ended."""

    def reason(self) -> StopReason:
        """Return why the response ended.

        :raises ResponseError: it ended badly.
        """

    def summary(self) -> dict[str, Any]:
        """Return the fields of the final message that are known so far."""


@dataclass(slots=True)
class Prepared:
    """A request before the callbacks of its options saw it, and the decoder of its response.

    :param headers: the API's own headers.
    :param key_headers: those that carry the key; any of them, from wherever, does without one.
    """

    url: str
    headers: Mapping[str, str | None]
    key_headers: Sequence[str]
    payload: dict[str, Any]
    decoder: Decoder


class Api(Protocol):
    """What one wire protocol adds."""

    @property
    def api(self) -> str:
        """The protocol's name."""

    def prepare(self, model: Model, context: Context, options: StreamOptions, assembler: MessageAssembler) -> Prepared:
        """Build a request.

        :raises ResponseError: it cannot be built.
        """


async def stream_response(
    api: Api, model: Model, context: Context, options: StreamOptions, connections: Connections
) -> AsyncGenerator[StreamEvent, None]:
    """Make one request and yield its events."""
    assembler = MessageAssembler(api.api, model.provider, model.id)
    limit = INACTIVITY_MS if options.timeout_ms is None else options.timeout_ms
    watch = Watch(options.signal, limit, host_of(model.base_url) or model.provider)
    signal = options.signal
    secrets = [options.api_key or ""]
    decoder: Decoder | None = None
    response: HttpResponse | None = None
    try:
        if watch.aborted:
            raise AbortedError
        prepared = api.prepare(model, context, options, assembler)
        decoder = prepared.decoder
        request = await _final_request(prepared, model, options, secrets)
        exchange = Exchange(request, model, options, watch, connections)
        response = await exchange.open()
        yield assembler.start()
        parser = SseParser()
        reading = blank = True
        chunk = b""
        while reading:
            try:
                chunk = await response.read()
            except ResponseError as broken:
                if decoder.complete:
                    break
                if parser.count or isinstance(broken, InactivityError):
                    raise
                await response.close()
                await exchange.before_retry(broken)
                response = await exchange.open()
                parser, blank = SseParser(), True
                continue
            reading = bool(chunk)
            mark = chunk.lstrip()[:1] if blank else b""
            blank = blank and not mark
            if mark and mark in b"{[<":
                chunk += await response.read_rest(EVENT_LIMIT)
                events = [_whole_body(chunk.lstrip())]
                reading = False
            else:
                events = parser.feed(chunk) if reading else parser.finish()
            if events:
                for event in decoder.feed(events):
                    yield event
                    if signal is not None and signal.aborted:
                        raise AbortedError
                watch.restart(FINISHED_MS if decoder.complete else None)
                if decoder.ended:
                    await response.drain()
                    break
        if not decoder.answered:
            raise _no_answer(bytes(parser.head) or chunk)
        for event in decoder.finish():
            yield event
        final: StreamEvent = assembler.done(decoder.reason(), **decoder.summary())
    except Exception as error:
        if watch.aborted:
            final = assembler.error(ABORTED, aborted=True, **_summary(decoder))
        else:
            text, details = _failure(error, response)
            final = assembler.error(redact(text, secrets), error_details=details, **_summary(decoder))
    finally:
        if response is not None:
            await response.close()
        await watch.stop()
    yield final


def _failure(error: Exception, response: HttpResponse | None) -> tuple[str, ErrorDetails]:
    """The text and the data of a failure; one that is not a response's own speaks with the exception's words."""
    if not isinstance(error, ResponseError):
        error = ResponseError(exception_text(error), ErrorDetails(retryable=False))
    details = error.details
    if response is not None and details.request_id is None:
        details = details.model_copy(update={"request_id": request_id_of(response.headers)})
    return error.text, details


def _summary(decoder: Decoder | None) -> dict[str, Any]:
    return {} if decoder is None else decoder.summary()


async def _final_request(prepared: Prepared, model: Model, options: StreamOptions, secrets: list[str]) -> HttpRequest:
    """The request after the callbacks of the options; ``secrets`` gets what must not appear in an error."""
    merged = merge_headers(prepared.headers, model.headers, options.headers)
    secrets += _secrets(merged)
    if options.transform_headers is not None:
        given = options.transform_headers({name: value for name, value in merged.items() if value is not None})
        changed = await given if inspect.isawaitable(given) else given
        merged = merged if changed is None else merge_headers(changed)
        secrets += _secrets(merged)
    if not any((merged.get(name) or "").strip() for name in prepared.key_headers) and not is_loopback(model.base_url):
        raise ResponseError(missing_key_text(model.provider), ErrorDetails(retryable=False))
    payload: Any = prepared.payload
    if options.on_payload is not None:
        changed_payload = options.on_payload(payload, model)
        if inspect.isawaitable(changed_payload):
            changed_payload = await changed_payload
        payload = payload if changed_payload is None else changed_payload
    return HttpRequest(prepared.url, check_headers(merged), encode_json(payload))


def missing_key_text(provider: str) -> str:
    """Return what to do about a missing key."""
    usual = "".join(char if char.isalnum() else "_" for char in provider).upper() + "_API_KEY"
    return (
        f"No API key for provider: {provider}. Set the environment variable {_KEY_VARIABLES.get(provider, usual)}, "
        "or pass --api-key on the command line."
    )


def _secrets(headers: Mapping[str, str | None]) -> list[str]:
    values = [value for name, value in headers.items() if value and any(word in name.lower() for word in _SECRET_WORDS)]
    return values + [value.partition(" ")[2] for value in values]


def _whole_body(body: bytes) -> tuple[bytes, bytes]:
    """A body that is no event stream, as the one event it may be.

    :raises ResponseError: it is a page for people.
    """
    if body.startswith(b"<"):
        text = body.decode("utf-8", "replace")
        shown = page_text(text) or excerpt(text)
        raise ResponseError(f"Expected an event stream, the server sent this instead: {shown}")
    return b"", body


def _no_answer(received: bytes) -> ResponseError:
    if not received.strip():
        return ResponseError("The server closed the stream without sending anything", ErrorDetails(retryable=True))
    return ResponseError(f"Expected an event stream, the server sent this instead: {cut(excerpt(received))}")
