"""The responses API: ``POST {base_url}/responses``, spoken by OpenAI and by servers that follow it."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from typing import TYPE_CHECKING, Final

from pi_core import Context, Model, Provider, StreamEvent, StreamOptions, hookimpl

if TYPE_CHECKING:
    from pi_core import MessageAssembler

    from ._connections import Connections
    from ._stream import Prepared

API: Final = "openai-responses"


class OpenAIResponsesProvider:
    """Speaks the responses API.

    Nothing is stored at the server: every request carries the whole conversation, reasoning included.

    :param connections: where connections come from and stay open; its own by default.
    """

    def __init__(self, connections: Connections | None = None) -> None:
        self._connections = connections

    @property
    def api(self) -> str:
        """The wire protocol's name."""
        return API

    def stream(self, model: Model, context: Context, options: StreamOptions) -> AsyncIterable[StreamEvent]:
        """Make one request and yield its events. Never raises; failures are the last event."""
        from ._connections import Connections
        from ._stream import stream_response

        if self._connections is None:
            self._connections = Connections()
        return stream_response(self, model, context, options, self._connections)

    def prepare(self, model: Model, context: Context, options: StreamOptions, assembler: MessageAssembler) -> Prepared:
        """Build a request and the decoder of its response.

        :raises ResponseError: the model has no address.
        :raises ValueError: a tool asks for what the server cannot do.
        """
        from ._responses_prepare import prepare

        return prepare(model, context, options, assembler)


class OpenAIResponsesPlugin:
    """Registers the provider of the responses API."""

    @hookimpl
    def register_providers(self) -> Iterable[Provider]:
        """Contribute the provider."""
        return [OpenAIResponsesProvider()]
