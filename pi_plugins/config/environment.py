"""Settings in environment variables: ``PI_`` and the path of the key, so ``PI_COMPACTION_RESERVE_TOKENS``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from .checking import Fault
from .keys import Path, all_keys
from .typing_in import typed_value

SPECIAL: Final = {
    "PI_CODING_AGENT_SESSION_DIR": ("sessionDir",),
    "PI_CLEAR_ON_SHRINK": ("terminal", "clearOnShrink"),
    "PI_HARDWARE_CURSOR": ("showHardwareCursor",),
    "PI_HYPERLINKS": ("terminal", "hyperlinks"),
    "PI_IMAGE_PROTOCOL": ("terminal", "images"),
    "PI_TRUE_COLOR": ("terminal", "trueColor"),
}
"""Variables with names of their own; the usual name of the same key wins over them."""

_EDITORS: Final = ("VISUAL", "EDITOR")


def variable(path: Path) -> str:
    """Return the name of the variable that sets a key."""
    return "_".join(["PI", *(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", part).upper() for part in path)])


def variables(environ: Mapping[str, str]) -> Iterator[tuple[str, Path, Any, Fault | None]]:
    """Yield the variables that set a key: name, path, value, and what is wrong with it. Those that are empty do not."""
    for name, path in {**SPECIAL, **_names()}.items():
        text = environ.get(name, "")
        if text:
            yield (name, path, *typed_value(path, text))


def editor(environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the variable that names the user's editor, and what it says."""
    return next(((name, environ[name]) for name in _EDITORS if environ.get(name)), None)


def misspelt(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each variable that is named as if it were of a group of settings, but is no key of it."""
    known = _names()
    groups = tuple(sorted({f"{variable(path[:1])}_" for path in known.values() if len(path) > 1}))
    for name in sorted(environ):
        if name.startswith(groups) and name not in known and name not in SPECIAL:
            import difflib

            near = difflib.get_close_matches(name, known, 1, 0.75)
            hint = f", did you mean {near[0]}?" if near else "; it has no effect"
            yield f"environment: no setting is set by {name}{hint}"


@cache
def _names() -> dict[str, Path]:
    return {variable(path): path for path in all_keys()}


__all__ = ["SPECIAL", "editor", "misspelt", "variable", "variables"]
