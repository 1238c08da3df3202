"""What a compaction would summarise, and what it would keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pi_core import Model
from pi_plugins.sessions.bodies import BranchSummary, Compaction
from pi_plugins.sessions.entries import Entry
from pi_plugins.sessions.messages import CompactionSummaryMessage
from pi_plugins.sessions.projection import project

from .cut import find_cut
from .estimate import context_tokens, message_tokens
from .files import file_lists, without_lists
from .limits import limits_for
from .types import CompactionPreparation

if TYPE_CHECKING:
    from pi_plugins.config.settings import CompactionSettings


def prepare(
    path: Sequence[Entry], settings: CompactionSettings, *, model: Model | None = None, focus: str | None = None
) -> CompactionPreparation | None:
    """Return what is to be compacted of a session, as a model reads it.

    :param path: the entries from the root to the current one.
    :param model: whose limits hold; without it those for all models.
    :param focus: what the user wants the summary to attend to.
    :returns: ``None`` when there is nothing to compact: what there is is to be kept, or was compacted just now.
    """
    if path and path[-1].type == "compaction":
        return None
    projection = project(path)
    messages, ids = list(projection.messages), list(projection.entry_ids)
    previous = None
    if messages and isinstance(messages[0], CompactionSummaryMessage):
        previous = without_lists(messages[0].summary)
        messages, ids = messages[1:], ids[1:]
    cut = find_cut(messages, limits_for(settings, model).keep_recent_tokens)
    if cut is None:
        return None
    files = file_lists(messages[: cut.kept], _details(path, ids[: cut.kept]))
    return CompactionPreparation(
        messages=tuple(messages[: cut.turn]),
        split_prefix=tuple(messages[cut.turn : cut.kept]),
        first_kept_entry_id=ids[cut.kept],
        previous_summary=previous,
        tokens_before=context_tokens(projection.messages),
        tokens_kept=sum(message_tokens(message) for message in messages[cut.kept :]),
        read_files=files.read,
        modified_files=files.modified,
        summarized_entry_ids=tuple(ids[: cut.kept]),
        focus=focus,
    )


def _details(path: Sequence[Entry], summarized: Sequence[str]) -> Iterator[Mapping[str, Any] | None]:
    """The details of the last compaction, and of the summaries of branches that are summarised now."""
    compactions = [entry for entry in path if entry.type == "compaction"]
    wanted = {*summarized, *(entry.id for entry in compactions[-1:])}
    for entry in path:
        if entry.id in wanted and isinstance(entry.body, Compaction | BranchSummary):
            yield entry.body.details
