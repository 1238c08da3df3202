"""One writer for a file: a lock of the operating system, which it takes back when the process dies."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Final

_REFUSED: Final = frozenset({errno.EACCES, errno.EAGAIN, errno.EDEADLK})
_FAR: Final = 0x7FFF_FFFF  # beyond what is read: on Windows a locked byte is one that nobody else reads

if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int) -> None:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)

else:
    import fcntl

    def _take(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock(descriptor: int) -> bool:
    """Lock an open file until its descriptor is closed.

    :returns: whether the file is ours. A file system without locks gives it to everybody.
    """
    try:
        _take(descriptor)
    except OSError as error:
        return error.errno not in _REFUSED
    return True


def holder(descriptor: int) -> int | None:
    """Return the process id of who holds the lock of an open file, where the system tells."""
    try:
        inode = os.fstat(descriptor).st_ino
        table = Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return None
    for line in table.splitlines():
        fields = line.split()
        if len(fields) >= 6 and fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == str(inode):
            return int(fields[4]) or None
    return None
