"""Ids of sessions: UUIDs of version 7, which sort by the time they were made."""

from __future__ import annotations

import re
import secrets
import time
import uuid
from typing import Final

from pi_core import ConfigError

_LEGAL: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)


def uuid7() -> str:
    """Return a UUID of version 7 (RFC 9562): 48 bits of milliseconds, then random bits."""
    number = time.time_ns() // 1_000_000 << 80 | secrets.randbits(80)
    number = number & ~(0xF << 76) | 7 << 76
    number = number & ~(0x3 << 62) | 2 << 62
    return str(uuid.UUID(int=number))


def checked_id(text: str) -> str:
    """Return an id for a session that can be part of a file name.

    :raises ConfigError: it cannot.
    """
    if not _LEGAL.fullmatch(text) or len(text) > 128:
        raise ConfigError(
            f"{text[:200]!r} cannot be the id of a session: it needs letters and digits of ASCII, with . _ - between"
        )
    return text
