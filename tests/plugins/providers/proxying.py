"""A proxy on loopback with a scripted provider behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import httpx

from pi_core import Build, Context, Model, SelectionContext, StreamEvent, StreamOptions, hookimpl
from pi_core.testing import SCRIPTED_MODEL, Reply, ScriptedProvider
from pi_plugins.providers._proxy_app import ProxyApp
from pi_plugins.providers._proxy_command import listen, make_server
from pi_plugins.providers.proxy import ProxyProvider

TOKEN = "the-token-of-the-proxy"


class Backend:
    """What the proxy serves: a scripted model, and whatever other providers and models a test brings."""

    def __init__(self, *replies: Reply | str, providers: Iterable[Any] = (), models: Iterable[Model] = ()) -> None:
        self.provider = ScriptedProvider(*replies)
        self._providers = list(providers)
        self._models = {f"{model.provider}/{model.id}": model for model in (SCRIPTED_MODEL, *models)}

    @hookimpl
    def register_providers(self) -> list[Any]:
        return [self.provider, *self._providers]

    @hookimpl
    async def resolve_model(self, name: str | None, ctx: SelectionContext) -> Model | None:
        return self._models.get(name or "", self._models["scripted/scripted"] if name == "bare" else None)


class Proxied:
    """A proxy that runs.

    :ivar url: its address.
    """

    def __init__(self, url: str, backend: Backend, server: Any) -> None:
        self.url = url
        self.backend = backend
        self.server = server
        self.client = ProxyProvider(url, TOKEN)

    async def ask(
        self, context: Context, model: Model = SCRIPTED_MODEL, client: ProxyProvider | None = None, **options: Any
    ) -> list[StreamEvent]:
        """The events of a request through the proxy."""
        stream = (client or self.client).stream(model, context, StreamOptions(**options))
        return [event async for event in stream]

    async def post(self, content: bytes | AsyncIterator[bytes], **headers: str) -> httpx.Response:
        """The answer to a request that is made by hand."""
        given = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {name: value for name, value in given.items() if value}
        async with httpx.AsyncClient(trust_env=False) as client:
            return await client.post(f"{self.url}/api/stream", content=content, headers=sent)


@asynccontextmanager
async def proxied(
    backend: Backend, *plugins: object, token: str = TOKEN, grace: int = 10, **options: Any
) -> AsyncIterator[Proxied]:
    """Run a proxy."""
    app = ProxyApp(Build([*plugins, backend], only=[]), token=token, **options)
    listening = listen("127.0.0.1", 0)
    server = make_server(app, grace)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield Proxied(f"http://127.0.0.1:{listening.getsockname()[1]}", backend, server)
    finally:
        server.should_exit = True
        await serving
        listening.close()
