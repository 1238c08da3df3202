"""The proxy: other machines make the requests, so that this one needs no keys. And the server that makes them.

A model of the api ``proxy`` is served by the proxy at its base URL. :class:`ProxyProvider` with an address sends any
model through that proxy: ``Agent(stream=ProxyProvider("https://proxy.example", token).stream, ...)``.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, Iterable
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict

from pi_core import (
    Command,
    ConfigError,
    Context,
    Model,
    Provider,
    RunContext,
    SelectionContext,
    StreamEvent,
    StreamOptions,
    hookimpl,
)

if TYPE_CHECKING:
    import click

    from ._connections import Connections

API: Final = "proxy"
URL_VARIABLE: Final = "PI_PROXY_URL"
TOKEN_VARIABLE: Final = "PI_PROXY_TOKEN"


class ProxyProvider:
    """Makes requests through a proxy.

    :param url: the proxy's address up to, not including, ``/api/stream``. Without it, it is the base URL of a model of
        the api ``proxy``, else what ``PI_PROXY_URL`` says.
    :param token: what the proxy wants to see. Without it, it is the request's key, else what ``PI_PROXY_TOKEN`` says.
    :param connections: where connections come from and stay open; its own by default.
    """

    def __init__(self, url: str = "", token: str = "", *, connections: Connections | None = None) -> None:
        self._url = url
        self._token = token
        self._connections = connections

    @property
    def api(self) -> str:
        """The wire protocol's name."""
        return API

    def stream(self, model: Model, context: Context, options: StreamOptions) -> AsyncIterable[StreamEvent]:
        """Make one request and yield its events. Never raises; failures are the last event.

        A refused request is not made again unless ``max_retries`` says so: the proxy has tried by itself.
        """
        from ._connections import Connections
        from ._headers import environment
        from ._proxy_client import Proxy, stream_through

        if self._connections is None:
            self._connections = Connections()
        base_url, key = (model.base_url, options.api_key) if model.api == API else ("", None)
        proxy = Proxy(
            self._url or base_url or environment(URL_VARIABLE, options) or "",
            (self._token or key or environment(TOKEN_VARIABLE, options) or "").strip(),
        )
        return stream_through(proxy, model, context, options, self._connections)


class ProxyPlugin:
    """Registers the provider, the models ``proxy/PROVIDER/ID``, and the command ``pi proxy``."""

    class Options(BaseModel):
        """Options of the plugin.

        :param url: the address of the proxy; ``PI_PROXY_URL`` by default.
        """

        model_config = ConfigDict(extra="forbid")

        url: str = ""

    def __init__(self) -> None:
        self._options = self.Options()

    @hookimpl
    def configure(self, options: Options) -> None:
        """Take the options."""
        self._options = options

    @hookimpl
    def register_providers(self) -> Iterable[Provider]:
        """Contribute the provider."""
        return [ProxyProvider()]

    @hookimpl
    def register_commands(self) -> Iterable[Command]:
        """Offer ``pi proxy``."""
        return [Command(name="proxy", help="Serve models to machines without keys.", load=_command)]

    @hookimpl(tryfirst=True)
    async def resolve_model(self, name: str | None, ctx: SelectionContext) -> Model | None:
        """Know ``proxy/PROVIDER/ID``, and ``proxy/NAME`` for a name that the proxy knows."""
        if name is None or not name.startswith(f"{API}/") or ctx.base_url:
            return None
        provider, slash, model_id = name.removeprefix(f"{API}/").partition("/")
        if not slash:
            provider, model_id = API, provider
        url = self._options.url or ctx.environ.get(URL_VARIABLE, "")
        if not provider or not model_id:
            raise ConfigError(f"'{name}' names no model: name it as proxy/PROVIDER/ID")
        if not url:
            raise ConfigError(
                f"'{name}' needs the address of a proxy: set the environment variable {URL_VARIABLE}, or the option "
                "'url' of the plugin 'proxy'"
            )
        return Model(id=model_id, name=model_id, api=API, provider=provider, base_url=url)

    @hookimpl(tryfirst=True)
    def get_api_key(self, ctx: RunContext) -> str | None:
        """Return the token for a model behind a proxy; an empty text without one, so that no other key goes there."""
        return os.environ.get(TOKEN_VARIABLE, "") if ctx.model.api == API else None


def _command() -> click.Command:
    from ._proxy_command import proxy

    return proxy
