"""What runs beside the conversation, such as a command that takes its time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class Beside:
    """Lets things run, and keeps hold of them until they are done.

    :param tell: shows the user what one of them raises.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._tasks: set[asyncio.Future[None]] = set()

    def start(self, work: Awaitable[None]) -> None:
        """Let something run."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Future[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._tell(f"{type(error).__name__}: {error}")
