"""How a model is chosen: what was named, else a key in the environment, else a local server that answers."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from pi_core import ConfigError, Model, SelectionContext

from ._known import LOCAL_SERVERS, PROVIDERS, KnownProvider, LocalServer

PROBE_SECONDS = 0.5
_LIST_SECONDS = 2.0
_LIMIT = 1 << 20


async def resolve(name: str | None, ctx: SelectionContext) -> Model | None:
    """Return the model for a name, or a default for ``None``; ``None`` when nothing here fits.

    :raises ConfigError: the name cannot be used; says what to do.
    """
    if ctx.base_url:
        return await _at_address(name, ctx.base_url, ctx.api or "openai-completions", ctx)
    if name is None:
        return _by_key(ctx) or await _by_local_server(ctx)
    provider, slash, model_id = name.partition("/")
    if slash and provider in PROVIDERS:
        return _model(provider, model_id, PROVIDERS[provider])
    server = next((server for server in LOCAL_SERVERS if slash and server.name == provider), None)
    if server is not None:
        return Model(
            id=model_id, name=model_id, api="openai-completions", provider=server.name, base_url=server.base_url
        )
    if not slash and provider in PROVIDERS:
        raise ConfigError(f"'{name}' is a provider: name a model too, as {name}/MODEL")
    if slash:
        close = difflib.get_close_matches(provider, [*PROVIDERS, *(server.name for server in LOCAL_SERVERS)], n=1)
        if close:
            raise ConfigError(f"There is no provider '{provider}', did you mean '{close[0]}/{model_id}'?")
        return None
    return _by_bare_id(name, ctx)


def _model(provider: str, model_id: str, known: KnownProvider) -> Model:
    return Model(id=model_id, name=model_id, api=known.api, provider=provider, base_url=known.base_url)


def _with_key(environ: Mapping[str, str]) -> list[tuple[str, str, KnownProvider]]:
    return [(provider, key, known) for provider, known in PROVIDERS.items() for key in known.keys if environ.get(key)]


def _by_key(ctx: SelectionContext) -> Model | None:
    for provider, key, known in _with_key(ctx.environ):
        if known.model:
            ctx.notice(f"Using {provider}/{known.model}, because {key} is set. Name another with --model")
            return _model(provider, known.model, known)
    return None


def _by_bare_id(name: str, ctx: SelectionContext) -> Model | None:
    found = _with_key(ctx.environ)
    if not found:
        return None
    provider, key, known = found[0]
    ctx.notice(f"Taking '{name}' as {provider}/{name}, because {key} is set. Name it as provider/id to choose another")
    return _model(provider, name, known)


async def _by_local_server(ctx: SelectionContext) -> Model | None:
    answers = await asyncio.gather(*(_served(server) for server in LOCAL_SERVERS))
    for server, models in zip(LOCAL_SERVERS, answers, strict=True):
        if models:
            ctx.notice(
                f"Using {server.name}/{models[0]} from {server.label} at {server.base_url}. Name another with --model"
            )
            return Model(
                id=models[0], name=models[0], api="openai-completions", provider=server.name, base_url=server.base_url
            )
    return None


async def _at_address(name: str | None, base_url: str, api: str, ctx: SelectionContext) -> Model:
    if not _is_address(base_url):
        raise ConfigError(f"--base-url needs an address such as http://127.0.0.1:8080/v1, got '{base_url}'")
    address = base_url.rstrip("/")
    if name is None:
        models = await _list_models(address)
        if not models:
            raise ConfigError(f"{address}/models names no model: is the server running? Name one with --model")
        name = models[0]
        ctx.notice(f"Using {name}, the first model that {address} names. Name another with --model")
    provider, slash, model_id = name.partition("/")
    if slash and provider in PROVIDERS:
        name = model_id
    else:
        provider = "custom"
    return Model(id=name, name=name, api=api, provider=provider, base_url=address)


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
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
