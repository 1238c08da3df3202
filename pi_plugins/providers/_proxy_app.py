"""The proxy as an ASGI application: ``POST /api/stream`` makes a request with the keys of this machine."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from pi_core import AbortController, Build, ConfigError, DoneEvent, ErrorEvent, Model, ResponseStream, stream

from ._errors import redact
from ._headers import is_loopback
from ._proxy_request import BadRequestError, ProxyRequest, own_names, parse_request
from ._proxy_wire import API, OPTIONS, WireEncoder, sse

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_Pairs: TypeAlias = list[tuple[bytes, bytes]]

PATH: Final = "/api/stream"
BODY_SECONDS: Final = 60.0
HEARTBEAT_SECONDS: Final = 15.0
ABORT_SECONDS: Final = 5.0
"""How long a provider may go on after its client went away."""
STOPPED: Final = "The proxy was stopped"
FAILED: Final = "The proxy failed; its log says more"
_SECRET_NAMES: Final = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
_NAMELESS: Final = frozenset({API, "custom"})

_log = logging.getLogger("pi.proxy")


@dataclass(frozen=True, slots=True)
class ProxyLimits:
    """What one proxy takes on.

    :param body_bytes: longest body of a request.
    :param streams: most requests at one time; further ones are told to come back.
    :param idle_seconds: how long a provider may send nothing, and a client read nothing.
    """

    body_bytes: int = 32 * 1024 * 1024
    streams: int = 32
    idle_seconds: float = 300.0


class RefusedError(Exception):
    """A request that is answered with an HTTP error."""

    def __init__(self, status: int, text: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(text)
        self.status = status
        self.headers = list(headers)


class ProxyApp:
    """Makes requests for clients that have no keys.

    :param build: its plugins find models and keys, speak to providers, and see every request.
    :param token: what clients have to send as bearer token; empty: no token, for clients on this machine only.
    :param models: the names of the models that may be asked; all that the build finds, if there are none.
    :param origins: origins of web pages that may ask; ``*`` for all.
    :param headers: names of headers that clients may set in requests to providers.
    :param limits: what it takes on.
    :ivar stopped: whether it was stopped.
    """

    def __init__(
        self,
        build: Build,
        *,
        token: str = "",
        models: Iterable[str] = (),
        origins: Iterable[str] = (),
        headers: Iterable[str] = (),
        limits: ProxyLimits | None = None,
    ) -> None:
        self._build = build
        self._token = token.encode()
        self._allowed = tuple(models)
        self._models: dict[str, Model] = {}
        self._origins = frozenset(origin.rstrip("/") for origin in origins)
        self._headers = frozenset(name.lower() for name in headers)
        self._limits = limits or ProxyLimits()
        self._serving: set[asyncio.Task[Any]] = set()
        self.stopped = False
        named = [value for name, value in os.environ.items() if any(word in name.upper() for word in _SECRET_NAMES)]
        self._secrets = [token, *(value for value in named if len(value) > 7)]

    async def load_models(self) -> list[Model]:
        """Look up the models that may be asked, so that a wrong name is noticed before a client uses it.

        :raises ConfigError: a model is not known, or is itself behind a proxy.
        """
        for name in self._allowed:
            if name not in self._models:
                model = await self._resolve(name)
                self._models[name] = self._models[f"{model.provider}/{model.id}"] = model
        return list({id(model): model for model in self._models.values()}.values())

    def stop(self) -> None:
        """End every answer that is still on its way; the clients are told."""
        self.stopped = True
        for task in self._serving:
            task.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI defines it.

        :raises ValueError: it is no HTTP request.
        """
        if scope["type"] != "http":
            raise ValueError(f"the proxy answers HTTP requests only, got {scope['type']}")
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        cors: _Pairs = []
        try:
            cors = self._cors(headers)
            if scope["path"].removeprefix(scope.get("root_path", "")) != PATH:
                raise RefusedError(404, f"There is nothing here; requests go to {PATH}")
            if scope["method"] == "OPTIONS":
                await _answer(send, 204, b"", [*cors, *_PREFLIGHT])
                return
            self._check(scope["method"], headers)
            await self._serve(receive, send, cors)
        except RefusedError as refused:
            body = json.dumps({"error": redact(str(refused), self._secrets)}).encode()
            kind = (b"content-type", b"application/json")
            await _answer(send, refused.status, body, [kind, *cors, *refused.headers])
            _log.info("refused: %s %r", refused.status, str(refused))

    # --- who may ask ---

    def _cors(self, headers: dict[str, str]) -> _Pairs:
        """The headers that let a web page read the answer.

        :raises RefusedError: the page may not ask.
        """
        origin = headers.get("origin")
        if origin is None:
            return []
        if origin not in self._origins and "*" not in self._origins:
            if urlsplit(origin).netloc == headers.get("host"):
                return []
            raise RefusedError(403, "Pages of this origin may not ask; --cors ORIGIN lets them")
        return [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"origin")]

    def _check(self, method: str, headers: dict[str, str]) -> None:
        if method != "POST":
            raise RefusedError(405, f"Requests are made with POST, not {method}", [(b"allow", b"POST, OPTIONS")])
        if self._token:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            right = hmac.compare_digest(given.strip().encode("latin-1"), self._token)
            if scheme.lower() != "bearer" or not right:
                raise RefusedError(401, "The token is missing or wrong", [(b"www-authenticate", b"Bearer")])
        elif not is_loopback(f"http://{headers.get('host', '')}"):
            # A page of another name that resolves to this machine would ask in the user's place.
            raise RefusedError(403, "Without a token the proxy answers only to names of this machine")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise RefusedError(415, "The body has to be application/json")
        if headers.get("content-encoding", "identity") != "identity":
            raise RefusedError(415, "The body must not be compressed")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._limits.body_bytes:
            raise self._too_long()

    def _too_long(self) -> RefusedError:
        return RefusedError(413, f"The body is longer than {self._limits.body_bytes} bytes")

    # --- what is asked ---

    async def _serve(self, receive: Receive, send: Send, cors: _Pairs) -> None:
        if len(self._serving) >= self._limits.streams:
            raise RefusedError(503, "The proxy is busy: too many requests at one time", [(b"retry-after", b"1")])
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            await self._respond(receive, send, cors)
        except asyncio.CancelledError:
            if not self.stopped:
                raise
            raise RefusedError(503, STOPPED) from None
        finally:
            self._serving.discard(task)

    async def _respond(self, receive: Receive, send: Send, cors: _Pairs) -> None:
        body = await self._body(receive)
        if body is None:
            return
        try:
            asked = parse_request(body, self._headers)
        except BadRequestError as error:
            raise RefusedError(400, str(error)) from error
        del body
        model = await self._model(asked)
        await _Response(self, asked, model, receive, send, cors).serve()

    async def _body(self, receive: Receive) -> bytes | None:
        """The body of the request; ``None`` when the client went away."""
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return None
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self._limits.body_bytes:
                        raise self._too_long()
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise RefusedError(408, f"The body did not arrive within {BODY_SECONDS:g} s") from None

    async def _model(self, asked: ProxyRequest) -> Model:
        name = asked.model if asked.provider in _NAMELESS else f"{asked.provider}/{asked.model}"
        try:
            if not self._allowed:
                return await self._resolve(name)
            await self.load_models()
        except ConfigError as error:
            raise RefusedError(404, str(error)) from error
        model = self._models.get(name)
        if model is None:
            known = ", ".join(self._allowed)
            raise RefusedError(404, f"The model '{name[:200]}' is not served here; models: {known}")
        return model

    async def _resolve(self, name: str) -> Model:
        model = await self._build.resolve_model(name)
        if model.api == API:
            raise ConfigError(f"The model '{name}' is behind a proxy itself; name it where its provider is")
        return model

    def open(self, asked: ProxyRequest, model: Model, controller: AbortController) -> ResponseStream:
        """Begin the request to the provider."""
        names = {(asked.provider, asked.model): model}
        for known in self._models.values():
            names.setdefault((known.provider, known.id), known)
        options = {name: getattr(asked.options, name) for name in OPTIONS.values()}
        return stream(
            model,
            own_names(asked.context.messages, names),
            provider=self._build,
            system_prompt=asked.context.system_prompt,
            tools=asked.context.tools,
            signal=controller.signal,
            timeout_ms=round(self._limits.idle_seconds * 1000),
            **options,
        )

    def redacted(self, text: str) -> str:
        """Return a text without the proxy's secrets."""
        return redact(text, self._secrets)

    @property
    def idle_seconds(self) -> float:
        """How long a client may read nothing."""
        return self._limits.idle_seconds


class _Response:
    """The answer to one request, on its way to the client."""

    def __init__(
        self, app: ProxyApp, asked: ProxyRequest, model: Model, receive: Receive, send: Send, cors: _Pairs
    ) -> None:
        self._app = app
        self._asked = asked
        self._model = model
        self._receive = receive
        self._send = send
        self._cors = cors
        self._encoder = WireEncoder(model)
        self._controller = AbortController()
        self._sending = asyncio.Lock()
        self._begun = False
        self._gone = False
        self._over = False
        self._ended = "left"

    async def serve(self) -> None:
        """Send the events; a client that goes away ends the request to the provider at once."""
        began = time.monotonic()
        beside = [asyncio.create_task(self._watch(asyncio.current_task())), asyncio.create_task(self._beat())]
        try:
            async with self._app.open(self._asked, self._model, self._controller) as answer:
                async for event in answer:
                    data = b"".join(map(sse, map(self._shown, self._encoder.encode(event))))
                    await self._write(data, more=not isinstance(event, DoneEvent | ErrorEvent))
                    if isinstance(event, DoneEvent | ErrorEvent):
                        self._ended = event.message.stop_reason
        except asyncio.CancelledError:
            if not self._gone:
                await self._fail(STOPPED)
                if not self._app.stopped:
                    raise
        except TimeoutError:
            self._ended = "client stalled"
        except ConfigError as error:
            await self._fail(str(error), 404)
        except Exception:
            _log.exception("a request for %s/%s failed", self._model.provider, self._model.id)
            await self._fail(FAILED, 500)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            took = time.monotonic() - began
            _log.info("%s/%s: %s after %.1f s", self._model.provider, self._model.id, self._ended, took)

    def _shown(self, event: dict[str, Any]) -> dict[str, Any]:
        if "errorMessage" in event:
            event["errorMessage"] = self._app.redacted(event["errorMessage"])
        return event

    async def _write(self, data: bytes, *, more: bool) -> None:
        if self._gone or self._over:
            return
        async with self._sending, asyncio.timeout(self._app.idle_seconds):
            if not self._begun:
                self._begun = True
                head = {"type": "http.response.start", "status": 200, "headers": [*_STREAM_HEADERS, *self._cors]}
                await self._send(head)
            await self._send({"type": "http.response.body", "body": data, "more_body": more})
            self._over = not more

    async def _fail(self, text: str, status: int = 503) -> None:
        """Tell the client about a failure, as far as it can still be told.

        :raises RefusedError: nothing was sent so far.
        """
        self._ended = text
        if not self._begun and not self._gone:
            raise RefusedError(status, text)
        event = {"type": "error", "reason": "error", "errorMessage": self._app.redacted(text), "usage": _NO_USAGE}
        with suppress(Exception):
            await self._write(sse(event), more=False)

    async def _watch(self, serving: asyncio.Task[Any] | None) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        self._controller.abort()
        await asyncio.sleep(ABORT_SECONDS)
        if serving is not None:
            serving.cancel()

    async def _beat(self) -> None:
        """Send comments, so that nobody on the way takes the connection for dead while the provider is silent."""
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            if not self._sending.locked():
                await self._write(b": \n\n", more=True)


_NO_USAGE: Final = {
    "input": 0,
    "output": 0,
    "cacheRead": 0,
    "cacheWrite": 0,
    "totalTokens": 0,
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
}
_STREAM_HEADERS: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)
_PREFLIGHT: Final = (
    (b"access-control-allow-methods", b"POST"),
    (b"access-control-allow-headers", b"authorization, content-type"),
    (b"access-control-max-age", b"600"),
)


async def _answer(send: Send, status: int, body: bytes, headers: _Pairs) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
    await send({"type": "http.response.body", "body": body})
