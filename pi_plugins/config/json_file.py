"""JSON files: read with care, and changed so that no process undoes another's change or sees half of one."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from pi_core import ConfigError

from .json_text import JsonDocument, decode, parse_json

T = TypeVar("T")

PRIVATE: Final = 0o600
"""The mode of a file that only its owner may read."""

_WAIT_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.02
# A file system stamps changes with a clock of a few milliseconds: two of them may look like one.
_SETTLED_NS: Final = 100_000_000


def read_document(path: Path, *, comments: bool = False) -> JsonDocument | None:
    """Read a JSON file; ``None`` when there is none.

    :param comments: whether ``//`` and ``/* */`` are allowed.
    :raises ConfigError: it cannot be read, or it is not JSON; names file, line and column.
    """
    try:
        # A pipe is not opened: that would wait for somebody to write into it.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError(f"{path}: not a regular file")
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from error
    return parse_json(decode(data, path), path, comments=comments)


def read_json(path: Path, *, comments: bool = False) -> Any:
    """Return what a JSON file holds; ``None`` when there is none.

    :param comments: whether ``//`` and ``/* */`` are allowed.
    :raises ConfigError: it cannot be read, is not JSON, or an object holds a key twice; names file and line.
    """
    document = read_document(path, comments=comments)
    return None if document is None else _unambiguous(document)


def replace_file(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Give a file new content in one step: a reader, or a crash at any moment, finds the old or the new one whole.

    A link stays, and what it points at is replaced. The mode of a file that is there is kept. Missing folders are made,
    for a private file with mode 0700.

    :param mode: of a new file; the process's usual one by default.
    :raises OSError: the system refuses.
    """
    target = os.path.realpath(path)
    _make_folder(os.path.dirname(target), mode)
    try:
        kept: int | None = stat.S_IMODE(os.stat(target).st_mode)
    except FileNotFoundError:
        kept = mode
    temporary = f"{_temporary_prefix(target)}{os.urandom(8).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o666 if kept is None else PRIVATE)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if kept is not None:
                os.fchmod(descriptor, kept)
            os.fsync(descriptor)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


class LockedJson:
    """A file with one JSON object that several processes read and change.

    The lock is a file beside the real one, so that all the paths that lead to it share it. Calls wait; in a coroutine
    use a thread.

    :param path: the file; it need not exist.
    :param mode: of a new file; with 0600 a new folder gets 0700. The process's usual one by default.
    :param wait: seconds to wait for other processes.
    """

    def __init__(self, path: Path, *, mode: int | None = None, wait: float = _WAIT_SECONDS) -> None:
        self.path = path
        self._mode = mode
        self._wait = wait
        self._read: tuple[tuple[int, int, int], dict[str, Any]] | None = None

    def read(self) -> Mapping[str, Any]:
        """Return the object, which must not be changed; it is read again when the file changed. Empty without a file.

        :raises ConfigError: it cannot be read, or it is not one JSON object.
        """
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigError(f"{self.path}: {error.strerror or error}") from error
        revision = (found.st_mtime_ns, found.st_size, found.st_ino)
        if self._read is not None and self._read[0] == revision:
            return self._read[1]
        value = self._load()
        settled = time.time_ns() - found.st_mtime_ns > _SETTLED_NS
        self._read = (revision, value) if settled else None
        return value

    def update(self, change: Callable[[dict[str, Any]], T]) -> T:
        """Change the object under the lock, and write it in one step if it is another one then.

        :param change: edits the object, as it is in the file now; it must not update the same file.
        :returns: what ``change`` returns.
        :raises ConfigError: the file is not one JSON object and is left as it is, cannot be written, or other processes
            hold its lock for too long.
        """
        target = Path(os.path.realpath(self.path))
        try:
            _make_folder(str(target.parent), self._mode)
            with self._lock(target):
                value = self._load_or_refuse()
                before = _to_bytes(value, self.path)
                result = change(value)
                after = _to_bytes(value, self.path)
                if after != before:
                    _remove_leftovers(target)
                    replace_file(target, after, mode=self._mode)
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be changed: {error.strerror or error}") from error
        return result

    def _lock(self, target: Path) -> contextlib.AbstractContextManager[object]:
        from filelock import FileLock, Timeout

        lock = FileLock(f"{target}.lock", timeout=self._wait)
        try:
            return lock.acquire(poll_interval=_POLL_SECONDS)
        except Timeout:
            raise ConfigError(
                f"{self.path} cannot be changed: another process has held {target}.lock for {self._wait:g} s. "
                "End that process and try again"
            ) from None

    def _load_or_refuse(self) -> dict[str, Any]:
        try:
            return self._load()
        except ConfigError as error:
            raise ConfigError(f"{error}. The file is left as it is; correct it first") from None

    def _load(self) -> dict[str, Any]:
        document = read_document(self.path)
        if document is None:
            return {}
        value = _unambiguous(document)
        if not isinstance(value, dict):
            raise ConfigError(f"{document.place()}: expected an object: {{...}}")
        return value


def _unambiguous(document: JsonDocument) -> Any:
    for path, lines in document.duplicates():
        name = ".".join(map(str, path))
        raise ConfigError(f"{document.place(path)}: the key '{name}' is there twice ({lines}); remove one")
    return document.value


def _to_bytes(value: dict[str, Any], path: Path) -> bytes:
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
        try:
            return f"{text}\n".encode()
        except UnicodeEncodeError:  # half of a surrogate pair, which JSON can hold and UTF-8 cannot
            return f"{json.dumps(value, indent=2)}\n".encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: what would be written is no JSON: {error}") from error


def _make_folder(folder: str, mode: int | None) -> None:
    try:
        os.makedirs(folder, mode=0o700 if mode == PRIVATE else 0o777, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder) from error


def _temporary_prefix(target: str) -> str:
    folder, name = os.path.split(target)
    return os.path.join(folder, f".{name}.")


def _remove_leftovers(target: Path) -> None:
    """Remove what writers left that were killed. Only the holder of the lock writes, so all of it is theirs."""
    leftover = re.compile(re.escape(os.path.basename(_temporary_prefix(str(target)))) + r"[0-9a-f]{16}\.tmp")
    for name in os.listdir(target.parent):
        if leftover.fullmatch(name):
            os.unlink(target.parent / name)


__all__ = ["PRIVATE", "LockedJson", "read_document", "read_json", "replace_file"]
