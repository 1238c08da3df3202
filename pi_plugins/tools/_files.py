"""Opening files that cannot hang, and replacing them in one step."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from io import FileIO

from ._errors import ToolError
from ._threads import Stop

_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)
# A directory that takes no new file, or a file that is a mount point, can still be written in place.
_IN_PLACE = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV})


def require_regular(found: os.stat_result, path: str) -> None:
    """Refuse what is no regular file.

    :raises IsADirectoryError: for a directory.
    :raises ToolError: for a device, pipe or socket.
    """
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    for matches, kind in _KINDS:
        if matches(found.st_mode):
            raise ToolError(f"'{path}' is {kind}, not a regular file; use bash for it")


def open_regular(path: str) -> FileIO:
    """Open a regular file for reading; never waits for a writer, as opening a pipe would.

    :raises ToolError: it is a device, pipe or socket.
    :raises OSError: it is a directory, or cannot be opened.
    """
    require_regular(os.stat(path), path)
    file = open(path, "rb", buffering=0, opener=_open_without_waiting)  # noqa: SIM115 - the caller closes it
    try:
        require_regular(os.fstat(file.fileno()), path)
    except BaseException:
        file.close()
        raise
    return file


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def replace_file(path: str, data: bytes, stop: Stop, *, expected: os.stat_result | None = None) -> None:
    """Give a file new content in one step: a reader sees the old or the new content, never a part.

    Symbolic links stay and their target is replaced; mode, owner and extended attributes are kept. Missing
    directories are made. Where the directory allows no new file, or the file has further names (hard links), it is
    written in place and put back if that fails.

    :param expected: what the file was like when its content was read; it must still be so.
    :raises ToolError: it is a device, pipe or socket, it changed meanwhile, or the work was stopped before.
    :raises OSError: it is a directory, or the system refuses.
    """
    target = os.path.realpath(path)
    try:
        old: os.stat_result | None = os.stat(target)
    except FileNotFoundError:
        old = None
        os.makedirs(os.path.dirname(target), exist_ok=True)
    if old is not None:
        require_regular(old, path)
        if not os.access(target, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if old.st_nlink > 1:
            _write_in_place(target, data, path, stop, expected)
            return
    temporary = os.path.join(os.path.dirname(target), f".pi-{os.urandom(8).hex()}.tmp")
    try:
        try:
            _write_new(temporary, data, target, old)
            _require_unchanged(target, path, expected)
            stop.check()
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        if old is None or error.errno not in _IN_PLACE:
            raise
        _write_in_place(target, data, path, stop, expected)


def _write_new(temporary: str, data: bytes, target: str, old: os.stat_result | None) -> None:
    mode = 0o666 if old is None else 0o600
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with open(descriptor, "wb", buffering=0) as file:
        _write_all(file, data)
        if old is not None:
            _keep_metadata(descriptor, target, old)
        os.fsync(descriptor)


def _keep_metadata(descriptor: int, target: str, old: os.stat_result) -> None:
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # not every file system has extended attributes
            for name in os.listxattr(target):
                with contextlib.suppress(OSError):
                    os.setxattr(descriptor, name, os.getxattr(target, name))


def _require_unchanged(target: str, path: str, expected: os.stat_result | None) -> None:
    if expected is None:
        return
    now = os.stat(target)
    if (now.st_ino, now.st_size, now.st_mtime_ns) != (expected.st_ino, expected.st_size, expected.st_mtime_ns):
        raise ToolError(f"'{path}' was changed by something else during the edit; read it again and repeat the edit")


def _write_all(file: FileIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _write_in_place(target: str, data: bytes, path: str, stop: Stop, expected: os.stat_result | None) -> None:
    _require_unchanged(target, path, expected)
    stop.check()
    with open(target, "r+b", buffering=0) as file:
        old = file.readall()
        try:
            _overwrite(file, data)
        except OSError:
            _overwrite(file, old)
            raise


def _overwrite(file: FileIO, data: bytes) -> None:
    file.seek(0)
    _write_all(file, data)
    file.truncate(len(data))
    os.fsync(file.fileno())
