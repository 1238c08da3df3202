"""The responses API: ``POST {base_url}/responses``, spoken by OpenAI and by servers that follow it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from pi_core import Context, Model, Provider, StreamOptions, hookimpl

from ._wire import WireProvider

if TYPE_CHECKING:
    from pi_core import MessageAssembler

    from ._stream import Prepared

API: Final = "openai-responses"


class OpenAIResponsesProvider(WireProvider):
    """Speaks the responses API.

    Nothing is stored at the server: every request carries the whole conversation, reasoning included.
    """

    api = API

    def prepare(self, model: Model, context: Context, options: StreamOptions, assembler: MessageAssembler) -> Prepared:
        """Build a request and the decoder of its response."""
        from ._responses_prepare import prepare

        return prepare(model, context, options, assembler)


class OpenAIResponsesPlugin:
    """Registers the provider of the responses API."""

    @hookimpl
    def register_providers(self) -> Iterable[Provider]:
        """Contribute the provider."""
        return [OpenAIResponsesProvider()]
