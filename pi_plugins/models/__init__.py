"""Models and credentials: what models there are, which one is chosen, and what its requests carry.

The names are imported when they are first used.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterable, Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from pi_core import Command, ConfigError, hookimpl

if TYPE_CHECKING:
    import click

    from pi_core import Context, Model, RunContext, SelectionContext, StashKey, StreamEvent, StreamOptions

    from ._auth import RequestAuth as RequestAuth
    from .catalog import Catalog as Catalog
    from .catalog_commands import list_models as list_models
    from .credentials import CredentialStore as CredentialStore
    from .levels import clamp_level as clamp_level
    from .levels import supported_levels as supported_levels
    from .runtime import ModelRuntime as ModelRuntime
    from .shared import RUNTIME as RUNTIME
    from .shared import share_runtime as share_runtime
    from .shared import shared_runtime as shared_runtime

_HOMES: Final = {
    "RUNTIME": "shared",
    "Catalog": "catalog",
    "CredentialStore": "credentials",
    "ModelRuntime": "runtime",
    "RequestAuth": "_auth",
    "clamp_level": "levels",
    "list_models": "catalog_commands",
    "share_runtime": "shared",
    "shared_runtime": "shared",
    "supported_levels": "levels",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{home}", __name__), name)
    return value


@functools.cache
def _failure() -> StashKey[dict[str, str]]:
    """Where it is kept why a provider has no key, by provider, from the search for the key to the request."""
    from pi_core import StashKey

    return StashKey("models")


class ModelsPlugin:
    """Resolves names of models, and gives each request its key, headers and address.

    :param runtime: what it asks; the one that the process shares by default.
    """

    def __init__(self, runtime: ModelRuntime | None = None) -> None:
        self._runtime = runtime

    def _runtime_of(self, ctx: RunContext | SelectionContext) -> ModelRuntime:
        """What it asks: its own runtime, that of the run, or the one for the agent's folder."""
        from .shared import RUNTIME, shared_runtime

        if self._runtime is not None:
            return self._runtime
        stash, environ = getattr(ctx, "stash", {}), getattr(ctx, "environ", None)
        return stash.get(RUNTIME, None) or shared_runtime(environ or None)

    @hookimpl
    def register_commands(self) -> list[Command]:
        """Offer ``pi auth`` and ``pi models``."""
        return [
            Command(name="auth", help="Store, remove and check credentials.", load=_auth_command),
            Command(name="models", help="List, show, fetch and check models.", load=_models_command),
        ]

    @hookimpl
    async def resolve_model(self, name: str | None, ctx: SelectionContext) -> Model | None:
        """Answer from, in this order: a given server address, the name, the settings, keys, local servers."""
        return await self._runtime_of(ctx).resolve(name, ctx)

    @hookimpl
    async def get_api_key(self, provider: str, ctx: RunContext) -> str | None:
        """Return the key of a provider; the reason why it cannot be had is the answer to the request."""
        from ._auth import AbortedError, unless_aborted

        failures = ctx.stash.setdefault(_failure(), dict)
        failures.pop(provider, None)
        try:
            return await unless_aborted(self._runtime_of(ctx).api_key(provider), ctx.signal)
        except AbortedError:
            return None
        except ConfigError as error:
            failures[provider] = str(error)
            return None

    @hookimpl
    async def stream(
        self,
        model: Model,
        context: Context,
        options: StreamOptions,
        ctx: RunContext,
        *,
        proceed: Callable[..., Awaitable[AsyncIterable[StreamEvent]]],
    ) -> AsyncIterable[StreamEvent]:
        """Add headers, address and environment; what cannot be had makes the response an error."""
        from ._auth import AbortedError
        from .runtime import failed

        failure = ctx.stash.get(_failure(), {}).pop(model.provider, None)
        if failure is not None and not options.api_key:
            return failed(model, failure)
        try:
            model, options = await self._runtime_of(ctx).prepared(model, options)
        except AbortedError:
            return failed(model, "Request was aborted", aborted=True)
        except ConfigError as error:
            return failed(model, str(error))
        return await proceed(model=model, options=options)


def _auth_command() -> click.Command:
    from .auth_commands import auth

    return auth


def _models_command() -> click.Command:
    from .catalog_commands import models

    return models
