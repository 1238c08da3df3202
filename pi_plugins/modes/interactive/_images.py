"""Images that are named in a prompt."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .._input import read_file

if TYPE_CHECKING:
    from pi_core import ImageContent

_NAMED: Final = re.compile(r"(?:^|(?<=\s))@(\"[^\"\n]+\"|\S+)")
_SUFFIXES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")


def named_images(text: str, cwd: Path) -> list[ImageContent]:
    """Return the images that a prompt names as ``@file``; other files are for the model to read.

    :raises ConfigError: one cannot be read, or is none.
    """
    found: dict[Path, ImageContent] = {}
    for match in _NAMED.finditer(text):
        path = cwd / Path(match[1].strip('"')).expanduser()
        if path.suffix.lower() in _SUFFIXES and path.is_file() and path not in found:
            _, image = read_file(path)
            if image is not None:
                found[path] = image
    return list(found.values())
