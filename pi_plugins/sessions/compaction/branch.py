"""Makes the summary of a branch that is left, for the place in the tree where work goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pi_core import AbortSignal, AgentMessage, Model, ThinkingLevel
from pi_plugins.sessions.bodies import BranchSummary
from pi_plugins.sessions.entries import Entry
from pi_plugins.sessions.projection import ProjectionBuilder

from .estimate import message_tokens
from .files import file_lists, with_lists
from .limits import reserve_within
from .prompts import BRANCH
from .types import BranchSummaryResult, Complete
from .writer import SummaryWriter

if TYPE_CHECKING:
    from pi_plugins.config.settings import BranchSummarySettings


async def summarize_branch(
    entries: Sequence[Entry],
    complete: Complete,
    model: Model,
    level: ThinkingLevel,
    settings: BranchSummarySettings,
    *,
    focus: str | None = None,
    signal: AbortSignal | None = None,
) -> BranchSummaryResult | None:
    """Have a model summarise a branch.

    What does not fit the model beside the room to be kept free is left out, the oldest first. What was compacted on
    the branch is read as it was said.

    :param entries: those of the branch, oldest first, without what it shares with where work goes on.
    :param complete: makes one request. It is given no tools, and a prompt cache of its own.
    :param focus: what the user wants the summary to attend to.
    :param signal: gives it up.
    :returns: ``None`` when nothing was said on the branch.
    :raises CompactionError: no summary could be made, or it was given up.
    """
    said = [entry for entry in entries if entry.type != "compaction"]
    messages = list(ProjectionBuilder(said).projection().messages)
    details = [entry.body.details for entry in said if isinstance(entry.body, BranchSummary)]
    files = file_lists(messages, details)
    messages = _newest(messages, model, settings.reserve_tokens)
    if not messages:
        return None
    writer = SummaryWriter(complete, model, level, signal)
    summary = await writer.write(BRANCH, messages, focus=focus)
    return BranchSummaryResult(with_lists(summary, files), writer.usage, {**files.to_details()})


def _newest(messages: list[AgentMessage], model: Model, reserve_tokens: int) -> list[AgentMessage]:
    """The newest messages that fit a model beside the room kept free; all when its window is unknown."""
    if model.context_window <= 0:
        return messages
    room = model.context_window - reserve_within(model, reserve_tokens)
    for position in range(len(messages) - 1, -1, -1):
        room -= message_tokens(messages[position])
        if room < 0:
            return messages[position + 1 :] or messages[-1:]
    return messages
