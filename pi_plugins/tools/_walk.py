"""Walks a tree in a fixed order and leaves out what ``.gitignore`` files say, in a git repository or not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from ._ignore import Rules, ignored, rules_above, rules_of
from ._threads import Stop


@dataclass(slots=True)
class Found:
    """Something in the tree.

    :param path: relative to the root, ``/`` between its parts.
    :param is_file: whether it is a regular file; a symbolic link is neither file nor directory.
    """

    path: str
    name: str
    is_directory: bool
    is_file: bool


@dataclass(slots=True)
class Walk:
    """What is below a directory, sorted by name within each directory; ``.git`` and what is ignored are left out.

    :param root: an absolute path of a directory.
    :param ceiling: how far up ``.gitignore`` files count outside of a git repository.
    :param unreadable: how many directories could not be read.
    """

    root: str
    ceiling: str
    stop: Stop
    unreadable: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[Found]:
        pending = [self._enter("", rules_above(self.root, self.ceiling))]
        while pending:
            step = next(pending[-1], None)
            if step is None:
                pending.pop()
                continue
            found, rules = step
            yield found
            if found.is_directory:
                pending.append(self._enter(found.path + "/", rules))

    def _enter(self, path: str, rules: tuple[Rules, ...]) -> Iterator[tuple[Found, tuple[Rules, ...]]]:
        self.stop.check()
        directory = os.path.join(self.root, path)
        try:
            with os.scandir(directory) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError:
            self.unreadable += 1
            return
        names = {entry.name for entry in entries}
        if ".git" in names:
            rules = rules_of(directory, skip=len(path), is_repository=True)
        elif ".gitignore" in names:
            rules = (*rules, *rules_of(directory, skip=len(path)))
        for entry in entries:
            if entry.name == ".git":
                continue
            try:
                is_directory = entry.is_dir(follow_symlinks=False)
                is_file = entry.is_file(follow_symlinks=False)
            except OSError:
                self.unreadable += 1
                continue
            mark = "/" if is_directory else ""
            relative = path + entry.name
            if rules and ignored(rules, relative + mark, entry.name + mark):
                continue
            yield Found(relative, entry.name, is_directory, is_file), rules
