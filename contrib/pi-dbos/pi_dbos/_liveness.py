"""Which workers live, as the system or the database says: the lock of a process that is gone is free.

The engine leaves it to its operator to tell it that a process is dead. A worker that is thought dead by mistake does no
harm: the engine lets only the latest owner of a run keep anything of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Protocol

import psycopg
from filelock import FileLock, Timeout
from sqlalchemy.engine import URL

from ._engine import is_sqlite


class Liveness(Protocol):
    """Says for one worker that it lives, and finds out whether others do."""

    def keep(self) -> None:
        """Say that this worker lives, also when the connection was lost meanwhile."""

    def dead(self, worker: str) -> AbstractContextManager[bool]:
        """Say whether a worker is dead; while it is, nobody else is told so."""

    def close(self) -> None:
        """Say that this worker is gone."""


class FileLiveness:
    """Locks files beside a SQLite database.

    :param folder: where the files are.
    :param worker: this one's name.
    """

    def __init__(self, folder: Path, worker: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._own = FileLock(folder / f"{worker}.lock")
        self._own.acquire(timeout=0)

    def keep(self) -> None:
        """Nothing to do: the lock lasts as long as the process."""

    @contextmanager
    def dead(self, worker: str) -> Iterator[bool]:
        """Say whether a worker is dead; while it is, nobody else is told so."""
        path = self._folder / f"{worker}.lock"
        lock = FileLock(path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            yield False
            return
        try:
            yield True
            path.unlink(missing_ok=True)
        finally:
            lock.release()

    def close(self) -> None:
        """Release the lock and remove its file."""
        Path(self._own.lock_file).unlink(missing_ok=True)
        self._own.release()


class PostgresLiveness:
    """Holds advisory locks in a session of its own, which ends with the process or with the connection to it.

    :param url: address of the database.
    :param worker: this one's name.
    """

    def __init__(self, url: URL, worker: str) -> None:
        self._address = url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._worker = worker
        self._held = False
        self._connection = self._connect()
        self.keep()

    def _connect(self) -> psycopg.Connection[tuple[bool]]:
        # The server notices within half a minute that a machine is gone without a word.
        alive = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=4"
        return psycopg.connect(self._address, autocommit=True, options=alive)

    def _lock(self, worker: str) -> bool:
        row = self._connection.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", [worker]).fetchone()
        return row is not None and row[0]

    def keep(self) -> None:
        """Take the lock again if the connection was lost, as soon as the server knows that too."""
        try:
            self._connection.execute("SELECT true")
        except psycopg.Error:
            with suppress(psycopg.Error):
                self._connection.close()
            self._held = False
            self._connection = self._connect()
        if not self._held:
            self._held = self._lock(self._worker)

    @contextmanager
    def dead(self, worker: str) -> Iterator[bool]:
        """Say whether a worker is dead; while it is, nobody else is told so."""
        free = self._lock(worker)
        try:
            yield free
        finally:
            if free:
                self._connection.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [worker])

    def close(self) -> None:
        """End the session."""
        self._connection.close()


def liveness(url: URL, worker: str) -> Liveness:
    """Say from now on that a worker lives.

    :raises OSError: the files cannot be written.
    :raises psycopg.Error: the database cannot be reached.
    """
    if is_sqlite(url):
        return FileLiveness(Path(f"{url.database}.workers"), worker)
    return PostgresLiveness(url, worker)
