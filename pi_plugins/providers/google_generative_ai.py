"""The Gemini API: ``POST {base_url}/models/{id}:streamGenerateContent``, spoken by Google and by servers like it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from pi_core import Context, Model, Provider, StreamOptions, hookimpl

from ._wire import WireProvider

if TYPE_CHECKING:
    from pi_core import MessageAssembler

    from ._stream import Prepared

API: Final = "google-generative-ai"


class GoogleGenerativeAIProvider(WireProvider):
    """Speaks the Gemini API."""

    api = API

    def prepare(self, model: Model, context: Context, options: StreamOptions, assembler: MessageAssembler) -> Prepared:
        """Build a request and the decoder of its response."""
        from ._google_decode import GoogleDecoder
        from ._google_request import build_payload, model_path
        from ._headers import api_address, default_headers
        from ._stream import Prepared

        headers = default_headers() | {"accept": "*/*"}
        key = (options.api_key or "").strip()
        if key:
            headers["x-goog-api-key"] = key
        return Prepared(
            url=f"{api_address(model)}/{model_path(model)}:streamGenerateContent?alt=sse",
            headers=headers,
            key_headers=("x-goog-api-key", "authorization"),
            payload=build_payload(model, context, options),
            decoder=GoogleDecoder(assembler, model),
            error_form="{body}",
        )


class GoogleGenerativeAIPlugin:
    """Registers the provider of the Gemini API."""

    @hookimpl
    def register_providers(self) -> Iterable[Provider]:
        """Contribute the provider."""
        return [GoogleGenerativeAIProvider()]
