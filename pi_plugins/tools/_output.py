"""Keeps the end of what a command prints in memory, and all of it in a file once it is more than is shown."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from typing import BinaryIO

from ._truncate import Truncation, decode_end, exceeds, format_size, tail_of

KEPT_BYTES = 1024 * 1024
"""How much of the end is kept in memory, for programs that read the structured result."""

_FLUSH_BYTES = 256 * 1024
_directory_lock = threading.Lock()
_directory: str | None = None


def private_directory() -> str:
    """Return a directory that only this user can look into, made at the first call of the process."""
    global _directory
    with _directory_lock:
        if _directory is None or not os.path.isdir(_directory):
            _directory = tempfile.mkdtemp(prefix="pi-")
        return _directory


def private_file(suffix: str) -> tuple[str, BinaryIO]:
    """Make a file in the private directory and open it for writing; only this user may read it.

    :returns: its path, and the open file.
    """
    path = os.path.join(private_directory(), f"pi-bash-{os.urandom(8).hex()}{suffix}")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    return path, open(descriptor, "wb", buffering=0)


class Output:
    """What a command has printed so far.

    :param max_lines: most lines that are shown, of the end.
    :param max_bytes: most bytes that are shown.
    :param max_log_bytes: most bytes that are written to the file.
    """

    def __init__(self, max_lines: int, max_bytes: int, max_log_bytes: int) -> None:
        self._max_lines = max_lines
        self._max_bytes = max_bytes
        self._max_log_bytes = max_log_bytes
        self._kept_bytes = max(KEPT_BYTES, max_bytes + 2)
        self._end = bytearray()
        self._newlines = 0
        self._line_bytes = 0
        self._last_line_bytes = 0
        self._unwritten = bytearray()
        self._log: BinaryIO | None = None
        self._log_failure: str | None = None
        self._logged = 0
        self.log_path: str | None = None
        self.total_bytes = 0

    @property
    def total_lines(self) -> int:
        """How many lines were printed; a final newline begins no line."""
        return self._newlines + (1 if self._line_bytes else 0)

    async def add(self, chunk: bytes) -> None:
        """Take what the command printed next."""
        self.total_bytes += len(chunk)
        self._count(chunk)
        if self._logged < self._max_log_bytes and self._log_failure is None:
            self._unwritten += chunk
        self._end += chunk
        if len(self._end) > 2 * self._kept_bytes:
            del self._end[: len(self._end) - self._kept_bytes]
        if self._over_limit and len(self._unwritten) >= _FLUSH_BYTES:
            await asyncio.to_thread(self._write)

    async def finish(self) -> None:
        """Write what is missing in the file and close it."""
        if self._over_limit and self._unwritten:
            await asyncio.to_thread(self._write)
        self.close()

    def close(self) -> None:
        """Close the file, if there is one."""
        if self._log is not None:
            self._log.close()
            self._log = None

    @property
    def _over_limit(self) -> bool:
        return exceeds(self._end, **self._limits)

    @property
    def _limits(self) -> dict[str, int]:
        return {
            "total_lines": self.total_lines,
            "total_bytes": self.total_bytes,
            "max_lines": self._max_lines,
            "max_bytes": self._max_bytes,
        }

    def _count(self, chunk: bytes) -> None:
        last = chunk.rfind(b"\n")
        if last < 0:
            self._line_bytes += len(chunk)
            return
        before = chunk.rfind(b"\n", 0, last)
        self._last_line_bytes = last - before - 1 if before >= 0 else self._line_bytes + last
        self._line_bytes = len(chunk) - last - 1
        self._newlines += chunk.count(b"\n")

    def _write(self) -> None:
        data = bytes(self._unwritten[: self._max_log_bytes - self._logged])
        self._unwritten.clear()
        try:
            if self._log is None:
                self.log_path, self._log = private_file(".log")
            view = memoryview(data)
            while view:
                view = view[self._log.write(view) :]
        except OSError as error:
            self._log_failure = error.strerror or str(error)
        self._logged += len(data)

    def kept(self) -> tuple[str, bool]:
        """Return the end as text, and whether something is missing before it."""
        end = self._end[-self._kept_bytes :]
        cut = self.total_bytes > len(end)
        return decode_end(end) if cut else end.decode("utf-8", "replace"), cut

    def truncation(self) -> Truncation:
        """Return what of it is shown: the last lines, or the end of a line that is over the limit by itself."""
        return tail_of(self._end, **self._limits)

    def notice(self, shown: Truncation) -> str:
        """Return the words about what is missing in the shown part."""
        last = shown.total_lines
        limit = format_size(self._max_bytes)
        if shown.last_line_partial:
            size = self._line_bytes or self._last_line_bytes
            what = f"Showing last {limit} of line {last} (line is {format_size(size)})"
        else:
            what = f"Showing lines {last - shown.output_lines + 1}-{last} of {last}"
            if shown.truncated_by == "bytes":
                what += f" ({limit} limit)"
        return f"[{what}. {self._where()}]"

    def _where(self) -> str:
        if self._log_failure is not None:
            return f"Full output could not be kept: {self._log_failure}"
        if self.total_bytes > self._max_log_bytes:
            return f"First {format_size(self._max_log_bytes)} of output: {self.log_path}"
        return f"Full output: {self.log_path}"
