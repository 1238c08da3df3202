"""Standard output as a wire: only records get there, and what else is printed goes to standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pi_core import ConfigError

from ._deep_json import deep_json


def json_line(data: Mapping[str, Any]) -> bytes:
    """Return one line of JSON, ended by LF; half a surrogate pair becomes its escape, since it has no UTF-8."""
    try:
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        text = deep_json(data)
    return f"{text}\n".encode("utf-8", "backslashreplace")


@contextmanager
def records_only() -> Iterator[int]:
    """Keep standard output for records; what others print meanwhile, by whatever way, goes to standard error.

    Yields the file descriptor of the real one.

    :raises ConfigError: there is no standard output.
    """
    if sys.stdout is None:
        raise ConfigError("There is no standard output to write to")
    sys.stdout.flush()
    number = sys.stdout.fileno()
    kept = os.dup(number)
    os.dup2(2, number)
    try:
        yield kept
    finally:
        sys.stdout.flush()
        os.dup2(kept, number)
        os.close(kept)


def write_all(descriptor: int, data: bytes) -> bool:
    """Write bytes; ``False`` when the reader has gone away.

    :raises ConfigError: the output takes nothing, as when a disk is full.
    """
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except BrokenPipeError:
        return False
    except OSError as error:
        raise ConfigError(f"The standard output cannot be written: {error.strerror}") from error
    return True
