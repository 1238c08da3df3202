"""What a compaction would summarise, and what it would keep."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pi_core import Model
from pi_plugins.sessions.bodies import BranchSummary, Compaction
from pi_plugins.sessions.entries import Entry
from pi_plugins.sessions.messages import CompactionSummaryMessage
from pi_plugins.sessions.projection import ProjectionBuilder

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
    projection = ProjectionBuilder(path).projection()
    messages, ids = projection.messages, projection.entry_ids
    previous = None
    if messages and isinstance(messages[0], CompactionSummaryMessage):
        previous = without_lists(messages[0].summary)
        messages, ids = messages[1:], ids[1:]
    cut = find_cut(messages, limits_for(settings, model).keep_recent_tokens)
    if cut is None:
        return None
    first_kept = ids[cut.kept]
    assert first_kept is not None, "only results have no entry, and none is cut before"
    summarized = tuple(entry_id for entry_id in ids[: cut.kept] if entry_id is not None)
    files = file_lists(messages[: cut.kept], _details(path, projection.compaction, set(summarized)))
    return CompactionPreparation(
        messages=tuple(messages[: cut.turn]),
        split_prefix=tuple(messages[cut.turn : cut.kept]),
        first_kept_entry_id=first_kept,
        previous_summary=previous,
        tokens_before=context_tokens(projection.messages),
        tokens_kept=sum(message_tokens(message) for message in messages[cut.kept :]),
        read_files=files.read,
        modified_files=files.modified,
        summarized_entry_ids=summarized,
        focus=focus,
    )


def _details(
    path: Sequence[Entry], compaction: Entry | None, summarized: Collection[str]
) -> Iterator[Mapping[str, Any] | None]:
    """The details of the compaction before, and of the summaries of branches that are summarised now."""
    for entry in path:
        if entry is compaction or (entry.type == "branch_summary" and entry.id in summarized):
            body = entry.body
            if isinstance(body, Compaction | BranchSummary):
                yield body.details
