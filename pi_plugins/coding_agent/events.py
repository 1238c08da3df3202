"""The events of a session: those of its agent, and what happens around the runs. The JSON form is the original's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast

from pydantic.alias_generators import to_camel

from pi_core import AgentEndEvent, AgentEvent, MessageUpdateEvent, ThinkingLevel, ToolCallStartEvent, Usage

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from pi_plugins.sessions.compaction import CompactionReason, CompactionResult
    from pi_plugins.sessions.entries import Entry


class _Event:
    """An event whose JSON form is its type and its fields that have a value, in camel case.

    ``json_names`` has the names that are others there.
    """

    __slots__ = ()
    type: ClassVar[str]
    json_names: ClassVar[Mapping[str, str]] = {}

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        data: dict[str, Any] = {"type": self.type}
        for field in dataclasses.fields(cast("Any", self)):
            value = getattr(self, field.name)
            if value is not None:
                name = self.json_names.get(field.name) or to_camel(field.name)
                data[name] = list(value) if isinstance(value, tuple) else value
        return data


@dataclass(frozen=True, slots=True)
class RunEndEvent:
    """A run of the agent is over. ``will_retry``: the session makes another attempt by itself."""

    type: ClassVar[str] = "agent_end"
    run: AgentEndEvent
    will_retry: bool

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**self.run.to_json(), "willRetry": self.will_retry}


@dataclass(frozen=True, slots=True)
class SettledEvent(_Event):
    """Nothing more happens by itself: runs, retries and compaction are over."""

    type: ClassVar[str] = "agent_settled"
    aborted: bool


@dataclass(frozen=True, slots=True)
class QueueEvent(_Event):
    """The queues have changed; the texts that wait."""

    type: ClassVar[str] = "queue_update"
    steering: tuple[str, ...]
    follow_up: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EntryEvent:
    """An entry that is no message was appended to the session."""

    type: ClassVar[str] = "entry_appended"
    entry: Entry

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"type": self.type, "entry": self.entry.to_json()}


@dataclass(frozen=True, slots=True)
class SessionNameEvent(_Event):
    """The session's display name was set or cleared."""

    type: ClassVar[str] = "session_info_changed"
    name: str | None


@dataclass(frozen=True, slots=True)
class ThinkingLevelEvent(_Event):
    """The thinking level has changed."""

    type: ClassVar[str] = "thinking_level_changed"
    level: ThinkingLevel


@dataclass(frozen=True, slots=True)
class CompactionStartEvent(_Event):
    """A compaction begins."""

    type: ClassVar[str] = "compaction_start"
    reason: CompactionReason


@dataclass(frozen=True, slots=True)
class CompactionEndEvent:
    """A compaction is over: with a result, an error, or given up.

    :param will_retry: the request that did not fit is made again.
    """

    type: ClassVar[str] = "compaction_end"
    reason: CompactionReason
    result: CompactionResult | None = None
    aborted: bool = False
    will_retry: bool = False
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        data: dict[str, Any] = {"type": self.type, "reason": self.reason}
        if self.result is not None:
            data["result"] = compaction_json(self.result)
        data |= {"aborted": self.aborted, "willRetry": self.will_retry}
        if self.error is not None:
            data["errorMessage"] = self.error
        return data


@dataclass(frozen=True, slots=True)
class RetryStartEvent(_Event):
    """A failed request is made again after a delay."""

    type: ClassVar[str] = "auto_retry_start"
    json_names: ClassVar[Mapping[str, str]] = {"error": "errorMessage"}
    attempt: int
    max_attempts: int
    delay_ms: int
    error: str


@dataclass(frozen=True, slots=True)
class RetryEndEvent(_Event):
    """The attempts are over: one succeeded, or none is left."""

    type: ClassVar[str] = "auto_retry_end"
    json_names: ClassVar[Mapping[str, str]] = {"error": "finalError"}
    success: bool
    attempt: int
    error: str | None = None


SummarySource: TypeAlias = Literal["compaction", "branchSummary"]
"""What a summary is made for."""


@dataclass(frozen=True, slots=True)
class SummaryRetryEvent(_Event):
    """A request for a summary that failed is made again after a delay."""

    type: ClassVar[str] = "summarization_retry_scheduled"
    json_names: ClassVar[Mapping[str, str]] = {"error": "errorMessage"}
    attempt: int
    max_attempts: int
    delay_ms: int
    error: str


@dataclass(frozen=True, slots=True)
class SummaryAttemptEvent(_Event):
    """A request for a summary is made again now.

    :param reason: why a session is compacted.
    """

    type: ClassVar[str] = "summarization_retry_attempt_start"
    source: SummarySource
    reason: CompactionReason | None = None


@dataclass(frozen=True, slots=True)
class SummaryRetryEndEvent(_Event):
    """The attempts of a request for a summary are over, however they ended."""

    type: ClassVar[str] = "summarization_retry_finished"


@dataclass(frozen=True, slots=True)
class PluginErrorEvent(_Event):
    """An implementation of a hook raised, and the session went on without it."""

    type: ClassVar[str] = "extension_error"
    json_names: ClassVar[Mapping[str, str]] = {"plugin": "extensionPath", "hook": "event"}
    plugin: str
    hook: str
    error: str


@dataclass(frozen=True, slots=True)
class NoticeEvent(_Event):
    """Something the user should read, such as what a command answers.

    :param level: ``info``, ``warning`` or ``error``.
    """

    type: ClassVar[str] = "notice"
    json_names: ClassVar[Mapping[str, str]] = {"text": "message", "level": "notifyType"}
    text: str
    level: str = "info"


SessionEvent: TypeAlias = (
    AgentEvent
    | RunEndEvent
    | SettledEvent
    | QueueEvent
    | EntryEvent
    | SessionNameEvent
    | ThinkingLevelEvent
    | CompactionStartEvent
    | CompactionEndEvent
    | RetryStartEvent
    | RetryEndEvent
    | SummaryRetryEvent
    | SummaryAttemptEvent
    | SummaryRetryEndEvent
    | PluginErrorEvent
    | NoticeEvent
)
"""What the listeners of a session get; an :class:`~pi_core.AgentEndEvent` comes as :class:`RunEndEvent`."""

Listener: TypeAlias = "Callable[[SessionEvent], Awaitable[None] | None]"
"""Takes an event at once; what it returns is awaited, which slows the session down to the listener's pace."""


def event_json(event: SessionEvent) -> dict[str, Any]:
    """Return the JSON form of an event; an update of a message carries only what is new, and the usage so far."""
    if not isinstance(event, MessageUpdateEvent):
        return event.to_json()
    update = event.assistant_message_event
    data = update.to_json()
    if isinstance(update, ToolCallStartEvent):
        data |= {"id": update.id, "toolName": update.name}
    return {"type": event.type, "usage": _usage_json(update.usage), "assistantMessageEvent": data}


class _UsageJson:
    """Makes the JSON form of a usage once, as long as the same one comes: a response has many deltas and few usages."""

    def __init__(self) -> None:
        self._latest: tuple[Usage, dict[str, Any]] | None = None

    def __call__(self, usage: Usage) -> dict[str, Any]:
        if self._latest is None or self._latest[0] is not usage:
            self._latest = usage, usage.to_json()
        return self._latest[1]


_usage_json = _UsageJson()


def compaction_json(result: CompactionResult) -> dict[str, Any]:
    """Return the JSON form of a compaction's result."""
    data: dict[str, Any] = {
        "summary": result.summary,
        "firstKeptEntryId": result.first_kept_entry_id,
        "tokensBefore": result.tokens_before,
        "estimatedTokensAfter": result.estimated_tokens_after,
    }
    if result.usage is not None:
        data["usage"] = result.usage.to_json()
    return {**data, "details": result.details}


def texts(messages: Sequence[Any]) -> tuple[str, ...]:
    """Return what people read of queued messages."""
    return tuple(_text(message) for message in messages)


def _text(message: Any) -> str:
    content = getattr(message, "content", None)
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(block.text for block in content if block.type == "text")
    return str(message.to_text())
