"""Makes the summary of a compaction: of the history, and of the beginning of a turn that is split."""

from __future__ import annotations

from typing import Any, Final

from pi_core import AbortSignal, Model, ThinkingLevel
from pi_plugins.sessions.messages import CompactionSummaryMessage

from .estimate import message_tokens
from .files import FileLists, with_lists
from .prompts import HISTORY, TURN
from .types import CompactionPreparation, CompactionResult, Complete
from .writer import SummaryWriter

_TURN_BEGINS: Final = "\n\n---\n\n# Beginning of the turn that goes on below\n\n"


async def summarize(
    preparation: CompactionPreparation,
    complete: Complete,
    model: Model,
    level: ThinkingLevel = "off",
    *,
    signal: AbortSignal | None = None,
) -> CompactionResult:
    """Have a model summarise what is no longer to be sent.

    :param complete: makes one request. It is given no tools, and a prompt cache of its own.
    :param level: the thinking level of the session.
    :param signal: gives it up.
    :raises CompactionError: no summary could be made, or it was given up.
    """
    writer = SummaryWriter(complete, model, level, signal)
    parts: list[str] = []
    if preparation.messages:
        parts.append(
            await writer.write(
                HISTORY, preparation.messages, previous=preparation.previous_summary, focus=preparation.focus
            )
        )
    elif preparation.previous_summary:
        parts.append(preparation.previous_summary)
    if preparation.split_prefix:
        parts.append(await writer.write(TURN, preparation.split_prefix, focus=preparation.focus))
    files = FileLists(preparation.read_files, preparation.modified_files)
    summary = with_lists(_TURN_BEGINS.join(parts), files)
    return CompactionResult(
        summary=summary,
        first_kept_entry_id=preparation.first_kept_entry_id,
        tokens_before=preparation.tokens_before,
        estimated_tokens_after=preparation.tokens_kept + message_tokens(CompactionSummaryMessage(summary=summary)),
        usage=writer.usage,
        details=_details(preparation, files),
    )


def _details(preparation: CompactionPreparation, files: FileLists) -> dict[str, Any]:
    details: dict[str, Any] = files.to_details()
    if preparation.summarized_entry_ids:
        first, last = preparation.summarized_entry_ids[0], preparation.summarized_entry_ids[-1]
        details["summarizedEntries"] = {"first": first, "last": last}
    return details
