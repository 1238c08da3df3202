"""The messages API: ``POST {base_url}/v1/messages``, spoken by Anthropic and by servers that follow it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from pi_core import Context, Model, Provider, StreamOptions, hookimpl

from ._wire import WireProvider

if TYPE_CHECKING:
    from pi_core import MessageAssembler

    from ._anthropic_sessions import Sessions
    from ._connections import Connections
    from ._stream import Prepared

API: Final = "anthropic-messages"


class AnthropicMessagesProvider(WireProvider):
    """Speaks the messages API."""

    api = API

    def __init__(self, connections: Connections | None = None) -> None:
        super().__init__(connections)
        self._sessions: Sessions | None = None

    def prepare(self, model: Model, context: Context, options: StreamOptions, assembler: MessageAssembler) -> Prepared:
        """Build a request and the decoder of its response."""
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
