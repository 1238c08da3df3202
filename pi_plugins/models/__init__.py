"""Models and credentials: what models there are, which one is chosen, and what its requests carry.

The names are imported when they are first used.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterable, Awaitable, Callable
from typing import TYPE_CHECKING

from pi_core import Command, ConfigError, hookimpl
from pi_plugins._lazy import names_of

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

__getattr__, __dir__ = names_of(
    __name__,
    _auth=("RequestAuth",),
    catalog=("Catalog",),
    catalog_commands=("list_models",),
    credentials=("CredentialStore",),
    levels=("clamp_level", "supported_levels"),
    runtime=("ModelRuntime",),
    shared=("RUNTIME", "share_runtime", "shared_runtime"),
)


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
