"""What happens, as data: the ten agent events and the events of a streamed response.

Slotted dataclasses, because one of each is made per streamed delta. ``type`` is the name in the JSON form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from .messages import AgentMessage, AssistantMessage, ToolCallContent, ToolResultMessage, Usage

if TYPE_CHECKING:
    from .assembler import Frame, MessageAssembler
    from .tools import ToolResult


# --- a streamed response ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class StartEvent:
    """The response has begun. ``message`` is given by hand; an assembler gives its ``frame`` instead."""

    type: ClassVar[Literal["start"]] = "start"
    message: AssistantMessage | None = None
    frame: tuple[MessageAssembler, int] | None = field(default=None, repr=False, compare=False)

    @property
    def partial(self) -> AssistantMessage:
        """The message so far, usually without content.

        :raises ValueError: the event has neither a message nor a frame.
        """
        if self.message is not None:
            return self.message
        if self.frame is None:
            raise ValueError("start event without a message: give it one, or make it with MessageAssembler.start()")
        return self.frame[0].at(self.frame[1], -1, 0)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, without the partial message."""
        return {"type": self.type}


class UpdateEvent:
    """Base of the nine events between start and end: something about the block at ``content_index`` changed.

    ``frame`` and ``length`` are set by the assembler that made or applied the event; with them the message *as of this
    event* can be built when somebody reads it, and costs nothing when nobody does. They are the last fields of each
    event, so that the events of a response are made without naming them.
    """

    if not TYPE_CHECKING:
        __slots__ = ()
    type: ClassVar[str]
    content_index: int
    frame: Frame | None
    length: int

    @property
    def partial(self) -> AssistantMessage:
        """The message as of this event.

        :raises ValueError: the event was made by hand and not yet applied to an assembler.
        """
        if self.frame is None:
            raise ValueError(f"{self.type} event without a frame: apply it to a MessageAssembler first")
        return self.frame[0].view(self)

    @property
    def usage(self) -> Usage:
        """The latest usage the provider has reported of the response; zero before the first one.

        :raises ValueError: the event was made by hand and not yet applied to an assembler.
        """
        if self.frame is None:
            raise ValueError(f"{self.type} event without a frame: apply it to a MessageAssembler first")
        return self.frame[0].usage

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, without the partial message."""
        data: dict[str, Any] = {"type": self.type, "contentIndex": self.content_index}
        for name in ("delta", "content"):
            value = getattr(self, name, None)
            if value is not None:
                data[name] = value
        return data


@dataclass(slots=True)
class TextStartEvent(UpdateEvent):
    """A text block begins; ``text`` is what it already holds."""

    type: ClassVar[Literal["text_start"]] = "text_start"
    content_index: int
    text: str = ""
    frame: Frame | None = field(default=None, repr=False, compare=False)
    length: int = field(default=0, repr=False, compare=False)


@dataclass(slots=True)
class TextDeltaEvent(UpdateEvent):
    """More text of a block."""

    type: ClassVar[Literal["text_delta"]] = "text_delta"
    content_index: int
    delta: str = ""
    frame: Frame | None = field(default=None, repr=False, compare=False)
    length: int = field(default=0, repr=False, compare=False)


@dataclass(slots=True)
class TextEndEvent(UpdateEvent):
    """A text block is complete. ``content`` is authoritative."""

    type: ClassVar[Literal["text_end"]] = "text_end"
    content_index: int
    content: str = ""
    signature: str | None = None
    frame: Frame | None = field(default=None, repr=False, compare=False)
    length: int = field(default=0, repr=False, compare=False)


@dataclass(slots=True)
class ThinkingStartEvent(UpdateEvent):
    """A thinking block begins; a redacted one is complete at once."""

    type: ClassVar[Literal["thinking_start"]] = "thinking_start"
    content_index: int
    thinking: str = ""
    signature: str | None = None
    redacted: bool | None = None
    frame: Frame | None = field(default=None, repr=False, compare=False)
    length: int = field(default=0, repr=False, compare=False)


@dataclass(slots=True)
class ThinkingDeltaEvent(UpdateEvent):
    """More thinking of a block."""

    type: ClassVar[Literal["thinking_delta"]] = "thinking_delta"
    content_index: int
    delta: str = ""
    frame: Frame | None = field(default=None, repr=False, compare=False)
    length: int = field(default=0, repr=False, compare=False)


@dataclass(slots=True)
class ThinkingEndEvent(UpdateEvent):
    """A thinking block is complete. ``content`` is authoritative."""

    type: ClassVar[Literal["thinking_end"]] = "thinking_end"
    content_index: int
    content: str = ""
    signature: str | None = None
    frame: Frame | None = field(default=None, repr=False, compare=False)
    length: int = field(default=0, repr=False, compare=False)


@dataclass(slots=True)
class ToolCallStartEvent(UpdateEvent):
    """A tool call begins; id and name may be empty until they arrive."""

    type: ClassVar[Literal["toolcall_start"]] = "toolcall_start"
    content_index: int
    id: str = ""
    name: str = ""
    frame: Frame | None = field(default=None, repr=False, compare=False)
    length: int = field(default=0, repr=False, compare=False)


@dataclass(slots=True)
class ToolCallDeltaEvent(UpdateEvent):
    """More of the JSON text of a tool call's arguments."""

    type: ClassVar[Literal["toolcall_delta"]] = "toolcall_delta"
    content_index: int
    delta: str = ""
    frame: Frame | None = field(default=None, repr=False, compare=False)
    length: int = field(default=0, repr=False, compare=False)


@dataclass(slots=True)
class ToolCallEndEvent(UpdateEvent):
    """A tool call is complete, with its final arguments."""

    type: ClassVar[Literal["toolcall_end"]] = "toolcall_end"
    content_index: int
    tool_call: ToolCallContent
    frame: Frame | None = field(default=None, repr=False, compare=False)
    length: int = field(default=0, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, without the partial message."""
        return {"type": self.type, "contentIndex": self.content_index, "toolCall": self.tool_call.to_json()}


@dataclass(slots=True)
class DoneEvent:
    """The response is complete."""

    type: ClassVar[Literal["done"]] = "done"
    message: AssistantMessage

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"type": self.type, "reason": self.message.stop_reason, "message": self.message.to_json()}


@dataclass(slots=True)
class ErrorEvent:
    """The response failed or was aborted; ``message`` keeps what had arrived."""

    type: ClassVar[Literal["error"]] = "error"
    message: AssistantMessage

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"type": self.type, "reason": self.message.stop_reason, "error": self.message.to_json()}


StreamEvent: TypeAlias = StartEvent | UpdateEvent | DoneEvent | ErrorEvent
"""What a provider yields: a start, updates, and exactly one done or error. An error may come without a start."""


# --- the run ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class AgentStartEvent:
    """A run begins."""

    type: ClassVar[Literal["agent_start"]] = "agent_start"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"type": self.type}


@dataclass(slots=True)
class AgentEndEvent:
    """A run is over; ``messages`` are those it produced."""

    type: ClassVar[Literal["agent_end"]] = "agent_end"
    messages: Sequence[AgentMessage]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"type": self.type, "messages": [message.to_json() for message in self.messages]}


@dataclass(slots=True)
class TurnStartEvent:
    """A turn begins: one response and the tool calls it asks for."""

    type: ClassVar[Literal["turn_start"]] = "turn_start"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"type": self.type}


@dataclass(slots=True)
class TurnEndEvent:
    """A turn is over; the results are in source order."""

    type: ClassVar[Literal["turn_end"]] = "turn_end"
    message: AssistantMessage
    tool_results: Sequence[ToolResultMessage]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "type": self.type,
            "message": self.message.to_json(),
            "toolResults": [result.to_json() for result in self.tool_results],
        }


@dataclass(slots=True)
class MessageStartEvent:
    """A message enters the run; an assistant message is still partial.

    :param given: the message, or the start of a response.
    """

    type: ClassVar[Literal["message_start"]] = "message_start"
    given: AgentMessage | StartEvent

    @property
    def message(self) -> AgentMessage:
        """The message; that of a response is built when it is read."""
        return self.given.partial if isinstance(self.given, StartEvent) else self.given

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"type": self.type, "message": self.message.to_json()}


@dataclass(slots=True)
class MessageUpdateEvent:
    """The streamed response has grown."""

    type: ClassVar[Literal["message_update"]] = "message_update"
    assistant_message_event: UpdateEvent

    @property
    def message(self) -> AssistantMessage:
        """The message as of this event; built when read."""
        return self.assistant_message_event.partial

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "type": self.type,
            "message": self.message.to_json(),
            "assistantMessageEvent": self.assistant_message_event.to_json(),
        }


@dataclass(slots=True)
class MessageEndEvent:
    """A message is final: the object that enters the transcript."""

    type: ClassVar[Literal["message_end"]] = "message_end"
    message: AgentMessage

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"type": self.type, "message": self.message.to_json()}


@dataclass(slots=True)
class ToolExecutionStartEvent:
    """A tool call is taken up; ``args`` are the model's raw arguments."""

    type: ClassVar[Literal["tool_execution_start"]] = "tool_execution_start"
    tool_call_id: str
    tool_name: str
    args: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "type": self.type,
            "toolCallId": self.tool_call_id,
            "toolName": self.tool_name,
            "args": self.args,
        }


@dataclass(slots=True)
class ToolExecutionUpdateEvent:
    """A running tool reports progress."""

    type: ClassVar[Literal["tool_execution_update"]] = "tool_execution_update"
    tool_call_id: str
    tool_name: str
    args: dict[str, Any]
    partial_result: ToolResult

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "type": self.type,
            "toolCallId": self.tool_call_id,
            "toolName": self.tool_name,
            "args": self.args,
            "partialResult": self.partial_result.to_json(),
        }


@dataclass(slots=True)
class ToolExecutionEndEvent:
    """A tool call is final. ``duration_ms`` is there when the tool ran."""

    type: ClassVar[Literal["tool_execution_end"]] = "tool_execution_end"
    tool_call_id: str
    tool_name: str
    result: ToolResult
    is_error: bool
    duration_ms: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        data = {
            "type": self.type,
            "toolCallId": self.tool_call_id,
            "toolName": self.tool_name,
            "result": self.result.to_json(),
            "isError": self.is_error,
        }
        if self.duration_ms is not None:
            data["durationMs"] = self.duration_ms
        return data


AgentEvent: TypeAlias = (
    AgentStartEvent
    | AgentEndEvent
    | TurnStartEvent
    | TurnEndEvent
    | MessageStartEvent
    | MessageUpdateEvent
    | MessageEndEvent
    | ToolExecutionStartEvent
    | ToolExecutionUpdateEvent
    | ToolExecutionEndEvent
)
"""What subscribers and the ``on_*`` hooks get."""
