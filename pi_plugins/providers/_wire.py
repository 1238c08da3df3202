"""What the providers of the HTTP APIs share. Imported at start-up, it imports the rest only when it is used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterable
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pi_core import Context, MessageAssembler, Model, StreamEvent, StreamOptions

    from ._connections import Connections
    from ._stream import Prepared


class WireProvider(ABC):
    """A provider that speaks one wire protocol over HTTP.

    :param connections: where connections come from and stay open; its own by default.
    """

    api: ClassVar[str]
    """The wire protocol's name."""

    def __init__(self, connections: Connections | None = None) -> None:
        self._connections = connections

    def stream(self, model: Model, context: Context, options: StreamOptions) -> AsyncIterable[StreamEvent]:
        """Make one request and yield its events. Never raises; failures are the last event."""
        from ._connections import Connections
        from ._stream import stream_response

        if self._connections is None:
            self._connections = Connections()
        return stream_response(self, model, context, options, self._connections)

    @abstractmethod
    def prepare(self, model: Model, context: Context, options: StreamOptions, assembler: MessageAssembler) -> Prepared:
        """Build a request and the decoder of its response.

        :raises ResponseError: the model has no address.
        :raises ValueError: a tool asks for what the server cannot do.
        """
