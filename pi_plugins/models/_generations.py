"""Sets of the catalog that replace each other: a reader finds the old one or the new one whole, at any moment.

Each set is a folder that never changes once it has its name. The file ``current`` holds the name of the one to read,
and is replaced in one step. The set before it stays until the next one, for readers that have begun.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from ._catalog_set import CatalogError, CatalogSet

CURRENT: Final = "current"
SETS: Final = "sets"
_STAGING: Final = ".staging-"
_POINTER: Final = ".current-"
_NAME: Final = re.compile(r"(\d{6,})-[0-9a-f]{8}")

Step: TypeAlias = Callable[[str], object]


def current_set(folder: Path) -> Path | None:
    """Return the folder of the set to read; ``None`` when there is none.

    :param folder: the folder of all sets.
    :raises CatalogError: what names it is damaged.
    """
    name = _current_name(folder)
    return None if name is None else folder / SETS / name


def publish(folder: Path, write: Callable[[Path], None], step: Step) -> Path:
    """Write a set and make it the current one, or change nothing. To be called under a lock.

    :param folder: the folder of all sets.
    :param write: writes the set into the folder it is given.
    :param step: told of each step that is done.
    :raises CatalogError: the set that was written cannot be used.
    """
    before = _readable_name(folder)
    token = secrets.token_hex(4)
    staging = folder / f"{_STAGING}{token}"
    try:
        write(staging)
        _check(staging)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    step("checked before")
    sets = folder / SETS
    sets.mkdir(exist_ok=True)
    name = f"{_number(before) + 1:06d}-{token}"
    staging.rename(sets / name)
    _sync(sets)
    step("named")
    _point(folder, name)
    step("current")
    try:
        _check(sets / name)
    except BaseException:
        _point(folder, before)
        shutil.rmtree(sets / name, ignore_errors=True)
        raise
    step("checked after")
    _remove(sets, {name, before})
    step("removed")
    return sets / name


def clean(folder: Path) -> None:
    """Remove what an interrupted change left behind. To be called under a lock.

    The set before the current one may have readers, and stays.

    :param folder: the folder of all sets.
    """
    for path in folder.iterdir():
        if path.name.startswith(_STAGING):
            shutil.rmtree(path)
        elif path.name.startswith(_POINTER):
            path.unlink()
    current = _readable_name(folder)
    sets = folder / SETS
    if sets.is_dir():
        older = [name for name in os.listdir(sets) if _number(name) < _number(current)]
        _remove(sets, {current, *sorted(older)[-1:]})


def _readable_name(folder: Path) -> str | None:
    try:
        return _current_name(folder)
    except CatalogError:
        return None


def _current_name(folder: Path) -> str | None:
    path = folder / CURRENT
    try:
        name = path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        name = ""
    if not _NAME.fullmatch(name):
        raise CatalogError(f"{path}: damaged: it does not name a set")
    return name


def _number(name: str | None) -> int:
    found = None if name is None else _NAME.fullmatch(name)
    return int(found[1]) if found else 0


def _check(folder: Path) -> None:
    faults = CatalogSet(folder).faults()
    if faults:
        raise CatalogError(f"The new catalog is not used: {faults[0]} ({len(faults)} faults)")


def _point(folder: Path, name: str | None) -> None:
    if name is None:
        (folder / CURRENT).unlink()
        return
    pointer = folder / f"{_POINTER}{secrets.token_hex(4)}"
    with pointer.open("x", encoding="utf-8") as file:
        file.write(f"{name}\n")
        file.flush()
        os.fsync(file.fileno())
    pointer.replace(folder / CURRENT)
    _sync(folder)


def _sync(folder: Path) -> None:
    """Make a new name in a folder durable; where folders cannot be opened, the system does it in its own time."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _remove(sets: Path, kept: set[str | None]) -> None:
    for name in os.listdir(sets):
        if name not in kept:
            # Renamed first: a reader must not find a set with files missing.
            doomed = sets.parent / f"{_STAGING}{name}"
            (sets / name).rename(doomed)
            shutil.rmtree(doomed)
