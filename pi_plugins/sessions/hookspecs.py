"""The hooks of sessions and compaction.

``session`` is the :class:`~pi_plugins.coding_agent.AgentSession` that asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pi_core import Block, Kind, hookspec

if TYPE_CHECKING:
    from .compaction import CompactionPreparation, CompactionResult


@hookspec(Kind.GUARD)
async def session_before_switch(session: Any, reason: str, target: str | None) -> Block | None:
    """Called before another session takes the place of this one.

    :param reason: ``new`` or ``resume``.
    :param target: the session file that is opened.
    :returns: :class:`~pi_core.Block` to stay.
    """


@hookspec(Kind.GUARD)
async def session_before_fork(session: Any, entry_id: str, position: str) -> Block | None:
    """Called before a session is forked.

    :param position: ``before`` the entry, or ``at`` it.
    :returns: :class:`~pi_core.Block` to refuse it.
    """


@hookspec(Kind.GUARD)
async def session_before_tree(session: Any, target_id: str, summarize: bool) -> Block | None:
    """Called before the position in the tree moves to another branch.

    :param summarize: whether the branch that is left is to be summarised.
    :returns: :class:`~pi_core.Block` to stay.
    """


@hookspec(Kind.NOTIFY)
async def session_tree(session: Any, new_leaf_id: str | None, old_leaf_id: str | None) -> None:
    """Called when the position in the tree has moved."""


@hookspec(Kind.GUARD)
async def session_before_compact(session: Any, preparation: CompactionPreparation, reason: str) -> Block | None:
    """Called before a compaction.

    :param preparation: what is to be summarised and what is kept.
    :param reason: ``manual``, ``threshold`` or ``overflow``.
    :returns: :class:`~pi_core.Block` to leave the session as it is.
    """


@hookspec(Kind.FIRST)
async def summarize(session: Any, preparation: CompactionPreparation) -> CompactionResult | None:
    """Called to make the summary of a compaction. Without an answer the model of the session is asked.

    :returns: the summary with what it cost.
    """


@hookspec(Kind.NOTIFY)
async def session_compact(session: Any, result: CompactionResult, reason: str) -> None:
    """Called when a compaction is in the session."""


@hookspec(Kind.NOTIFY)
async def session_compact_failed(session: Any, reason: str, error: str, aborted: bool) -> None:
    """Called when a compaction failed or was given up; the session is as it was."""
