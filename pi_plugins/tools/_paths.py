"""From what a model calls a path to a path, and back to text."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator

from ._errors import ToolError

_NARROW_SPACE = "\u202f"


def resolve(path: str, cwd: str) -> str:
    """Return the absolute path a model means; a leading ``@`` is dropped unless something of that name is there.

    :raises ToolError: no file can have that name.
    """
    if "\0" in path:
        raise ToolError(f"path {path!r} contains a NUL character; give a path without it")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise ToolError(f"path {path!r} contains characters that no file name can have") from None
    if path.startswith("@") and not os.path.lexists(os.path.join(cwd, path.split("/", 1)[0])):
        path = path[1:]
    return os.path.normpath(os.path.join(cwd, os.path.expanduser(path)))


def resolve_existing(path: str, cwd: str) -> str:
    """Return the absolute path a model means, in the spelling the file system has it if that is another one.

    macOS writes file names that models type differently: decomposed letters, a curly apostrophe, a narrow space
    before AM and PM.

    :raises ToolError: no file can have that name.
    """
    absolute = resolve(path, cwd)
    if os.path.lexists(absolute):
        return absolute
    return next((variant for variant in _variants(absolute) if os.path.lexists(variant)), absolute)


def _variants(path: str) -> Iterator[str]:
    spaced = re.sub(r" (?=[AP]M\b)", _NARROW_SPACE, path, flags=re.IGNORECASE)
    decomposed = unicodedata.normalize("NFD", path)
    yield spaced
    yield decomposed
    yield unicodedata.normalize("NFC", path)
    yield path.replace("'", "\u2019")
    yield decomposed.replace("'", "\u2019")


def shown(name: str) -> str:
    """Return a file name as text: one line, and without the stand-ins for bytes that are no UTF-8."""
    if not name.isprintable():
        name = name.replace("\n", "\\n").replace("\r", "\\r")
        name = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return name
