"""The course of a response, the same for every API.

An API prepares a request and decodes the events; everything between, and every way it can go wrong, is here. Nothing is
raised out of a stream, and its last event is always one done or one error.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from pi_core import Context, ErrorDetails, MessageAssembler, Model, StreamEvent, StreamOptions

from ._connections import Connections
from ._errors import (
    ABORTED,
    ERROR_FORM,
    AbortedError,
    ResponseError,
    exception_text,
    redact,
    request_id_of,
)
from ._headers import check_headers, encode_json, host_of, is_loopback, merge_headers
from ._http import Exchange, HttpRequest, HttpResponse
from ._reader import Decoder, EventReader
from ._watch import Watch

INACTIVITY_MS: Final = 600_000
_KEY_VARIABLES: Final = {
    "alibaba": "DASHSCOPE_API_KEY",
    "github-copilot": "COPILOT_GITHUB_TOKEN",
    "google": "GEMINI_API_KEY",
    "huggingface": "HF_TOKEN",
    "kimi-coding": "KIMI_API_KEY",
    "moonshotai": "MOONSHOT_API_KEY",
    "ollama-cloud": "OLLAMA_API_KEY",
    "vercel-ai-gateway": "AI_GATEWAY_API_KEY",
}
_SECRET_WORDS: Final = ("auth", "key", "token", "secret", "cookie", "credential")


@dataclass(slots=True, kw_only=True)
class Draft:
    """A request before the callbacks of its options saw it.

    :param headers: the API's own headers.
    :param key_headers: those that carry the key; any of them, from wherever, does without one.
    :param missing_key: the error text when none of them is there; :func:`missing_key_text` by default.
    :param finish: has the last say on the payload; it gets that and the headers, which it may change in place.
    """

    url: str
    headers: Mapping[str, str | None]
    key_headers: Sequence[str]
    payload: dict[str, Any]
    missing_key: str = ""
    finish: Callable[[Any, dict[str, str | None]], Any] | None = None


@dataclass(slots=True, kw_only=True)
class Prepared(Draft):
    """A request and the decoder of its response.

    :param error_form: how the text of a refused request is put together; see
        :func:`~pi_plugins.providers._errors.http_error`.
    :param recover: gets the failure of a refused request and returns another one to make instead, or ``None``.
    """

    decoder: Decoder
    error_form: str = ERROR_FORM
    recover: Callable[[ResponseError], Prepared | None] | None = None


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
    reader: EventReader | None = None
    try:
        if watch.aborted:
            raise AbortedError
        prepared = api.prepare(model, context, options, assembler)
        while True:
            decoder = prepared.decoder
            request = await final_request(prepared, model, options, secrets)
            exchange = Exchange(request, model, options, watch, connections, error_form=prepared.error_form)
            reader = EventReader(exchange, decoder, watch)
            try:
                await reader.open()
                break
            except ResponseError as refusal:
                plainer = prepared.recover(refusal) if prepared.recover is not None else None
                if plainer is None:
                    raise
                prepared = plainer
        yield assembler.start()
        while events := await reader.read():
            for event in decoder.feed(events):
                yield event
                if signal is not None and signal.aborted:
                    raise AbortedError
        for event in decoder.finish():
            yield event
        final: StreamEvent = assembler.done(decoder.reason(), **decoder.summary())
    except Exception as error:
        if watch.aborted:
            final = assembler.error(ABORTED, aborted=True, **_summary(decoder))
        else:
            text, details = failure_of(error, reader.response if reader is not None else None)
            final = assembler.error(redact(text, secrets), error_details=details, **_summary(decoder))
    finally:
        if reader is not None:
            await reader.close()
        await watch.stop()
    yield final


def failure_of(error: Exception, response: HttpResponse | None) -> tuple[str, ErrorDetails]:
    """Return the text and the data of a failure; one that is not a response's own speaks with the exception's words."""
    if not isinstance(error, ResponseError):
        error = ResponseError(exception_text(error), ErrorDetails(retryable=False))
    details = error.details
    if response is not None and details.request_id is None:
        details = details.model_copy(update={"request_id": request_id_of(response.headers)})
    return error.text, details


def _summary(decoder: Decoder | None) -> dict[str, Any]:
    return {} if decoder is None else decoder.summary()


async def final_request(draft: Draft, model: Model, options: StreamOptions, secrets: list[str]) -> HttpRequest:
    """Return the request after the callbacks of the options.

    :param secrets: gets what must not appear in an error.
    :raises ResponseError: there is no key, or a header or the body cannot be sent.
    """
    merged = merge_headers(draft.headers, model.headers, options.headers)
    secrets += secrets_of(merged)
    if options.transform_headers is not None:
        given = options.transform_headers({name: value for name, value in merged.items() if value is not None})
        changed = await given if inspect.isawaitable(given) else given
        merged = merged if changed is None else merge_headers(changed)
        secrets += secrets_of(merged)
    if not any((merged.get(name) or "").strip() for name in draft.key_headers) and not is_loopback(draft.url):
        raise ResponseError(draft.missing_key or missing_key_text(model.provider), ErrorDetails(retryable=False))
    payload: Any = draft.payload
    if options.on_payload is not None:
        changed_payload = options.on_payload(payload, model)
        if inspect.isawaitable(changed_payload):
            changed_payload = await changed_payload
        payload = payload if changed_payload is None else changed_payload
    if draft.finish is not None:
        payload = draft.finish(payload, merged)
    return HttpRequest(draft.url, check_headers(merged), encode_json(payload))


def missing_key_text(provider: str) -> str:
    """Return what to do about a missing key."""
    usual = "".join(char if char.isalnum() else "_" for char in provider).upper() + "_API_KEY"
    return (
        f"No API key for provider: {provider}. Set the environment variable {_KEY_VARIABLES.get(provider, usual)}, "
        f"store a key with: pi auth login {provider}, or pass --api-key on the command line."
    )


def secrets_of(headers: Mapping[str, str | None]) -> list[str]:
    """Return the values of headers that carry a secret, with and without their scheme."""
    values = [value for name, value in headers.items() if value and any(word in name.lower() for word in _SECRET_WORDS)]
    return values + [value.partition(" ")[2] for value in values]
