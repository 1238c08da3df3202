"""Sessions: the transcript on disk, as a tree of entries; its hooks and the command ``pi sessions``.

The names are imported when they are first used.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pi_core import Command, CustomMessage, hookimpl
from pi_plugins._lazy import names_of

from . import hookspecs

if TYPE_CHECKING:
    import click

    from .branches import OutlineRow as OutlineRow
    from .branches import outline as outline
    from .entries import Entry as Entry
    from .entries import SessionHeader as SessionHeader
    from .export import export_session as export_session
    from .files import SessionRef as SessionRef
    from .files import find_session as find_session
    from .files import latest_session as latest_session
    from .files import sessions_dir as sessions_dir
    from .listing import SessionInfo as SessionInfo
    from .listing import list_sessions as list_sessions
    from .messages import BashExecutionMessage as BashExecutionMessage
    from .messages import BranchSummaryMessage as BranchSummaryMessage
    from .messages import CompactionSummaryMessage as CompactionSummaryMessage
    from .messages import CustomEntryMessage as CustomEntryMessage
    from .projection import Projection as Projection
    from .session import Session as Session
    from .stats import SessionStats as SessionStats
    from .store import SessionInUseError as SessionInUseError
    from .tree import TreeNode as TreeNode

__getattr__, __dir__ = names_of(
    __name__,
    branches=("OutlineRow", "outline"),
    entries=("Entry", "SessionHeader"),
    export=("export_session",),
    files=("SessionRef", "find_session", "latest_session", "sessions_dir"),
    listing=("SessionInfo", "list_sessions"),
    messages=("BashExecutionMessage", "BranchSummaryMessage", "CompactionSummaryMessage", "CustomEntryMessage"),
    projection=("Projection",),
    session=("Session",),
    stats=("SessionStats",),
    store=("SessionInUseError",),
    tree=("TreeNode",),
)


class SessionsPlugin:
    """Offers the hooks of sessions and compaction, the message types of session files, and ``pi sessions``."""

    @hookimpl
    def register_hookspecs(self) -> list[object]:
        """Offer the hooks of this package."""
        return [hookspecs]

    @hookimpl
    def register_message_types(self) -> Iterable[type[CustomMessage]]:
        """Offer the messages of sessions."""
        from .messages import MESSAGE_TYPES

        return MESSAGE_TYPES

    @hookimpl
    def register_commands(self) -> list[Command]:
        """Offer ``pi sessions``."""
        return [Command(name="sessions", help="List, show, copy and remove sessions.", load=_command)]


def _command() -> click.Command:
    from .command import sessions

    return sessions
