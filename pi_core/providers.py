"""Models, the options of a request, and what a provider is: one method that streams a response.

The error contract of a provider: whatever goes wrong with a request, the model or the connection ends the stream with
an :class:`~pi_core.events.ErrorEvent`; nothing is raised out of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from .messages import Message, ThinkingLevel, WireModel

if TYPE_CHECKING:
    from .context import AbortSignal
    from .events import StreamEvent
    from .tools import Tool


class ModelCostTier(WireModel):
    """Prices for requests whose prompt is longer than ``input_tokens_above`` tokens."""

    input_tokens_above: int
    input: float
    output: float
    cache_read: float = 0
    cache_write: float = 0


class ModelCost(WireModel):
    """Prices in US dollars per million tokens."""

    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0
    tiers: list[ModelCostTier] | None = None


class Model(WireModel):
    """A model and where it is served.

    :param api: the wire protocol, which names the provider plugin that speaks it.
    :param provider: who serves it; names the credentials.
    :param base_url: address up to, not including, the API's own path.
    :param reasoning: whether it can think.
    :param input: ``text`` and perhaps ``image``.
    :param context_window: tokens; 0 means unknown.
    :param max_tokens: most tokens of one answer; 0 means unknown.
    :param thinking_level_map: the API's word for a level; ``None`` as value: the level is not supported.
    :param compat: switches of the API for servers that differ.
    """

    id: str
    name: str = ""
    api: str
    provider: str
    base_url: str = ""
    reasoning: bool = False
    input: list[Literal["text", "image"]] = ["text"]  # noqa: RUF012 - pydantic copies defaults
    cost: ModelCost = ModelCost()
    context_window: int = 0
    max_tokens: int = 0
    thinking_level_map: dict[str, str | None] | None = None
    sampling_params: dict[str, Any] | None = None
    sampling_params_by_thinking_level: dict[str, dict[str, Any]] | None = None
    headers: dict[str, str | None] | None = None
    compat: dict[str, Any] | None = None


UNKNOWN_MODEL = Model(id="unknown", name="unknown", api="unknown", provider="unknown")
"""What an agent has before a model was chosen."""


@dataclass(slots=True)
class ProviderResponse:
    """The head of a provider's HTTP response."""

    status: int
    headers: Mapping[str, str]


Headers: TypeAlias = Mapping[str, str | None]
PayloadHook: TypeAlias = Callable[[Any, Model], Any]
ResponseHook: TypeAlias = Callable[[ProviderResponse, Model], Awaitable[None] | None]
HeadersHook: TypeAlias = Callable[[Headers], Awaitable[Headers] | Headers]


@dataclass(slots=True, kw_only=True)
class StreamOptions:
    """How one request is made. ``None`` means: not asked for.

    :param signal: ends the response when aborted.
    :param reasoning: the thinking level; ``None`` is off.
    :param thinking_budgets: tokens of thinking by level.
    :param headers: request headers; ``None`` as a value removes a default.
    :param timeout_ms: limit of the wait for each event, milliseconds.
    :param max_retries: how often a request that was refused before any event is made again.
    :param max_retry_delay_ms: longest delay a server may ask for; a longer one is an error. 0 means no limit.
    :param cache_retention: ``none``, ``short`` or ``long``.
    :param session_id: key of the prompt cache and of session affinity.
    :param sampling_params: fields merged into the request body last.
    :param on_payload: sees the body about to be sent and may return another.
    :param on_response: sees status and headers of the response.
    :param transform_headers: gets the merged headers and returns those to send.
    """

    signal: AbortSignal | None = None
    api_key: str | None = None
    reasoning: ThinkingLevel | None = None
    thinking_budgets: Mapping[str, int] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    sampling_params: Mapping[str, Any] | None = None
    tool_choice: Any = None
    headers: Headers | None = None
    metadata: Mapping[str, Any] | None = None
    transport: str | None = None
    cache_retention: Literal["none", "short", "long"] | None = None
    session_id: str | None = None
    timeout_ms: int | None = None
    max_retries: int | None = None
    max_retry_delay_ms: int | None = None
    env: Mapping[str, str] | None = None
    on_payload: PayloadHook | None = None
    on_response: ResponseHook | None = None
    transform_headers: HeadersHook | None = None

    def replace(self, **changes: Any) -> StreamOptions:
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)


@dataclass(slots=True)
class Context:
    """What a request is about: system prompt, messages a model understands, and the tools it may call.

    ``messages`` is read only and does not change while the response streams.
    """

    system_prompt: str = ""
    messages: Sequence[Message] = ()
    tools: Sequence[Tool] = field(default_factory=tuple)


StreamFunction: TypeAlias = (
    "Callable[[Model, Context, StreamOptions], AsyncIterable[StreamEvent] | Awaitable[AsyncIterable[StreamEvent]]]"
)
"""Makes one request. Failures of the request are events; what it raises fails the run."""


class Provider(Protocol):
    """Speaks one wire protocol. ``api`` is the name models refer to it by."""

    @property
    def api(self) -> str:
        """The wire protocol's name."""

    def stream(self, model: Model, context: Context, options: StreamOptions) -> AsyncIterable[StreamEvent]:
        """Make one request and yield its events: start, updates, and one done or error. Never raises."""


_default_stream: StreamFunction | None = None


def set_default_stream(stream: StreamFunction | None) -> None:
    """Install the process-wide stream function that agents without one fall back to; ``None`` removes it."""
    global _default_stream
    _default_stream = stream


def get_default_stream() -> StreamFunction | None:
    """Return the process-wide stream function, if one is installed."""
    return _default_stream
