"""Models that no catalog knows: those of a server whose address is given, and of servers on this machine."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pi_core import ConfigError
from pi_plugins.config.secrets import without_secrets

from ._known import LOCAL_SERVERS, LocalServer

if TYPE_CHECKING:
    from pi_core import Model, SelectionContext

PROBE_SECONDS = 0.5
_LIST_SECONDS = 2.0
_LIMIT = 1 << 20
LOCAL_API = "openai-completions"


def local_model(name: str) -> Model | None:
    """Return the model of ``SERVER/ID`` when the name is that of a server people run on their own machine."""
    provider, slash, model_id = name.partition("/")
    server = next((server for server in LOCAL_SERVERS if server.name == provider), None)
    return None if server is None or not slash or not model_id else _model(server, model_id)


async def running_model(ctx: SelectionContext, name: str | None = None) -> Model | None:
    """Return the first model of the first server on this machine that answers, and tell so.

    :param name: only the server of this name is asked.
    """
    servers = [server for server in LOCAL_SERVERS if name in (None, server.name)]
    answers = await asyncio.gather(*(_served(server) for server in servers))
    for server, models in zip(servers, answers, strict=True):
        if models:
            ctx.notice(
                f"Using {server.name}/{models[0]} from {server.label} at {server.base_url}. Name another with --model"
            )
            return _model(server, models[0])
    return None


async def address_of(name: str | None, ctx: SelectionContext) -> tuple[str, str]:
    """Return the address that was given, and the name of the model: its first one when none was named.

    :raises ConfigError: it is no address, or it names no model.
    """
    given = ctx.base_url or ""
    if not _is_address(given):
        raise ConfigError(
            "--base-url needs an address such as http://127.0.0.1:8080/v1, without user and query, got "
            f"'{without_secrets(given)}'"
        )
    address = given.rstrip("/")
    if name is None:
        models = await _list_models(address)
        if not models:
            raise ConfigError(f"{address}/models names no model: is the server running? Name one with --model")
        name = models[0]
        ctx.notice(f"Using {name}, the first model that {address} names. Name another with --model")
    return address, name


def _model(server: LocalServer, model_id: str) -> Model:
    from pi_core import Model

    return Model(id=model_id, name=model_id, api=LOCAL_API, provider=server.name, base_url=server.base_url)


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        plain = parts.username is None and not parts.query and not parts.fragment
        return plain and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


async def _served(server: LocalServer) -> list[str]:
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", server.port), PROBE_SECONDS)
    except (OSError, TimeoutError):
        return []
    writer.close()
    return await _list_models(server.base_url, proxies=False)


async def _list_models(base_url: str, *, proxies: bool = True) -> list[str]:
    """Ask a server for its models; an empty list when it has none or is no such server.

    :param proxies: whether the proxies that the environment names are used.
    """
    import httpx

    try:
        async with asyncio.timeout(_LIST_SECONDS), httpx.AsyncClient(timeout=None, trust_env=proxies) as client:
            response = await client.get(f"{base_url}/models")
            if response.status_code != 200 or len(response.content) > _LIMIT:
                return []
            return _model_ids(response.json())
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError):
        return []


def _model_ids(data: Any) -> list[str]:
    entries = data.get("data") if isinstance(data, dict) else None
    if not isinstance(entries, list):
        return []
    return [entry["id"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
