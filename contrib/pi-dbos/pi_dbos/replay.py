"""What may be done with a tool call whose outcome was lost with its process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias
from uuid import uuid4

from pi_core import Tool

Replay: TypeAlias = Literal["safe", "keyed", "never"]
"""``safe``: make the call again. ``keyed``: again, with the same idempotency key. ``never``: report it as unknown."""

KINDS: Final = ("safe", "keyed", "never")

_CHECKS: Final = {
    "bash": "Look at what the command would have changed",
    "edit": "Read the file and see whether the replacement is there",
    "write": "Read the file and compare it with what you meant to write",
}
_key: ContextVar[str | None] = ContextVar("pi_dbos_idempotency_key", default=None)


def replay_of(tool: Tool, rules: Mapping[str, Replay]) -> Replay:
    """Return what may be done with a lost call of a tool.

    :param rules: by tool name or pattern; an exact name comes first, then the first pattern that matches. Without one
        the tool's own ``replay`` counts, and a tool that says nothing is never called again.
    """
    if tool.name in rules:
        return rules[tool.name]
    for pattern, kind in rules.items():
        if fnmatchcase(tool.name, pattern):
            return kind
    own = tool.replay
    return own if own in KINDS else "never"


def idempotency_key() -> str:
    """Return the key of the tool call that is running: the same one each time the call is made again.

    It holds the id of the run and the id of the call. Outside of a durable run no call is ever made again, and the key
    is a new one.
    """
    return _key.get() or uuid4().hex


@contextmanager
def with_key(key: str) -> Iterator[None]:
    """Make a key the one of the call that is running."""
    token = _key.set(key)
    try:
        yield
    finally:
        _key.reset(token)


def unknown_text(tool: str) -> str:
    """What the model is told about a call whose outcome is unknown."""
    check = _CHECKS.get(tool, "Look at what the call would have changed")
    return (
        f'The outcome of this call of "{tool}" is unknown: the process that executed it died before the result was '
        "kept, so it may have had its whole effect, a part of it, or none. It was not executed again. "
        f"{check} before you decide whether to repeat it."
    )
