"""Where a transcript may be cut, and where it is cut so that the newest part stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pi_core import AgentMessage, AssistantMessage, ToolResultMessage

from .estimate import message_tokens


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a transcript is cut.

    :param kept: position of the first message that is kept.
    :param turn: position where the turn of that message begins; the same when the cut splits no turn of which the
        beginning is there.
    """

    kept: int
    turn: int


def find_cut(messages: Sequence[AgentMessage], keep_tokens: int) -> Cut | None:
    """Return the cut that keeps about ``keep_tokens`` of the newest messages, at least one.

    It is the first legal one after which no more than that is kept; if there is none, the last legal one before.

    :returns: ``None`` when everything is kept.
    """
    wanted = _where_full(messages, keep_tokens)
    if wanted is None:
        return None
    legal = [position for position in legal_cuts(messages) if position > 0]
    kept = next((position for position in legal if position >= wanted), legal[-1] if legal else None)
    return None if kept is None else Cut(kept, _turn_start(messages, kept))


def legal_cuts(messages: Sequence[AgentMessage]) -> list[int]:
    """Return the positions before which a transcript may be cut: never between a call and its result.

    Results belong to the nearest message before them that made a call of that id; ids may come again in later
    messages. Calls of the last response that have no result yet may still get one.
    """
    blocked: set[int] = set()
    waiting: dict[str, int] = {}
    for position, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            waiting = {call.id: position for call in message.tool_calls}
        elif isinstance(message, ToolResultMessage):
            began = waiting.pop(message.tool_call_id, position - 1)
            blocked.update(range(began + 1, position + 1))
    if waiting:
        blocked.update(range(min(waiting.values()) + 1, len(messages)))
    return [position for position in range(len(messages)) if position not in blocked]


def _where_full(messages: Sequence[AgentMessage], keep_tokens: int) -> int | None:
    """The position from which on the messages hold at least ``keep_tokens``; ``None`` when all of them hold less."""
    kept = 0
    for position in range(len(messages) - 1, -1, -1):
        kept += message_tokens(messages[position])
        if kept >= keep_tokens:
            return position
    return None


def _turn_start(messages: Sequence[AgentMessage], position: int) -> int:
    """Where the turn begins that the message at ``position`` belongs to: with what was said to the model."""
    start = position
    while start >= 0 and isinstance(messages[start], AssistantMessage | ToolResultMessage):
        start -= 1
    return position if start < 0 else start
