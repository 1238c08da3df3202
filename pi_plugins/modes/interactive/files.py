"""The files of a project, found by a few letters of their names."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from pi_plugins.tools._paths import shown
from pi_plugins.tools._threads import Stop
from pi_plugins.tools._walk import Walk

MOST_FILES: Final = 100_000
"""Files and folders that are looked through; what comes after them in a larger project is not found."""

_FIRST_WAIT: Final = 0.5
_FRESH_SECONDS: Final = 10.0
_CHECK_EVERY: Final = 2000


class ProjectFiles:
    """Knows the files and folders below a folder, but for those that ``.gitignore`` leaves out.

    They are read in a thread when they are first asked for, and again later, since they change.

    :param root: the folder.
    :param clock: seconds that only go forward.
    """

    def __init__(self, root: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.root = root
        self._clock = clock
        self._lock = threading.Lock()
        self._known: list[tuple[str, str]] = []
        self._read_at: float | None = None
        self._reading: threading.Thread | None = None
        self._narrowed: tuple[str, list[tuple[str, str]], list[tuple[str, str]]] | None = None

    def search(self, text: str, limit: int = 50, stop: Callable[[], bool] = lambda: False) -> list[str]:
        """Return the paths that a text means, the best first; folders end with ``/``.

        The letters of the text have to follow each other in the path. Waits a moment for the first look at the folder.

        :param limit: the most paths.
        :param stop: says that nobody waits any more; what was found by then is returned.
        """
        self._refresh().join(_FIRST_WAIT)
        wish = text.lower()
        known = self._known
        before = self._narrowed
        pool = before[2] if before is not None and before[1] is known and wish.startswith(before[0]) else known
        found: list[tuple[str, str]] = []
        for at, pair in enumerate(pool):
            if at % _CHECK_EVERY == 0 and stop():
                break
            if _follows(wish, pair[1]):
                found.append(pair)
        else:
            self._narrowed = (wish, known, found)
        return [path for path, _ in _best(found, wish, limit)]

    def wait(self) -> None:
        """Wait until the folder was read."""
        self._refresh().join()

    def _refresh(self) -> threading.Thread:
        """Read the folder when that was not done lately, and return the thread that does or did."""
        with self._lock:
            reading = self._reading
            stale = self._read_at is None or self._clock() - self._read_at > _FRESH_SECONDS
            if reading is None or (not reading.is_alive() and stale):
                reading = self._reading = threading.Thread(target=self._read, name="pi-project-files", daemon=True)
                reading.start()
            return reading

    def _read(self) -> None:
        found: list[tuple[str, str]] = []
        first = self._read_at is None
        if first:
            self._known = found  # what is there already can be found while the rest is read
        for path in _walk(self.root):
            found.append((path, path.lower()))
            if len(found) >= MOST_FILES:
                break
        self._known = found
        self._read_at = self._clock()


def _walk(root: Path) -> Iterator[str]:
    where = os.path.abspath(root)
    for found in Walk(where, where, Stop(None)):
        yield shown(found.path) + ("/" if found.is_directory else "")


def _follows(wish: str, path: str) -> bool:
    """Whether all letters of a text are in a path, in their order."""
    at = -1
    for letter in wish:
        at = path.find(letter, at + 1)
        if at < 0:
            return False
    return True


def _best(found: Iterable[tuple[str, str]], wish: str, limit: int) -> list[tuple[str, str]]:
    """The nearest ones: the text begins the name, is in the name, is in the path, or its letters are."""
    import heapq

    def rank(pair: tuple[str, str]) -> tuple[int, int, int, str]:
        path = pair[1]
        bare = path.rstrip("/")
        name = bare[bare.rfind("/") + 1 :]
        if name.startswith(wish):
            place = 0
        elif wish in name:
            place = 1
        elif wish in path:
            place = 2
        else:
            place = 3 if _follows(wish, name) else 4
        return place, bare.count("/"), len(path), path

    return heapq.nsmallest(limit, found, key=rank)


__all__ = ["MOST_FILES", "ProjectFiles"]
