"""What a request carries beside its messages: the key, headers, the address, and the provider's own environment."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from pi_core import ConfigError

from ._table import ModelTable
from .keys import Keys
from .templates import Template, UnresolvedError

if TYPE_CHECKING:
    from pi_core import AbortSignal, Model

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RequestAuth:
    """What is added to a request. Its ``repr`` shows no values.

    :param headers: by lower-case name; ``None`` removes one.
    :param base_url: the address when it is another one than that of the model.
    :param env: environment variables that count for the provider only.
    """

    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    base_url: str | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)


class AbortedError(Exception):
    """The signal of the request was aborted meanwhile."""


async def request_auth(table: ModelTable, keys: Keys, model: Model, api_key: str | None = None) -> RequestAuth:
    """Find what a request to a model carries.

    :param api_key: a key that was given with the request; no other is looked for then.
    :raises ConfigError: a key, a header or the address is configured and cannot be had; says where, and why.
    """
    provider = model.provider
    if api_key is None:
        try:
            found = await keys.key(provider)
        except UnresolvedError as error:
            raise ConfigError(f"No API key for provider: {provider}. {error}") from None
        api_key = None if found is None else found.value
    environ = keys.environ(provider)
    entry = table.entry(provider)
    headers: dict[str, str | None] = {}
    if entry is not None:
        given = await _resolved(entry.fields.get("headers", {}), environ, f"provider '{provider}' ({entry.place})")
        headers.update(given)
    own = table.model_headers(provider, model.id)
    if own:
        headers.update(await _resolved(own, environ, f"model '{provider}/{model.id}'"))
    if entry is not None and entry.fields.get("authHeader"):
        if not api_key:
            raise ConfigError(f"{entry.place}: providers.{provider}.authHeader needs an API key, and there is none")
        headers["authorization"] = f"Bearer {api_key}"
    return RequestAuth(api_key, headers, _address(model, environ), dict(keys.own_environ(provider)))


def merged_headers(below: Mapping[str, str | None], above: Mapping[str, str | None] | None) -> dict[str, str | None]:
    """Return headers by lower-case name, of which the later ones win."""
    return {**below, **{name.lower(): value for name, value in (above or {}).items()}}


async def unless_aborted(work: Awaitable[T], signal: AbortSignal | None) -> T:
    """Wait for some work, and stop it when a signal is aborted.

    :raises AbortedError: the signal was aborted.
    """
    if signal is None:
        return await work
    import asyncio

    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        loop.call_soon_threadsafe(task.cancel)

    forget = signal.on_abort(stop)
    try:
        return await task
    except asyncio.CancelledError:
        caller = asyncio.current_task()
        if signal.aborted and not (caller is not None and caller.cancelling()):
            raise AbortedError from None
        raise
    finally:
        forget()


async def _resolved(headers: Mapping[str, str | None], environ: Mapping[str, str], owner: str) -> dict[str, str | None]:
    values: dict[str, str | None] = {}
    for name, source in headers.items():
        try:
            values[name.lower()] = None if source is None else await Template(source).resolve(environ)
        except UnresolvedError as error:
            raise ConfigError(f"The header '{name}' of {owner} cannot be had: {error}") from None
    return values


def _address(model: Model, environ: Mapping[str, str]) -> str | None:
    if "$" not in model.base_url:
        return None
    try:
        return Template(model.base_url).expand(environ)
    except UnresolvedError as error:
        raise ConfigError(f"The address of {model.provider}/{model.id} cannot be had: {error}") from None
