"""Models and credentials: turns a name into a model, finds one when none is named, and gives each request its key."""

from __future__ import annotations

import os

from pi_core import Model, RunContext, SelectionContext, hookimpl

from ._known import PROVIDERS


class ModelsPlugin:
    """Resolves ``provider/id`` and, without a name, takes a key in the environment or a local server that runs."""

    @hookimpl
    async def resolve_model(self, name: str | None, ctx: SelectionContext) -> Model | None:
        """Answer from, in this order: a given server address, the provider named, keys, local servers."""
        from ._selection import resolve

        return await resolve(name, ctx)

    @hookimpl
    def get_api_key(self, provider: str, ctx: RunContext) -> str | None:
        """Return the key of a provider from the environment."""
        known = PROVIDERS.get(provider)
        return None if known is None else next((os.environ[key] for key in known.keys if os.environ.get(key)), None)
