"""The messages API: ``POST {base_url}/v1/messages``, spoken by Anthropic and by servers that follow it."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from typing import TYPE_CHECKING, Final

from pi_core import Context, Model, Provider, StreamEvent, StreamOptions, hookimpl

if TYPE_CHECKING:
    from pi_core import MessageAssembler

    from ._anthropic_sessions import Sessions
    from ._connections import Connections
    from ._stream import Prepared

API: Final = "anthropic-messages"


class AnthropicMessagesProvider:
    """Speaks the messages API.

    :param connections: where connections come from and stay open; its own by default.
    """

    def __init__(self, connections: Connections | None = None) -> None:
        self._connections = connections
        self._sessions: Sessions | None = None

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
        from ._anthropic_prepare import RequestMaker
        from ._anthropic_sessions import Sessions

        if self._sessions is None:
            self._sessions = Sessions()
        return RequestMaker(model, context, options, assembler, self._sessions).make()


class AnthropicMessagesPlugin:
    """Registers the provider of the messages API."""

    @hookimpl
    def register_providers(self) -> Iterable[Provider]:
        """Contribute the provider."""
        return [AnthropicMessagesProvider()]
