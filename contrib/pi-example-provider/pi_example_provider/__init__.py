"""Mistral's own API as a provider. httpx is imported with the first request."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING

from pi_core import Context, Model, Provider, StreamEvent, StreamOptions, hookimpl

if TYPE_CHECKING:
    import httpx

API = "mistral-conversations"
ADDRESS = "https://api.mistral.ai"


class MistralProvider:
    """Speaks ``POST {base_url}/v1/chat/completions`` as Mistral's servers do.

    :param transport: what requests go through; httpx's own by default.
    """

    api = API

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._transport = transport

    def stream(self, model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        """Make one request and yield its events. Never raises; failures are the last event."""
        from ._stream import stream_response

        return stream_response(model, context, options, self._transport)


class MistralPlugin:
    """Registers the provider, and sends ``mistral/MODEL`` to it."""

    requires = "pi-agent-framework>=0.1.0"

    @hookimpl
    def register_providers(self) -> Iterable[Provider]:
        """Offer the provider."""
        return [MistralProvider()]

    @hookimpl
    async def resolve_model(self, name: str | None) -> Model | None:
        """Know every model of Mistral by its id."""
        provider, _, model = (name or "").partition("/")
        if provider != "mistral" or not model:
            return None
        return Model(id=model, name=model, api=API, provider="mistral", base_url=ADDRESS, input=["text", "image"])

    @hookimpl
    async def get_api_key(self, provider: str) -> str | None:
        """Take the key from the environment."""
        return os.environ.get("MISTRAL_API_KEY") if provider == "mistral" else None
