"""Requests over httpx: tries, what may be tried again, and the body of the response.

All failures come out as :class:`ResponseError` or :class:`AbortedError`.
"""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from pi_core import ErrorDetails, Model, ProviderResponse, StreamOptions

from ._connections import CONNECT_SECONDS, Connections
from ._errors import (
    ERROR_FORM,
    AbortedError,
    ResponseError,
    connection_error,
    exception_text,
    http_error,
    short_http_error,
)
from ._watch import InactivityError, Watch

if TYPE_CHECKING:
    import httpx

MAX_RETRIES: Final = 2
MAX_RETRY_DELAY_MS: Final = 60_000
_ERROR_BODY_LIMIT: Final = 65536
_ERROR_BODY_MS: Final = 10_000
_DRAIN_LIMIT: Final = 65536
_DRAIN_MS: Final = 200
_REDIRECTS: Final = 5
_HARMLESS_HEADERS: Final = frozenset({"accept", "content-length", "content-type", "host", "user-agent"})
_FIRST_DELAY_MS: Final = 500
_LONGEST_DELAY_MS: Final = 8000


@dataclass(slots=True)
class HttpRequest:
    """What is sent: a POST with a JSON body."""

    url: str
    headers: dict[str, str]
    body: bytes


class HttpResponse:
    """The response to a request, to be read once.

    :ivar reason: the words beside the status.
    :ivar headers: by lower-case name.
    """

    def __init__(self, response: httpx.Response, watch: Watch) -> None:
        self.status = response.status_code
        self.reason = response.reason_phrase
        self.headers: dict[str, str] = {name.lower(): value for name, value in response.headers.items()}
        self._response = response
        self._watch = watch
        encoded = "content-encoding" in self.headers
        self._next = aiter(response.aiter_bytes() if encoded else response.aiter_raw()).__anext__
        watch.close_with(self.close)

    async def read(self, limit_ms: int | None = None) -> bytes:
        """Return what arrived since the last read; nothing at the end.

        :raises ResponseError: the connection broke, or the limit of the wait is over.
        :raises AbortedError: the signal was aborted.
        """
        try:
            return await self._watch.wait(self._next, limit_ms)
        except StopAsyncIteration:
            return b""
        except (AbortedError, ResponseError):
            raise
        except Exception as error:
            raise connection_error(error, self._watch.host) from error

    async def read_rest(self, limit: int, limit_ms: int | None = None) -> bytes:
        """Return the body up to its end, or to ``limit`` bytes, or to what arrived before it broke off.

        :param limit_ms: a limit for all of it.
        """
        loop = asyncio.get_running_loop()
        end = None if limit_ms is None else loop.time() + limit_ms / 1000
        parts = []
        size = 0
        with suppress(ResponseError):
            while size < limit:
                left = None if end is None else max(round((end - loop.time()) * 1000), 0)
                part = await self.read(left)
                if not part:
                    break
                parts.append(part)
                size += len(part)
        return b"".join(parts)[:limit]

    async def drain(self) -> None:
        """Read what is left so that the connection can be used again; give up when it does not come at once."""
        await self.read_rest(_DRAIN_LIMIT, _DRAIN_MS)

    async def close(self) -> None:
        """Close the response, and its connection unless the body was read to its end."""
        self._watch.close_with(None)
        with suppress(Exception):
            await self._response.aclose()


class Exchange:
    """One request and its tries.

    A try that fails before any event may be made again: when the connection failed, and when the status or the server
    says so.

    :param error_form: how the text of a refusal is put together; see :func:`~pi_plugins.providers._errors.http_error`.
    :param error_text: puts that text together itself, from the response and its body.
    """

    def __init__(
        self,
        request: HttpRequest,
        model: Model,
        options: StreamOptions,
        watch: Watch,
        connections: Connections,
        *,
        error_form: str = ERROR_FORM,
        error_text: Callable[[HttpResponse, bytes], str] | None = None,
    ) -> None:
        self._request = request
        self._model = model
        self._options = options
        self._watch = watch
        self._connections = connections
        self._error_form = error_form
        self._error_text = error_text
        self._tries_left = MAX_RETRIES if options.max_retries is None else options.max_retries
        self._tries = 0

    async def open(self) -> HttpResponse:
        """Send the request until a try succeeds, and return the response.

        :raises ResponseError: it failed.
        :raises AbortedError: the signal was aborted.
        """
        while True:
            response: HttpResponse | None = None
            try:
                response = await self._send()
            except InactivityError:
                raise
            except ResponseError as error:
                await self.before_retry(error)
                continue
            try:
                await self._announce(response)
                if 200 <= response.status < 300:
                    opened, response = response, None
                    return opened
                if 300 <= response.status < 400:
                    raise ResponseError(_redirect_text(response))
                body = await response.read_rest(_ERROR_BODY_LIMIT, _ERROR_BODY_MS)
            finally:
                if response is not None:
                    await response.close()
            failure = http_error(response.status, response.headers, body, form=self._error_form)
            if self._error_text is not None:
                failure = ResponseError(self._error_text(response, body), failure.details)
            short = None if "{body}" in self._error_form else short_http_error(response.status, body)
            await self.before_retry(failure, short)

    async def before_retry(self, failure: ResponseError, short: str | None = None) -> None:
        """Wait as long as the server asks or the number of tries suggests; raise the failure if no try is left.

        :param short: the failure in short.
        """
        details = failure.details
        if self._tries_left <= 0 or not details.retryable:
            raise failure
        delay = details.retry_after_ms
        if delay is None:
            longest = min(_FIRST_DELAY_MS * 2**self._tries, _LONGEST_DELAY_MS)
            delay = round(longest * (1 - random.random() * 0.25))
        else:
            options = self._options
            limit = MAX_RETRY_DELAY_MS if options.max_retry_delay_ms is None else options.max_retry_delay_ms
            if 0 < limit < delay:
                text = f"Server requested {_seconds(delay)} retry delay (max: {_seconds(limit)}). {short or failure}"
                raise ResponseError(text, details)
        self._tries_left -= 1
        self._tries += 1
        await self._watch.wait(lambda: asyncio.sleep(delay / 1000), delay + 60_000)
        self._watch.restart()

    async def _send(self) -> HttpResponse:
        import httpx

        client = await self._connections.client()
        try:
            request = httpx.Request(
                "POST", self._request.url, headers=self._request.headers, content=self._request.body
            )
            request.extensions["timeout"] = client.timeout.as_dict()
            for _ in range(_REDIRECTS):
                response = await self._watch.wait(partial(client.send, request, stream=True))
                if response.status_code not in (307, 308) or response.next_request is None:
                    break
                request = _without_secrets(response.next_request, request)
                await response.aclose()
            return HttpResponse(response, self._watch)
        except httpx.TransportError as error:
            if isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError | httpx.ProxyError):
                raise ResponseError(exception_text(error), ErrorDetails(retryable=False)) from error
            if isinstance(error, httpx.ConnectTimeout):
                text = f"Connection error: {self._watch.host} did not answer within {CONNECT_SECONDS:g} s"
                raise ResponseError(text, ErrorDetails(retryable=True)) from error
            raise connection_error(error, self._watch.host) from error
        except (httpx.InvalidURL, httpx.HTTPError) as error:
            raise ResponseError(exception_text(error), ErrorDetails(retryable=False)) from error

    async def _announce(self, response: HttpResponse) -> None:
        if self._options.on_response is not None:
            given = self._options.on_response(ProviderResponse(response.status, response.headers), self._model)
            if inspect.isawaitable(given):
                await given


def _without_secrets(request: httpx.Request, origin: httpx.Request) -> httpx.Request:
    """A redirected request; one that goes elsewhere takes no header along but those that say what it is."""
    before, after = origin.url, request.url
    if (before.scheme, before.host, before.port) != (after.scheme, after.host, after.port):
        for name in set(request.headers) - _HARMLESS_HEADERS:
            del request.headers[name]
    return request


def _redirect_text(response: HttpResponse) -> str:
    target = response.headers.get("location", "another address")
    return f"{response.status}: the server redirects to {target}; set the model's base URL to where the API is"


def _seconds(milliseconds: int) -> str:
    return f"{-(-milliseconds // 1000)}s"
