"""When the entries of a session are written, and which are not yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from pi_core import ConfigError

from ._lines import encode
from .entries import Entry, SessionHeader
from .store import SessionFile

BEGINNING: Final = frozenset({"user", "assistant"})
"""Roles of the messages with which a session begins to be worth a file."""


class Saver:
    """Writes entries to the file of a session.

    :param path: where the file is or will be.
    :param durable: whether each entry is forced to the disk.
    """

    def __init__(self, header: SessionHeader, path: Path, *, durable: bool = False) -> None:
        self.unsaved: list[Entry] = []
        self._header = header
        self._path = path
        self._durable = durable
        self._file: SessionFile | None = None
        self._old_version: int | None = None

    def resume(self, file: SessionFile, old_version: int | None) -> None:
        """Go on with a file that is there.

        :param old_version: the version of the format it has, if that is an old one.
        """
        self._file = file
        self._old_version = old_version

    def add(self, entries: Sequence[Entry], everything: Iterable[Entry]) -> None:
        """Write entries, or keep them until the first message of the user or of a model.

        :param everything: all entries of the session, these among them; a file of an old version is written anew.
        :raises ConfigError: they could not be written. They go before the next ones then, so that the file has no gaps.
        """
        self.unsaved += entries
        if self._file is None and not any(entry.role in BEGINNING for entry in self.unsaved):
            return
        try:
            self._save(everything)
        except ConfigError as error:
            entries_are = "1 entry is" if len(self.unsaved) == 1 else f"{len(self.unsaved)} entries are"
            raise ConfigError(f"{error}; {entries_are} only in memory, and written with the next one") from error

    def close(self) -> None:
        """Force everything to the disk and give the file free."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _save(self, everything: Iterable[Entry]) -> None:
        if self._file is None:
            self._file = SessionFile.create(self._path, self._encoded(self.unsaved), durable=self._durable)
            self.unsaved.clear()
        elif self._old_version is not None:
            kept = self._path.with_name(f"{self._path.name}.v{self._old_version}")
            self._file.replace(self._encoded(everything), kept)
            self._old_version = None
            self.unsaved.clear()
        while self.unsaved:
            self._file.append(encode(self.unsaved[0].to_json()))
            del self.unsaved[0]

    def _encoded(self, entries: Iterable[Entry]) -> bytes:
        return b"".join(map(encode, [self._header.to_json(), *(entry.to_json() for entry in entries)]))
