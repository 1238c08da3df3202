"""Public catalogs over HTTP: bounded in time and size, and asked only whether something is new."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pi_core
from pi_core import ConfigError
from pi_plugins.config.secrets import without_secrets

if TYPE_CHECKING:
    import httpx

SIZE_LIMIT: Final = 64 * 1024 * 1024
"""Bytes, after decompression. The largest public catalog is a twentieth of it."""

_HEADERS: Final = {"accept": "application/json", "user-agent": f"pi/{pi_core.__version__}"}
_NOT_MODIFIED: Final = 304


class SourceError(ConfigError):
    """A source that gave no catalog; the text says why."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a source gave.

    :param data: the JSON.
    :param size: bytes received.
    :param etag: what to show next time, to be told that nothing is new.
    :param unchanged: nothing is new, so that there is no data.
    """

    data: Any
    size: int
    etag: str | None
    unchanged: bool = False


async def fetch_all(
    addresses: Mapping[str, str], etags: Mapping[str, str], *, seconds: float, proxy: str | None = None
) -> dict[str, Fetched | SourceError]:
    """Ask all sources at once.

    :param addresses: the address of each source, by its name.
    :param etags: what each source gave last, where its data is still in use.
    :param seconds: time for each answer, to its last byte.
    :param proxy: address of a proxy; what the environment says without one.
    :raises ConfigError: the proxy is no address of one.
    """
    import httpx

    async def ask(name: str) -> Fetched | SourceError:
        try:
            async with asyncio.timeout(seconds):
                return await _fetch(client, addresses[name], etags.get(name))
        except TimeoutError:
            why = f"no complete answer within {seconds:g} s"
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            why = f"{type(error).__name__}: {error}".rstrip(": ")
        except SourceError as error:
            why = str(error)
        return SourceError(without_secrets(f"{addresses[name]}: {why}"))

    try:
        made = httpx.AsyncClient(headers=_HEADERS, follow_redirects=True, timeout=seconds, proxy=proxy)
    except (ValueError, ImportError, httpx.InvalidURL):
        raise ConfigError("The proxy cannot be used: expected an address such as http://HOST:PORT") from None
    async with made as client:
        answers = await asyncio.gather(*map(ask, addresses))
    return dict(zip(addresses, answers, strict=True))


async def _fetch(client: httpx.AsyncClient, address: str, etag: str | None) -> Fetched:
    headers = {} if etag is None else {"if-none-match": etag}
    async with client.stream("GET", address, headers=headers) as response:
        if response.status_code == _NOT_MODIFIED and etag is not None:
            return Fetched(None, 0, etag, unchanged=True)
        if not response.is_success:
            raise SourceError(f"the server answered {response.status_code} {response.reason_phrase}")
        content = bytearray()
        async for chunk in response.aiter_bytes():
            content += chunk
            if len(content) > SIZE_LIMIT:
                raise SourceError(f"more than {SIZE_LIMIT // (1024 * 1024)} MB")
        try:
            data = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise SourceError(f"not JSON: {error}") from None
        return Fetched(data, len(content), response.headers.get("etag"))
