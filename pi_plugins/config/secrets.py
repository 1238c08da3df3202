"""What of a value must not be shown: by the name it has, and by how it looks."""

from __future__ import annotations

import re
from typing import Any, Final

MASK: Final = "***"
"""What stands where a secret would."""

# Patterns are compiled when they are first used: most runs do not.
_NAME: Final = r"(?i)(authorization|api[-_]?key|secret|password|passwd|cookie|credential|token$)"
_TEXT: Final = r"(?i)\b(bearer\s+|sk-|ghp_|xox[bp]-|AIza)[A-Za-z0-9._\-]{8,}"
_USER: Final = r"(?<=://)[^/@\s]+@"
_QUERY: Final = r"(?i)([?&][\w.-]*(?:key|token|secret|password|signature)=)[^&#\s\"']+"


def is_secret_name(name: str) -> bool:
    """Whether what has this name is a secret, as ``apiKey`` and ``Authorization`` are."""
    return re.search(_NAME, name) is not None


def without_secrets(text: str) -> str:
    """Return a text without what looks like a key, and without the user and the keys of an address."""
    return re.sub(_QUERY, rf"\1{MASK}", re.sub(_USER, f"{MASK}@", re.sub(_TEXT, MASK, text)))


def masked(value: Any, name: str = "") -> Any:
    """Return a JSON value without secrets.

    :param name: the name that the value has.
    """
    if value is not None and not isinstance(value, dict | bool) and is_secret_name(name):
        return MASK
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, dict):
        return {key: masked(item, key) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item) for item in value]
    return value


__all__ = ["MASK", "is_secret_name", "masked", "without_secrets"]
