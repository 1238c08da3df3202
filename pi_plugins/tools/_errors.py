"""What the model is told when a tool cannot do what it was asked to."""

from __future__ import annotations

import errno
import os

from pi_core import PiError

from ._content import to_text

ABORTED = "Operation aborted"

_WORDS = {errno.EISDIR: "illegal operation on a directory"}


class ToolError(PiError):
    """A tool failed; the text is written for the model and becomes the error result."""

    def __init__(self, text: str) -> None:
        super().__init__(to_text(text))  # it may name a path that is no UTF-8


def error_code(error: OSError) -> str:
    """Return the symbolic name of a system error, such as ``ENOENT``."""
    return errno.errorcode.get(error.errno or 0, type(error).__name__)


def system_error(error: OSError, operation: str, path: str) -> ToolError:
    """Return the error to raise for a failed system call.

    :param operation: what was being done to the path, such as ``open``.
    """
    words = _WORDS.get(error.errno or 0) or (os.strerror(error.errno).lower() if error.errno else str(error))
    return ToolError(f"{error_code(error)}: {words}, {operation} '{path}'")
