"""One change of a file at a time, in the order the calls were made."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ._threads import Stop, in_thread

T = TypeVar("T")

_guard = threading.Lock()
_queues: dict[str, deque[_Turn]] = {}


class _Turn:
    """A place in the queue of one real path; the first one of a queue may work. Works across event loops."""

    __slots__ = ("_future", "_key", "_loop")

    def __init__(self, path: str) -> None:
        self._key = key = _key(path)
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] = self._loop.create_future()
        with _guard:
            queue = _queues.setdefault(key, deque())
            queue.append(self)
            first = len(queue) == 1
        if first:
            self._future.set_result(None)

    async def come(self) -> None:
        """Wait until it is this one's turn."""
        await self._future

    def leave(self) -> None:
        """Give the turn, or the place in the queue, to the next one; a second call does nothing."""
        with _guard:
            queue = _queues.get(self._key)
            if queue is None or self not in queue:
                return
            worked = queue[0] is self
            queue.remove(self)
            while worked and queue and not queue[0]._wake():
                queue.popleft()
            if not queue:
                del _queues[self._key]

    def _wake(self) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._begin)
        except RuntimeError:  # its event loop is closed: nobody waits any more
            return False
        return True

    def _begin(self) -> None:
        if not self._future.done():
            self._future.set_result(None)


def _key(path: str) -> str:
    """Return what all names of one file have in common."""
    real = os.path.realpath(path)
    try:
        found = os.stat(real)
    except OSError:
        return real
    return f"{found.st_dev}:{found.st_ino}" if found.st_nlink > 1 and stat.S_ISREG(found.st_mode) else real


async def with_file_mutation_queue(path: str | os.PathLike[str], change: Callable[[], Awaitable[T]]) -> T:
    """Run ``change`` while no built-in tool and no other caller of this changes the same file, links followed.

    Calls of one event loop get their turn in the order in which they came here.

    :param path: of a file that may not be there yet; a relative one starts from the directory of the process.
    """
    turn = _Turn(os.fspath(path))
    try:
        await turn.come()
        return await change()
    finally:
        turn.leave()


async def change_file(path: str, change: Callable[[], T], stop: Stop) -> T:
    """Run ``change`` in a thread while no other call changes the same file, symbolic links followed.

    Calls of one event loop get their turn in the order in which they came here.
    """
    turn = _Turn(path)

    def work() -> T:
        try:
            return change()
        finally:
            turn.leave()

    started = False
    try:
        await turn.come()
        stop.check()
        started = True
        return await in_thread(work, stop)
    finally:
        if not started:
            turn.leave()
