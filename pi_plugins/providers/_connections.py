"""Connections that stay open between requests. httpx is imported when the first one is made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Final, TypeAlias
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import httpx

TransportFactory: TypeAlias = "Callable[[], httpx.AsyncBaseTransport]"
"""Makes the transport below httpx, for connections that another library opens."""

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
"""This machine, which no proxy of the environment leads to."""

CONNECT_SECONDS: Final = 10.0
KEEP_ALIVE_SECONDS: Final = 60.0


class Connections:
    """The connections of all requests of one provider: one httpx client per event loop, closed with the loop.

    Proxies and certificates come from the environment as it is when a loop makes its first request.

    :param transport: makes the transport below httpx; by default it is chosen here.
    """

    def __init__(self, transport: TransportFactory | None = None) -> None:
        self._transport = transport
        self._clients: WeakKeyDictionary[
            asyncio.AbstractEventLoop, tuple[httpx.AsyncClient, AsyncGenerator[None, None]]
        ] = WeakKeyDictionary()

    async def client(self) -> httpx.AsyncClient:
        """Return the client of the running loop."""
        loop = asyncio.get_running_loop()
        known = self._clients.get(loop)
        if known is None:
            client = self._new_client()
            closer = self._close_with_loop(loop, client)
            self._clients[loop] = known = client, closer
            await anext(closer)
        return known[0]

    def _new_client(self) -> httpx.AsyncClient:
        from urllib.request import getproxies

        import httpx

        from ._transport import JoiningTransport

        direct = JoiningTransport(KEEP_ALIVE_SECONDS) if self._transport is None else self._transport()
        proxies = self._transport is None and {"http", "https", "all"} & set(getproxies())
        return httpx.AsyncClient(
            transport=None if proxies else direct,
            mounts={f"all://{host}": direct for host in LOOPBACK} if proxies else None,
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=None, keepalive_expiry=KEEP_ALIVE_SECONDS),
        )

    async def _close_with_loop(
        self, loop: asyncio.AbstractEventLoop, client: httpx.AsyncClient
    ) -> AsyncGenerator[None, None]:
        # A loop that shuts down closes the async generators that are still open, and nothing else of ours.
        try:
            yield
        finally:
            self._clients.pop(loop, None)
            await client.aclose()
