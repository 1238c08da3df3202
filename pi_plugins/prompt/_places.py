"""Where resources are looked for, and which files are found there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MAX_DEPTH: Final = 8
_SKILL_FILE: Final = "SKILL.md"


@dataclass(frozen=True, slots=True)
class Place:
    """A file, or a folder in which files are looked for.

    :param origin: who names it, for people: ``user``, ``project``, an option, a plugin.
    :param named: whether it was named one by one, so that its absence is worth a warning.
    :param filtered: whether the filters of the settings hold for it.
    :param loose: whether a Markdown file that lies directly in it is a skill.
    """

    path: Path
    origin: str
    named: bool = False
    filtered: bool = True
    loose: bool = True


def skill_files(place: Place, warnings: list[str]) -> Iterator[Path]:
    """Find skills: the file itself, each folder with a ``SKILL.md`` at any depth, loose files."""
    if os.path.isfile(place.path):
        yield place.path
    else:
        yield from _skills_in(place.path, place, warnings, set(), 0)


def _skills_in(folder: Path, place: Place, warnings: list[str], seen: set[str], depth: int) -> Iterator[Path]:
    real = os.path.realpath(folder)
    if real in seen or depth > _MAX_DEPTH:
        return
    seen.add(real)
    names = _names(folder, place, warnings)
    if _SKILL_FILE in names and os.path.isfile(folder / _SKILL_FILE):
        yield folder / _SKILL_FILE
        return
    for name in names:
        path = folder / name
        if os.path.isdir(path):
            if name != "node_modules":
                yield from _skills_in(path, place, warnings, seen, depth + 1)
        elif depth == 0 and place.loose and name.endswith(".md"):
            yield path


def template_files(place: Place, warnings: list[str]) -> Iterator[Path]:
    """Find prompt templates: the file itself, or each Markdown file directly in the folder."""
    if os.path.isfile(place.path):
        yield place.path
        return
    for name in _names(place.path, place, warnings):
        if name.endswith(".md") and not os.path.isdir(place.path / name):
            yield place.path / name


def _names(folder: Path, place: Place, warnings: list[str]) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except (FileNotFoundError, NotADirectoryError) as error:
        if place.named:
            warnings.append(f"{place.origin}: {folder} cannot be read: {error.strerror}")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        warnings.append(f"{place.origin}: {folder} cannot be read: {reason}")
    return []
