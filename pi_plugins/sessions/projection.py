"""What the model is to read of a session: the messages on the way to the present entry, as they stand now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from pi_core import AgentMessage, AssistantMessage, ThinkingLevel, ToolResultMessage

from ._turns import Placed, PlacedMessage, Results
from .bodies import BranchSummary, Compaction, ContextEdit, CustomData, CustomText, ModelChange, ThinkingLevelChange
from .entries import Entry, iso_to_ms
from .messages import BranchSummaryMessage, CompactionSummaryMessage, CustomEntryMessage

JOURNAL: Final = "pi.tool_result"
"""The ``customType`` of the result of a call that ended before an earlier call of its batch."""


@dataclass(frozen=True, slots=True)
class Projection:
    """The context of a session at one of its entries.

    :param messages: what the model reads; each call of a tool is directly followed by its result.
    :param entry_ids: the entry each message is from; ``None`` for the result of a call that has none.
    :param model: provider and id of the model used last.
    :param thinking_level: the level chosen last.
    :param compaction: the compaction that stands for what was before the messages.
    """

    messages: Sequence[AgentMessage] = ()
    entry_ids: Sequence[str | None] = ()
    model: tuple[str, str] | None = None
    thinking_level: ThinkingLevel | None = None
    compaction: Entry | None = None


class ProjectionBuilder:
    """Keeps the projection of a path that grows; one more entry costs the same however long the path is.

    :param path: the entries so far, from the root on.
    """

    def __init__(self, path: Sequence[Entry] = ()) -> None:
        self.path = list(path)
        self.malformed: list[Entry] = []
        self._begin()

    @property
    def batch(self) -> Results | None:
        """The calls of the latest assistant message with their results."""
        return None if self._asking is None else self._asking.results

    def add(self, entry: Entry) -> None:
        """Take the entry that follows the path."""
        self.path.append(entry)
        if entry.type == "compaction":
            self._begin()
        else:
            self._settings(entry)
            self._take(entry)

    def projection(self) -> Projection:
        """Return the context as it is now; costs as much as it is long."""
        placed: list[Placed] = []
        for one in self._placed:
            placed += one.messages()
        return Projection(
            messages=tuple(message for _, message in placed),
            entry_ids=tuple(entry_id for entry_id, _ in placed),
            model=self._model,
            thinking_level=self._level,
            compaction=self._compaction,
        )

    def _begin(self) -> None:
        """Build from the latest compaction on."""
        self._placed: list[PlacedMessage] = []
        self._by_entry: dict[str, PlacedMessage] = {}
        self._asking: PlacedMessage | None = None
        self._compaction: Entry | None = None
        self._model: tuple[str, str] | None = None
        self._level: ThinkingLevel | None = None
        self._latest_settings()
        path = self.path
        at = next((at for at in range(len(path) - 1, -1, -1) if _is_compaction(path[at])), None)
        if at is not None:
            self._summary(path[at])
            for entry in path[self._first_kept(at) : at]:
                self._take(entry)
        for entry in path[0 if at is None else at + 1 :]:
            self._take(entry)

    def _first_kept(self, at: int) -> int:
        body = self.path[at].body
        wanted = body.first_kept_entry_id if isinstance(body, Compaction) else None
        return next((position for position in range(at) if self.path[position].id == wanted), at)

    def _latest_settings(self) -> None:
        """Look for model and level from the end on, so that only the latest message of a model is parsed."""
        for entry in reversed(self.path):
            if entry.type in ("message", "model_change"):
                if self._model is None and entry.role in (None, "assistant"):
                    self._settings(entry)
            elif entry.type == "thinking_level_change" and self._level is None:
                self._settings(entry)
            if self._model is not None and self._level is not None:
                return

    def _settings(self, entry: Entry) -> None:
        body = entry.body
        if isinstance(body, ModelChange):
            self._model = (body.provider, body.model_id)
        elif isinstance(body, AssistantMessage):
            self._model = (body.provider, body.model)
        elif isinstance(body, ThinkingLevelChange):
            self._level = body.thinking_level

    def _take(self, entry: Entry) -> None:
        if entry.type == "message":
            self._message(entry)
            return
        body = entry.body
        if isinstance(body, CustomText):
            self._custom(entry, body)
        elif isinstance(body, ContextEdit):
            target = self._by_entry.get(body.target_id)
            if target is not None:
                target.edit(body)
        elif isinstance(body, CustomData):
            if body.custom_type == JOURNAL:
                self._journaled(entry, body)
        elif isinstance(body, BranchSummary) and body.summary:
            time = iso_to_ms(entry.timestamp)
            self._place(entry, BranchSummaryMessage(summary=body.summary, from_id=body.from_id, timestamp=time))

    def _message(self, entry: Entry) -> None:
        message = entry.message
        if message is None:
            if entry.role is not None:
                self.malformed.append(entry)
        elif isinstance(message, ToolResultMessage):
            if self._asking and self.batch and self.batch.add(entry.id, message):
                self._by_entry[entry.id] = self._asking
        elif message.role != "system":
            placed = self._place(entry, message)
            if isinstance(message, AssistantMessage):
                calls = message.tool_calls
                ran = message.stop_reason not in ("error", "aborted")
                placed.results = Results(calls, ran) if calls else None
                self._asking = placed

    def _journaled(self, entry: Entry, body: CustomData) -> None:
        try:
            result = ToolResultMessage.model_validate(body.data["message"])
        except (ValidationError, KeyError, TypeError):
            self.malformed.append(entry)
            return
        batch = self.batch
        if self._asking and batch and batch.add_journaled(entry.id, result, body.data.get("index")):
            self._by_entry[entry.id] = self._asking

    def _custom(self, entry: Entry, body: CustomText) -> None:
        try:
            message = CustomEntryMessage(
                custom_type=body.custom_type,
                content=body.content,
                display=body.display,
                details=body.details,
                timestamp=iso_to_ms(entry.timestamp),
            )
        except ValidationError:
            self.malformed.append(entry)
        else:
            self._place(entry, message)

    def _summary(self, entry: Entry) -> None:
        body = entry.body
        if isinstance(body, Compaction):
            self._compaction = entry
            time = iso_to_ms(entry.timestamp)
            summary = CompactionSummaryMessage(summary=body.summary, tokens_before=body.tokens_before, timestamp=time)
            self._place(entry, summary)

    def _place(self, entry: Entry, message: AgentMessage) -> PlacedMessage:
        placed = PlacedMessage(entry.id, message)
        self._placed.append(placed)
        self._by_entry[entry.id] = placed
        return placed


def _is_compaction(entry: Entry) -> bool:
    return entry.type == "compaction" and isinstance(entry.body, Compaction)
