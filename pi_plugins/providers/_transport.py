"""The connection below httpx: plain HTTP/1.1 whose reader joins the HTTP chunks of one network read.

A server that streams sends every event as an HTTP chunk of its own, and most of a client's CPU time goes into the
framing of these chunks, one at a time. Joined to one chunk per network read they cost next to nothing, and the parser
above sees the same body. HTTP/2 is not used: a response that is given up early is not reset there, so the server would
go on writing, and billing, an answer that nobody reads.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any, Final

import httpcore
import httpx

from ._errors import ResponseError

if TYPE_CHECKING:
    import ssl

_HEAD_LIMIT: Final = 65536
_SIZE_LIMIT: Final = 4096
_SIZE_LINE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n", re.IGNORECASE)
_HTTPCORE_ERRORS: Final = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
)
_INTERIM: Final = re.compile(rb"HTTP/1\.1 1(?!01)\d\d ")


class ChunkJoiner:
    """Rewrites the bytes of HTTP/1.1 responses so that the chunks that arrive together become one.

    Whatever it does not understand is passed on as it came, for the parser above to judge.
    """

    __slots__ = ("_buffer", "_left", "_state")

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Expect the head of a response: a request is being sent."""
        self._state = "head"
        self._buffer = b""
        self._left = 0

    def feed(self, data: bytes) -> bytes:
        """Take what was read and return what the parser shall see: nothing while a frame is incomplete."""
        if self._state == "pass":
            return data
        return self._head(data) if self._state == "head" else self._body(data)

    def finish(self) -> bytes:
        """Return what was held back when the connection ends."""
        held = self._buffer if self._state == "body" else b""
        self._state, self._buffer = "pass", b""
        return held

    def _head(self, data: bytes) -> bytes:
        seen = len(self._buffer)
        head = self._buffer + data
        end = head.find(b"\r\n\r\n")
        if not b"HTTP/1.1 ".startswith(head[:9]) or (end < 0 and len(head) > _HEAD_LIMIT):
            self._state, self._buffer = "pass", b""
            return data
        if end < 0:
            self._buffer = head
            return data
        end += 4
        passed, rest = head[seen:end], head[end:]
        self._buffer = b""
        if _INTERIM.match(head):
            return passed + self._head(rest)
        self._state = "body" if _CHUNKED.search(head, 0, end) else "pass"
        return passed + self.feed(rest)

    def _body(self, data: bytes) -> bytes:
        if self._buffer:
            data = self._buffer + data
            self._buffer = b""
        pieces: list[bytes] = []
        position, end, left = 0, len(data), self._left
        rest = b""
        while position < end:
            if left > 2:
                stop = min(position + left - 2, end)
                pieces.append(data[position:stop])
                left -= stop - position
                position = stop
                continue
            if left:
                if end - position < left:
                    self._buffer = data[position:]
                    break
                if data[position : position + 2] != b"\r\n":
                    # The chunk was closed properly above, so its bad end must not look like a good beginning.
                    self._state, rest = "pass", b"?" + data[position:]
                    break
                position += 2
                left = 0
                continue
            line = _SIZE_LINE.match(data, position)
            if line is None:
                if b"\r\n" in data[position:] or end - position > _SIZE_LIMIT:
                    self._state, rest = "pass", data[position:]
                else:
                    self._buffer = data[position:]
                break
            size = int(line[1], 16)
            if not size:
                self._state, rest = "pass", data[position:]
                break
            position = line.end()
            left = size + 2
        self._left = left
        body = b"".join(pieces)
        return (b"%x\r\n%s\r\n" % (len(body), body) if body else b"") + rest


class _Stream(httpcore.AsyncNetworkStream):
    """A network stream that reads through a joiner."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._joiner = ChunkJoiner()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        while True:
            data = await self._stream.read(max_bytes, timeout)
            joined = self._joiner.feed(data) if data else self._joiner.finish()
            if joined or not data:
                return joined

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._joiner.restart()
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        return _Stream(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Backend(httpcore.AsyncNetworkBackend):
    """Opens connections whose streams join chunks."""

    def __init__(self) -> None:
        self._backend = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        return _Stream(await self._backend.connect_tcp(host, port, timeout, local_address, socket_options))


class _Body(httpx.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._stream:
                yield part
        except _HTTPCORE_ERRORS as error:
            raise _as_httpx(error) from error

    async def aclose(self) -> None:
        await self._stream.aclose()


class JoiningTransport(httpx.AsyncBaseTransport):
    """An httpx transport over connections that join chunks. Certificates come from the environment, as httpx does it.

    :param keep_alive: seconds that an idle connection stays open.
    """

    def __init__(self, keep_alive: float) -> None:
        self._keep_alive = keep_alive
        self._pools: dict[bytes, httpcore.AsyncConnectionPool] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the response's body is read while it is iterated."""
        url = request.url
        core = httpcore.Request(
            method=request.method,
            url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            response = await self._pool(url.raw_scheme).handle_async_request(core)
        except _HTTPCORE_ERRORS as error:
            raise _as_httpx(error) from error
        return httpx.Response(
            status_code=response.status,
            headers=response.headers,
            stream=_Body(response.stream),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            await pool.aclose()

    def _pool(self, scheme: bytes) -> httpcore.AsyncConnectionPool:
        if scheme not in self._pools:
            self._pools[scheme] = httpcore.AsyncConnectionPool(
                # Loading the certificates takes longer than a request to a local server.
                ssl_context=_certificates() if scheme == b"https" else None,
                max_connections=None,
                keepalive_expiry=self._keep_alive,
                network_backend=_Backend(),
            )
        return self._pools[scheme]


def _certificates() -> ssl.SSLContext:
    file = os.environ.get("SSL_CERT_FILE")
    if file and not os.path.isfile(file):
        raise ResponseError(f"SSL_CERT_FILE names {file}, which is no file")
    try:
        return httpx.create_ssl_context()
    except OSError as error:
        raise ResponseError(f"The certificates of {file or 'this machine'} cannot be loaded: {error}") from error


def _as_httpx(error: Exception) -> httpx.TransportError:
    kind = getattr(httpx, type(error).__name__, httpx.TransportError)
    mapped: httpx.TransportError = kind(str(error))
    return mapped
