"""A message of the projection with what belongs to it: the results of its calls, and edits of its content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from pi_core import AgentMessage, AssistantMessage, TextContent, ToolCallContent, ToolResultMessage, now_ms

from .bodies import ContextEdit

INTERRUPTED: Final = "The run ended before this call did. What it has done so far is not known."
NOT_RUN: Final = "This call was not run: the response with it was not complete."
OMITTED: Final = "(The result of this call was taken out of the context.)"

Placed: TypeAlias = tuple[str | None, AgentMessage]
"""A message and the entry it is from."""


@dataclass(slots=True)
class Results:
    """The results of the calls of one assistant message.

    A result belongs to the first call of its id that has none yet: an id is unique only within one message, and not
    even there with every provider.
    """

    calls: list[ToolCallContent]
    ran: bool = True
    recorded: dict[int, tuple[str, ToolResultMessage]] = field(default_factory=dict)
    journal: dict[int, tuple[str, ToolResultMessage]] = field(default_factory=dict)

    def add(self, entry_id: str, result: ToolResultMessage) -> bool:
        """Take a result; of more results than calls the last one counts.

        :returns: whether one of the calls is meant.
        """
        found = [at for at, call in enumerate(self.calls) if call.id == result.tool_call_id]
        if found:
            self.recorded[next((at for at in found if at not in self.recorded), found[-1])] = (entry_id, result)
        return bool(found)

    def add_journaled(self, entry_id: str, result: ToolResultMessage, at: Any) -> bool:
        """Take a result that was final while earlier calls were not.

        :param at: which call it is of.
        :returns: whether it is one of these.
        """
        if not isinstance(at, int) or not 0 <= at < len(self.calls) or self.calls[at].id != result.tool_call_id:
            return False
        self.journal[at] = (entry_id, result)
        return True

    def position_of(self, call: ToolCallContent) -> int | None:
        """Return which one a call is: the same object, else the first one of its id that has no result."""
        free = [at for at in range(len(self.calls)) if self.get(at) is None]
        same = next((at for at in free if self.calls[at] is call), None)
        return next((at for at in free if self.calls[at].id == call.id), None) if same is None else same

    @property
    def complete(self) -> bool:
        """Whether every call has its result as an entry."""
        return len(self.recorded) == len(self.calls)

    def get(self, at: int) -> tuple[str, ToolResultMessage] | None:
        """Return the result of a call, also one that was only journaled."""
        return self.recorded.get(at) or self.journal.get(at)


@dataclass(slots=True)
class PlacedMessage:
    """A message in its place, with the results of its calls and the edits of both."""

    entry_id: str
    message: AgentMessage
    results: Results | None = None
    edits: dict[str, ContextEdit] | None = None

    def edit(self, change: ContextEdit) -> None:
        """Take an edit of the message or of a result; the latest one of each counts."""
        self.edits = {**(self.edits or {}), change.target_id: change}

    def messages(self) -> Iterable[Placed]:
        """Return what a model reads: the message, then exactly one result for each call, in the order of the calls."""
        if self.results is None and self.edits is None:
            return ((self.entry_id, self.message),)
        message = self._edited(self.entry_id, self.message)
        if message is None:
            return ()
        results = self._results(message) if isinstance(message, AssistantMessage) else ()
        return ((self.entry_id, message), *results)

    def _results(self, message: AssistantMessage) -> Iterator[Placed]:
        results = self.results or Results([])
        taken: set[int] = set()
        for call in message.tool_calls:
            at = next((at for at, own in enumerate(results.calls) if own.id == call.id and at not in taken), None)
            taken |= set() if at is None else {at}
            found = None if at is None else results.get(at)
            if found is None:
                yield None, interrupted(call, message.timestamp, ran=results.ran)
                continue
            entry_id, result = found
            yield entry_id, self._edited(entry_id, result) or _said(call, OMITTED, result.timestamp, is_error=False)

    def _edited(self, entry_id: str, message: AgentMessage) -> AgentMessage | None:
        change = self.edits.get(entry_id) if self.edits else None
        if change is None:
            return message
        return None if change.replacement is None else with_content(message, change.replacement.content)


def with_content(message: AgentMessage, content: str | list[Any]) -> AgentMessage:
    """Return a message with other content; the message itself where that makes no sense."""
    if not hasattr(message, "content"):
        return message
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    try:
        return type(message).model_validate({**dict(message), "content": content})
    except ValidationError:
        return message


def interrupted(call: ToolCallContent, timestamp: int | None = None, *, ran: bool = True) -> ToolResultMessage:
    """Return the result of a call that a run left behind.

    :param timestamp: Unix milliseconds; now if absent.
    :param ran: whether it may have been run.
    """
    return _said(call, INTERRUPTED if ran else NOT_RUN, now_ms() if timestamp is None else timestamp, is_error=True)


def _said(call: ToolCallContent, text: str, timestamp: int, *, is_error: bool) -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id=call.id,
        tool_name=call.name,
        content=[TextContent(text=text)],
        is_error=is_error,
        timestamp=timestamp,
    )
