"""What the arrays ``skills`` and ``prompts`` of the settings say: further files, and which of those found are used."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from pi_plugins.config.paths import expand

from ._places import Place


class Filters:
    """The entries of one array.

    ``path`` adds a file or folder, or all that it matches when it has ``*``, ``?`` or ``[``. ``!pattern`` leaves out
    what matches it, ``+path`` brings one of these back, and ``-path`` leaves out one in any case. Patterns and paths
    are compared with a resource's name, its file and its folder, the latter two absolute or relative to a base.

    :param entries: the array.
    :param bases: the folders that relative paths start from, with the word for whose it is, the user's last; the first
        of them under which something is there counts.
    :param key: the name of the array, for warnings.
    """

    def __init__(self, entries: Iterable[str], bases: Sequence[tuple[Path, str]], key: str) -> None:
        self._bases = bases
        self._key = key
        self._paths: list[str] = []
        self._rules: dict[str, list[str]] = {"!": [], "+": [], "-": []}
        for entry in entries:
            if entry[:1] in self._rules:
                self._rules[entry[0]].append(os.path.expanduser(entry[1:].removeprefix("./").rstrip("/")))
            elif entry:
                self._paths.append(entry)

    def places(self, warnings: list[str]) -> list[Place]:
        """Return what the entries add; one that names nothing is added to the warnings."""
        found = []
        for entry in self._paths:
            added = self._added(entry)
            if not added:
                searched = " and ".join(str(base) for base, _ in self._bases)
                warnings.append(f"settings, {self._key}: there is no '{entry}' (relative to {searched})")
            found += added
        return found

    def _added(self, entry: str) -> list[Place]:
        # Only a relative path tells whose it is; a project can hardly know another.
        bases = self._bases[-1:] if os.path.isabs(os.path.expanduser(entry)) else self._bases
        for base, origin in bases:
            path = str(expand(entry, base))
            matches = sorted(glob.glob(path)) if glob.has_magic(entry) and not os.path.lexists(path) else [path]
            there = [Path(match) for match in matches if os.path.lexists(match)]
            if there:
                return [Place(match, f"{origin} settings", named=True) for match in there]
        return []

    def allows(self, path: Path) -> bool:
        """Whether the entries leave a file in."""
        names = self._names(path)
        if names.intersection(self._rules["-"]):
            return False
        excluded = any(fnmatchcase(name, pattern) for pattern in self._rules["!"] for name in names)
        return not excluded or bool(names.intersection(self._rules["+"]))

    def _names(self, path: Path) -> set[str]:
        places = [path, path.parent] if path.name == "SKILL.md" else [path]
        names = {place.stem if place.suffix == ".md" else place.name for place in places} - {"SKILL"}
        for place in places:
            names.add(str(place))
            names |= {str(place.relative_to(base)) for base, _ in self._bases if place.is_relative_to(base)}
        return names
