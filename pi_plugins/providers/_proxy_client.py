"""The client of a proxy: one request, and the events of its answer."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Final

from pi_core import Context, ErrorDetails, ErrorEvent, MessageAssembler, Model, StreamEvent, StreamOptions

from ._connections import Connections
from ._errors import AbortedError, ResponseError, compact, cut, redact
from ._headers import default_headers, host_of
from ._http import Exchange, HttpResponse
from ._proxy_decode import CLOSED, LineParser, ProxyDecoder
from ._proxy_wire import API, request_body
from ._stream import INACTIVITY_MS, Draft, failure_of, final_request, secrets_of
from ._text import clean
from ._watch import Watch

ABORTED: Final = "Request aborted by user"
MISSING_TOKEN: Final = "No token for the proxy at {host}. Set PI_PROXY_TOKEN, or pass --api-key."


@dataclass(frozen=True, slots=True)
class Proxy:
    """Where a proxy is, and the token it wants.

    :param url: the address up to, not including, ``/api/stream``.
    """

    url: str
    token: str

    def draft(self, model: Model, context: Context, options: StreamOptions) -> Draft:
        """Return the request.

        :raises ResponseError: the address is none.
        """
        if not self.url.startswith(("http://", "https://")):
            raise ResponseError(
                f"The proxy for model {model.provider}/{model.id} has the address {self.url!r}; it has to begin with "
                "http:// or https://. Set the environment variable PI_PROXY_URL, or the model's base URL",
                ErrorDetails(retryable=False),
            )
        headers = {**default_headers(), "accept": "text/event-stream"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        return Draft(
            url=f"{self.url.rstrip('/')}/api/stream",
            headers=headers,
            key_headers=("authorization",),
            payload=request_body(model, context, options),
            missing_key=MISSING_TOKEN.format(host=host_of(self.url)),
        )


async def stream_through(
    proxy: Proxy, model: Model, context: Context, options: StreamOptions, connections: Connections
) -> AsyncGenerator[StreamEvent, None]:
    """Make one request through a proxy and yield its events. Nothing is raised, and the last event is a final one."""
    assembler = MessageAssembler(model.api, model.provider, model.id)
    decoder = ProxyDecoder(assembler)
    limit = INACTIVITY_MS if options.timeout_ms is None else options.timeout_ms
    watch = Watch(options.signal, limit, host_of(proxy.url) or "the proxy")
    secrets = [proxy.token, *secrets_of(options.headers or {})]
    response: HttpResponse | None = None
    try:
        if watch.aborted:
            raise AbortedError
        draft = proxy.draft(model, context, options)
        # Headers in the options are for the provider, and so are the model's unless the proxy is where it is served.
        asked = model if model.api == API else model.model_copy(update={"headers": None})
        tried = options.replace(headers=None, max_retries=options.max_retries or 0)
        request = await final_request(draft, asked, tried, secrets)
        response = await Exchange(request, asked, tried, watch, connections, error_text=_refusal_text).open()
        lines = LineParser()
        while decoder.final is None:
            chunk = await response.read()
            for data in lines.feed(chunk) if chunk else lines.finish():
                watch.restart()
                for event in decoder.take(data):
                    yield event
                    if watch.aborted:
                        raise AbortedError
                if decoder.final is not None:
                    break
            if not chunk and decoder.final is None:
                raise _closed(lines.instead())
        await response.drain()
    except Exception as error:
        if decoder.final is None:
            decoder.final = _failed(error, assembler, watch, response, secrets)
    finally:
        if response is not None:
            await response.close()
        await watch.stop()
    assert decoder.final is not None
    yield decoder.final


def _failed(
    error: Exception, assembler: MessageAssembler, watch: Watch, response: HttpResponse | None, secrets: list[str]
) -> ErrorEvent:
    if watch.aborted:
        return assembler.error(ABORTED, aborted=True)
    text, details = failure_of(error, response)
    return assembler.error(redact(_words(error) or text, secrets), error_details=details)


def _words(error: Exception) -> str:
    """What a connection that broke says for itself; an empty text for other failures, and when it says nothing."""
    import httpx

    cause = error.__cause__
    if isinstance(cause, httpx.RemoteProtocolError):
        return CLOSED
    broken = isinstance(cause, httpx.ReadError | httpx.WriteError | httpx.CloseError)
    return clean(str(cause)).strip() if broken else ""


def _refusal_text(response: HttpResponse, body: bytes) -> str:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        data = None
    error = data.get("error") if isinstance(data, dict) else None
    if isinstance(error, dict) and error:
        message = error.get("message")
        error = message if isinstance(message, str) and message else compact(error)
    words = error if isinstance(error, str) else ""
    return f"Proxy error: {cut(words) or f'{response.status} {response.reason}'.strip()}"


def _closed(instead: str) -> ResponseError:
    if instead:
        text = f"{CLOSED}. It sent this instead of events: {instead}"
        return ResponseError(text, ErrorDetails(retryable=False))
    return ResponseError(CLOSED, ErrorDetails(retryable=True))
