"""The events of a session: those of its agent, and what happens around the runs. The JSON form is the original's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from pi_core import AgentEndEvent, AgentEvent, MessageUpdateEvent, ThinkingLevel, ToolCallStartEvent, Usage

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from pi_plugins.sessions.compaction import CompactionReason, CompactionResult
    from pi_plugins.sessions.entries import Entry


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
class SettledEvent:
    """Nothing more happens by itself: runs, retries and compaction are over."""

    type: ClassVar[str] = "agent_settled"
    aborted: bool

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"type": self.type, "aborted": self.aborted}


@dataclass(frozen=True, slots=True)
class QueueEvent:
    """The queues have changed; the texts that wait."""

    type: ClassVar[str] = "queue_update"
    steering: tuple[str, ...]
    follow_up: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"type": self.type, "steering": list(self.steering), "followUp": list(self.follow_up)}


@dataclass(frozen=True, slots=True)
class EntryEvent:
    """An entry that is no message was appended to the session."""

    type: ClassVar[str] = "entry_appended"
    entry: Entry

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"type": self.type, "entry": self.entry.to_json()}


@dataclass(frozen=True, slots=True)
class SessionNameEvent:
    """The session's display name was set or cleared."""

    type: ClassVar[str] = "session_info_changed"
    name: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"type": self.type} if self.name is None else {"type": self.type, "name": self.name}


@dataclass(frozen=True, slots=True)
class ThinkingLevelEvent:
    """The thinking level has changed."""

    type: ClassVar[str] = "thinking_level_changed"
    level: ThinkingLevel

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"type": self.type, "level": self.level}


@dataclass(frozen=True, slots=True)
class CompactionStartEvent:
    """A compaction begins."""

    type: ClassVar[str] = "compaction_start"
    reason: CompactionReason

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"type": self.type, "reason": self.reason}


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
class RetryStartEvent:
    """A failed request is made again after a delay."""

    type: ClassVar[str] = "auto_retry_start"
    attempt: int
    max_attempts: int
    delay_ms: int
    error: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return _retry_json(self)


@dataclass(frozen=True, slots=True)
class RetryEndEvent:
    """The attempts are over: one succeeded, or none is left."""

    type: ClassVar[str] = "auto_retry_end"
    success: bool
    attempt: int
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        data = {"type": self.type, "success": self.success, "attempt": self.attempt}
        return data if self.error is None else {**data, "finalError": self.error}


SummarySource: TypeAlias = Literal["compaction", "branchSummary"]
"""What a summary is made for."""


@dataclass(frozen=True, slots=True)
class SummaryRetryEvent:
    """A request for a summary that failed is made again after a delay."""

    type: ClassVar[str] = "summarization_retry_scheduled"
    attempt: int
    max_attempts: int
    delay_ms: int
    error: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return _retry_json(self)


@dataclass(frozen=True, slots=True)
class SummaryAttemptEvent:
    """A request for a summary is made again now.

    :param reason: why a session is compacted.
    """

    type: ClassVar[str] = "summarization_retry_attempt_start"
    source: SummarySource
    reason: CompactionReason | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        data = {"type": self.type, "source": self.source}
        return data if self.reason is None else {**data, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class SummaryRetryEndEvent:
    """The attempts of a request for a summary are over, however they ended."""

    type: ClassVar[str] = "summarization_retry_finished"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"type": self.type}


@dataclass(frozen=True, slots=True)
class PluginErrorEvent:
    """An implementation of a hook raised, and the session went on without it."""

    type: ClassVar[str] = "extension_error"
    plugin: str
    hook: str
    error: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"type": self.type, "extensionPath": self.plugin, "event": self.hook, "error": self.error}


@dataclass(frozen=True, slots=True)
class NoticeEvent:
    """Something the user should read, such as what a command answers.

    :param level: ``info``, ``warning`` or ``error``.
    """

    type: ClassVar[str] = "notice"
    text: str
    level: str = "info"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"type": self.type, "message": self.text, "notifyType": self.level}


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


def _retry_json(event: RetryStartEvent | SummaryRetryEvent) -> dict[str, Any]:
    return {
        "type": event.type,
        "attempt": event.attempt,
        "maxAttempts": event.max_attempts,
        "delayMs": event.delay_ms,
        "errorMessage": event.error,
    }


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
