"""The file of one session: whole lines are added to it, and nothing in it is ever changed."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from pi_core import ConfigError

from ._lock import holder, lock

_FLAGS: Final = os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


class SessionInUseError(ConfigError):
    """Another process or session writes a session file.

    :param path: the file.
    :param process: the id of the process, where the system tells.
    """

    def __init__(self, path: Path, process: int | None = None) -> None:
        self.path = path
        self.who = "another process" if process is None else f"process {process}"
        super().__init__(f"{path}: {self.who} writes this session. End it there, or go on in a copy with --fork")


class SessionFile:
    """An open session file that this process alone writes.

    :param path: where it is.
    :param durable: whether each line is forced to the disk; otherwise that is done when the file is closed, and a
        line survives the death of the process but perhaps not that of the machine.
    """

    def __init__(self, path: Path, descriptor: int, *, durable: bool = False) -> None:
        self.path = path
        self.durable = durable
        self._descriptor = descriptor
        self._torn = False

    @classmethod
    def create(cls, path: Path, data: bytes, *, durable: bool = False) -> SessionFile:
        """Make the file with its first lines, in folders for the user alone.

        :raises ConfigError: it exists, or it cannot be written; then nothing is left of it.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
        except OSError as error:
            raise _cannot("create", path, error) from error
        lock(descriptor)
        made = cls(path, descriptor, durable=durable)
        try:
            made.append(data)
        except ConfigError:
            os.close(descriptor)
            path.unlink()
            raise
        return made

    @classmethod
    def open(cls, path: Path, *, durable: bool = False) -> tuple[SessionFile, bytes]:
        """Open a file to add to it, and return what is in it.

        :raises SessionInUseError: another process or session writes it.
        :raises ConfigError: it cannot be opened.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | _FLAGS)
        except OSError as error:
            raise _cannot("open", path, error) from error
        try:
            if not lock(descriptor):
                raise SessionInUseError(path, holder(descriptor))
            data = _read(descriptor)
        except OSError as error:
            os.close(descriptor)
            raise _cannot("read", path, error) from error
        except ConfigError:
            os.close(descriptor)
            raise
        made = cls(path, descriptor, durable=durable)
        made._torn = bool(data) and not data.endswith(b"\n")
        return made, data

    @staticmethod
    def read(path: Path) -> bytes:
        """Return what is in a file without opening it for writing.

        :raises ConfigError: it cannot be read.
        """
        try:
            return path.read_bytes()
        except OSError as error:
            raise _cannot("read", path, error) from error

    def append(self, lines: bytes) -> None:
        """Add whole lines with one write; a file that ends within a line gets the end of that line first.

        :raises ConfigError: they could not be written; nothing of them is in the file.
        """
        data = b"\n" + lines if self._torn else lines
        before = None
        try:
            before = os.fstat(self._descriptor).st_size
            _write(self._descriptor, data)
            if self.durable:
                os.fsync(self._descriptor)
        except OSError as error:
            self._take_back(before)
            raise _cannot("write", self.path, error) from error
        self._torn = False

    def _take_back(self, size: int | None) -> None:
        """Cut off what a failed write left; where even that fails, the next line begins on a line of its own."""
        try:
            if size is not None:
                os.ftruncate(self._descriptor, size)
        except OSError:
            self._torn = True

    def replace(self, data: bytes, kept: Path) -> None:
        """Put other content in the place of the file, whole or not at all.

        :param kept: where the old file stays.
        :raises ConfigError: it could not be done; the file is as it was.
        """
        target = Path(os.path.realpath(self.path))
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        descriptor = None
        try:
            descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
            lock(descriptor)
            _write(descriptor, data)
            os.fsync(descriptor)
            if not kept.exists():
                shutil.copy2(target, kept)
            os.replace(temporary, target)
        except OSError as error:
            if descriptor is not None:
                os.close(descriptor)
                with suppress(OSError):
                    temporary.unlink()
            raise _cannot("rewrite", self.path, error) from error
        os.close(self._descriptor)
        self._descriptor = descriptor
        self._torn = False

    def close(self) -> None:
        """Force everything to the disk and give the file free; a second call does nothing."""
        if self._descriptor < 0:
            return
        with suppress(OSError):
            os.fsync(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = -1


def _read(descriptor: int) -> bytes:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        return file.read()


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _cannot(what: str, path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"Cannot {what} the session file {path}: {error.strerror or error}")
