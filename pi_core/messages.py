"""What the agent keeps: content blocks, messages, usage, and the base class of custom messages.

All are frozen pydantic models. The JSON form has the camelCase names of the original (sessions, RPC, traces); a field
without a value is absent from it, and fields this version does not know survive a round trip.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, field_validator, model_serializer
from pydantic.alias_generators import to_camel

StopReason: TypeAlias = Literal["pending", "stop", "length", "toolUse", "error", "aborted", "deferred"]
"""Why a response ended; ``pending`` only while it streams."""

ThinkingLevel: TypeAlias = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much the model is asked to think before it answers."""


def now_ms() -> int:
    """Return the current time as Unix milliseconds, the unit of every message timestamp."""
    return time.time_ns() // 1_000_000


class WireModel(BaseModel):
    """Base of everything that has a camelCase JSON form."""

    model_config = ConfigDict(
        frozen=True,
        extra="allow",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        defer_build=True,
    )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form: camelCase keys, fields without a value left out; what JSON cannot hold becomes text."""
        return self.model_dump(mode="json", exclude_none=True, fallback=str)

    @model_serializer(mode="wrap")
    def _keep_unknown_nulls(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data = cast("dict[str, Any]", serialize(self))
        for key, value in (self.__pydantic_extra__ or {}).items():
            if value is None:
                data[key] = None
        return data


class _Kept(WireModel):
    """Base of what transcripts hold many of: all objects of one shape share the set of the fields they were made with.

    A set in each would be a fifth of a transcript's memory, and one more thing for every garbage collection to look at.
    Nothing changes the set of a frozen object.
    """

    def model_post_init(self, context: Any, /) -> None:
        """Take the set of an object of the same shape; those with unknown names are without number, and keep theirs."""
        made = _get_fields_set(self)
        shared = _SHARED.get(frozenset(made))
        if shared is not None:
            _set_fields_set(self, shared)
        elif not self.__pydantic_extra__:
            _SHARED[frozenset(made)] = made


_SHARED: Final[dict[frozenset[str], set[str]]] = {}
_slot = vars(BaseModel)["__pydantic_fields_set__"]
_get_fields_set, _set_fields_set = _slot.__get__, _slot.__set__


class TextContent(_Kept):
    """A block of text. ``text_signature`` is opaque data of the provider that wrote it."""

    type: Literal["text"] = "text"
    text: str
    text_signature: str | None = None


class ThinkingContent(_Kept):
    """A block of reasoning. ``redacted``: the text is hidden and the signature carries the encrypted payload."""

    type: Literal["thinking"] = "thinking"
    thinking: str
    thinking_signature: str | None = None
    redacted: bool | None = None


class ImageContent(_Kept):
    """An image: base64 ``data`` and its MIME type."""

    type: Literal["image"] = "image"
    data: str
    mime_type: str


class ToolCallContent(_Kept):
    """A call the model asks for. ``arguments_error``: the complete text was no JSON object, ``arguments`` is empty."""

    type: Literal["toolCall"] = "toolCall"
    id: str
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    thought_signature: str | None = None
    namespace: str | None = None
    arguments_error: str | None = None


_KNOWN_BLOCKS = frozenset({"text", "thinking", "image", "toolCall"})


class OpaqueContent(WireModel):
    """A block of a type this version does not know, kept as it was."""

    type: str

    @field_validator("type")
    @classmethod
    def _only_unknown(cls, value: str) -> str:
        if value in _KNOWN_BLOCKS:
            raise ValueError(f"malformed {value} block")
        return value


# Plain unions: pydantic finds the type of a block that is one already several times faster than by its tag.
UserContent: TypeAlias = TextContent | ImageContent | OpaqueContent
AssistantContent: TypeAlias = TextContent | ToolCallContent | ThinkingContent | OpaqueContent


class Cost(_Kept):
    """What a response cost, in US dollars. ``total_from_provider``: the total was reported, not computed."""

    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0
    total: float = 0
    total_from_provider: bool | None = None


NO_COST = Cost()


class Usage(_Kept):
    """Token counts. ``input`` excludes cached tokens, ``reasoning`` is part of ``output``, ``cache_write1h`` of
    ``cache_write``."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write1h: int | None = Field(default=None, validation_alias="cacheWrite1h", serialization_alias="cacheWrite1h")
    reasoning: int | None = None
    total_tokens: int = 0
    cost: Cost = NO_COST


NO_USAGE = Usage()


class ErrorDetails(WireModel):
    """What a provider said about a failed response, as data.

    :param type: the provider's own error type (``overloaded_error`` ...).
    :param status: HTTP status.
    :param request_id: the provider's id of the request, for its support.
    :param retry_after_ms: the delay the server asked for, in milliseconds.
    :param retryable: whether the same request may succeed later.
    """

    type: str | None = None
    status: int | None = None
    request_id: str | None = None
    retry_after_ms: int | None = None
    retryable: bool | None = None


class UserMessage(_Kept):
    """What the user (or a plugin in the user's place) says."""

    role: Literal["user"] = "user"
    content: str | list[UserContent]
    timestamp: int = Field(default_factory=now_ms)


class AssistantMessage(_Kept):
    """A response of a model, whole or partial.

    ``error_message`` is set exactly when ``stop_reason`` is ``error`` or ``aborted``. ``response_model`` is the model
    the server named when it is not the one that was asked. The timestamp is when the request started.
    """

    role: Literal["assistant"] = "assistant"
    content: list[AssistantContent]
    api: str
    provider: str
    model: str
    usage: Usage = NO_USAGE
    stop_reason: StopReason = "stop"
    response_model: str | None = None
    response_id: str | None = None
    provider_thinking_level: str | None = None
    error_message: str | None = None
    error_details: ErrorDetails | None = None
    raw_stop_reason: str | None = None
    end_turn: bool | None = None
    timestamp: int = Field(default_factory=now_ms)

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return "".join(block.text for block in self.content if isinstance(block, TextContent))

    @property
    def tool_calls(self) -> list[ToolCallContent]:
        """The calls the message asks for, in source order."""
        return [block for block in self.content if isinstance(block, ToolCallContent)]


class ToolResultMessage(_Kept):
    """The outcome of one tool call, as the model reads it."""

    role: Literal["toolResult"] = "toolResult"
    tool_call_id: str
    tool_name: str
    content: list[UserContent]
    details: Any = None
    usage: Usage | None = None
    is_error: bool = False
    duration_ms: int | None = None
    timestamp: int = Field(default_factory=now_ms)


Message: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage
"""What a model understands."""

LLM_ROLES = frozenset({"user", "assistant", "toolResult"})


class CustomMessage(WireModel):
    """Base of message types that plugins add; as it is, the opaque form of a role nobody registered.

    A subclass narrows ``role`` to one literal, adds its fields, and says in :meth:`to_llm` what a model sees of it and
    in :meth:`to_text` what people do.
    """

    role: str
    timestamp: int = Field(default_factory=now_ms)

    @field_validator("role")
    @classmethod
    def _not_built_in(cls, value: str) -> str:
        if not value or value in LLM_ROLES:
            raise ValueError(f"malformed message of role {value!r}")
        return value

    def to_llm(self) -> Iterable[Message]:
        """Return what a model reads in place of this message; nothing for messages that are only shown."""
        return ()

    def to_text(self) -> str:
        """Return what people read of this message: one line, or several; the role and the fields by default."""
        fields = {name: value for name, value in self.to_json().items() if name not in ("role", "timestamp")}
        return f"[{self.role}] {json.dumps(fields, ensure_ascii=False)}" if fields else f"[{self.role}]"


AgentMessage: TypeAlias = Message | CustomMessage
"""What the agent keeps: messages for the model and custom messages."""

_BUILT_IN: Mapping[str, type[WireModel]] = {
    "user": UserMessage,
    "assistant": AssistantMessage,
    "toolResult": ToolResultMessage,
}

MessageT = TypeVar("MessageT", bound=CustomMessage)


def custom_role(message_type: type[CustomMessage]) -> str:
    """Return the role a custom message type stands for.

    :raises TypeError: the class does not narrow ``role`` to one literal with a default.
    """
    field = message_type.model_fields["role"]
    if not isinstance(field.default, str) or not field.default:
        raise TypeError(f'{message_type.__name__} needs a role of its own: role: Literal["name"] = "name"')
    return field.default


def parse_message(data: Mapping[str, Any], types: Mapping[str, type[CustomMessage]] | None = None) -> AgentMessage:
    """Turn the JSON form of a message back into an object.

    :param data: the JSON object.
    :param types: custom message types by role; a role that is in neither becomes an opaque :class:`CustomMessage`.
    :raises pydantic.ValidationError: a field of a known role is missing or wrong.
    """
    role = data.get("role")
    known = _BUILT_IN.get(role) if isinstance(role, str) else None
    if known is None:
        known = (types or {}).get(role, CustomMessage) if isinstance(role, str) else CustomMessage
    return cast("AgentMessage", known.model_validate(data))


def user_message(text: str, images: Iterable[ImageContent] = ()) -> UserMessage:
    """Return the message for a prompt: one text block, then the images."""
    return UserMessage(content=[TextContent(text=text), *images])
