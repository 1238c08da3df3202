"""Sessions: the transcript on disk, as a tree of entries; its hooks and the command ``pi sessions``."""

from __future__ import annotations

from pi_core import hookimpl

from . import hookspecs


class SessionsPlugin:
    """Offers the hooks of sessions and compaction, the message types of session files, and ``pi sessions``."""

    @hookimpl
    def register_hookspecs(self) -> list[object]:
        """Offer the hooks of this package."""
        return [hookspecs]
