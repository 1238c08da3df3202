"""Runs a declared command without making a build: nothing is imported but the command."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from ._declared import declared, origin
from .commands import CORE_COMMANDS

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")
_NEED_A_BUILD: Final = frozenset({"--no-plugins", "--verbose"})


def run_declared(arguments: list[str]) -> int | None:
    """Run the declared command that some arguments name, and return its exit code.

    :returns: ``None`` when there is none, or when it takes a build to say what the arguments mean: plugins are
        blocked, an option of ``pi`` itself is given, or two distributions declare the name.
    """
    name = arguments[0] if arguments else ""
    if not _NAME.fullmatch(name) or name in CORE_COMMANDS or os.environ.get("PI_BLOCK", "").strip():
        return None
    end = arguments.index("--") if "--" in arguments else len(arguments)
    if not _NEED_A_BUILD.isdisjoint(arguments[:end]):
        return None
    found = declared(name)
    return _run(found[0], arguments) if len(found) == 1 else None


def _run(entry: EntryPoint, arguments: list[str]) -> int:
    from ._click import failure_of, invoke, reported
    from .errors import PiError, PluginError

    def run() -> int:
        try:
            return invoke(entry.load(), arguments[1:], None, f"pi {entry.name}")
        except PiError:
            raise
        except Exception as error:
            who = origin(entry)
            raise PluginError(failure_of(who, entry.name, error), plugin=entry.name, distribution=who) from error

    return reported(run)
