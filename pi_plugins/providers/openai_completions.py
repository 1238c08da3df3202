"""The chat completions API: ``POST {base_url}/chat/completions``, spoken by OpenAI and by most other servers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from pi_core import Context, Model, Provider, StreamOptions, hookimpl

from ._wire import WireProvider

if TYPE_CHECKING:
    from pi_core import MessageAssembler

    from ._stream import Prepared

API: Final = "openai-completions"


class OpenAICompletionsProvider(WireProvider):
    """Speaks the chat completions API."""

    api = API

    def prepare(self, model: Model, context: Context, options: StreamOptions, assembler: MessageAssembler) -> Prepared:
        """Build a request and the decoder of its response."""
        from ._completions_compat import compat_of
        from ._completions_decode import CompletionsDecoder
        from ._completions_request import build_payload, session_headers
        from ._grammar import grammar_arguments
        from ._headers import api_address, default_headers
        from ._stream import Prepared

        compat = compat_of(model)
        grammar_tools = grammar_arguments(context.tools, supported=compat.supports_openai_grammar_tools)
        headers = {**default_headers(), **session_headers(compat, options)}
        if options.api_key and options.api_key.strip():
            headers["authorization"] = f"Bearer {options.api_key.strip()}"
        return Prepared(
            url=f"{api_address(model)}/chat/completions",
            headers=headers,
            key_headers=("authorization", "cf-aig-authorization", "api-key", "x-api-key"),
            payload=build_payload(model, compat, context, options),
            decoder=CompletionsDecoder(assembler, model, compat, grammar_tools),
        )


class OpenAICompletionsPlugin:
    """Registers the provider of the chat completions API."""

    @hookimpl
    def register_providers(self) -> Iterable[Provider]:
        """Contribute the provider."""
        return [OpenAICompletionsProvider()]
