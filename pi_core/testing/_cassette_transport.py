"""The transport below httpx that plays and records a cassette."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import httpx

from .cassette import body_of

if TYPE_CHECKING:
    from .cassette import Cassette


class CassetteTransport(httpx.AsyncBaseTransport):
    """Answers requests from a cassette, or lets a network answer and keeps what it said.

    :param network: only used while recording.
    """

    def __init__(self, cassette: Cassette, network: httpx.AsyncBaseTransport | None) -> None:
        self._cassette = cassette
        self._network = network

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        body = await request.aread()
        asked = (request.method, str(request.url), request.headers.multi_items(), body)
        if not self._cassette.record:
            recorded = self._cassette.find(*asked)
            headers = [(name, value) for name, value in recorded["headers"]]
            return httpx.Response(recorded["status"], headers=headers, stream=_Played(body_of(recorded)))
        if self._network is None:
            self._network = httpx.AsyncHTTPTransport()
        request.headers["accept-encoding"] = "identity"
        response = await self._network.handle_async_request(request)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=_Recorded(response.stream, asked, response, self._cassette),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close the network."""
        if self._network is not None:
            await self._network.aclose()


class _Played(httpx.AsyncByteStream):
    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk


class _Recorded(httpx.AsyncByteStream):
    """Passes on a body; when it is closed, what arrived of it goes to the cassette."""

    def __init__(
        self,
        stream: httpx.AsyncByteStream,
        asked: tuple[str, str, list[tuple[str, str]], bytes],
        response: httpx.Response,
        cassette: Cassette,
    ) -> None:
        self._stream = stream
        self._asked = asked
        self._response = response
        self._cassette: Cassette | None = cassette
        self._chunks: list[bytes] = []

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._chunks.append(chunk)
            yield chunk

    async def aclose(self) -> None:
        cassette, self._cassette = self._cassette, None
        if cassette is not None:
            response = self._response
            cassette.keep(self._asked, response.status_code, response.headers.multi_items(), self._chunks)
        await self._stream.aclose()
