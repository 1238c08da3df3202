"""The lock of a build, ``pi-build.lock``: its form, and how one differs from another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from .errors import BuildError


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class LockedPlugin(_Part):
    """A plugin: who offers it, and the ``module:attribute`` it is."""

    name: str
    distribution: str
    target: str


class LockedDistribution(_Part):
    """A distribution that offers plugins of the build, or the framework.

    :param editable: its modules are not in the site directory.
    :param files: the SHA-256 of each file of it, by path.
    """

    version: str
    editable: bool = False
    files: dict[str, str]


class Lock(_Part):
    """What a build is made of, exactly.

    :param plugins: in call order.
    :param distributions: by name, those whose files count.
    :param requirements: versions of everything they need, by name of distribution.
    :param hooks: for each hook that is implemented, the plugins in call order, wrappers first.
    :param names: for each kind of contribution, which plugin has a name.
    """

    version: Literal[1] = 1
    plugins: list[LockedPlugin]
    distributions: dict[str, LockedDistribution]
    requirements: dict[str, str]
    hooks: dict[str, list[str]]
    names: dict[str, dict[str, str]]

    def text(self) -> str:
        """Return the file's text, in an order that does not depend on the machine."""
        return json.dumps(self.model_dump(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    def distribution_of(self, plugin: str) -> str | None:
        """Return who offers a plugin."""
        return next((found.distribution for found in self.plugins if found.name == plugin), None)


def read_lock(path: Path) -> Lock | None:
    """Read a lock; ``None`` when there is none.

    :raises BuildError: it is none.
    """
    try:
        return Lock.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BuildError(f"{path}: {error.strerror or error}") from error
    except (ValueError, ValidationError) as error:
        why = f"{error.errors()[0]['loc']}: {error.errors()[0]['msg']}" if isinstance(error, ValidationError) else error
        raise BuildError(f"{path} is no lock of a build: {why}. Write it anew with: pi build lock") from None


def plugin_differences(locked: Lock, now: Lock) -> Iterator[str]:
    """Name what differs in which plugins there are, in their order, and in what they are."""
    before, after = {part.name: part for part in locked.plugins}, {part.name: part for part in now.plugins}
    for name in before:
        if name not in after:
            yield f"plugin '{name}' is in the lock, but not in the build file"
    for name in after:
        if name not in before:
            yield f"plugin '{name}' ({after[name].distribution}) is in the build file, but not in the lock"
    order, locked_order = [name for name in after if name in before], [name for name in before if name in after]
    if order != locked_order:
        yield f"the call order is {', '.join(order)}; in the lock it is {', '.join(locked_order)}"
    for name in order:
        for field in ("distribution", "target"):
            was, found = getattr(before[name], field), getattr(after[name], field)
            if was != found:
                yield f"plugin '{name}': {field} {was} in the lock, {found} now"


def code_differences(locked: Lock, now: Lock) -> Iterator[str]:
    """Name what differs in versions and files."""
    for name, distribution in locked.distributions.items():
        if name in now.distributions:
            yield from _distribution_differences(name, distribution, now.distributions[name])
    for name, version in locked.requirements.items():
        found = now.requirements.get(name, version)
        if found != version:
            yield f"{name}: version {version} in the lock, {found} is installed"


def _distribution_differences(name: str, locked: LockedDistribution, now: LockedDistribution) -> Iterator[str]:
    if locked.version != now.version:
        yield f"{name}: version {locked.version} in the lock, {now.version} is installed"
        return
    if locked.editable != now.editable:
        how = "from its source folder" if now.editable else "from a wheel"
        yield f"{name} {now.version}: is installed {how} now, which it was not when it was locked"
    for path in sorted(locked.files.keys() | now.files.keys()):
        was, found = locked.files.get(path), now.files.get(path)
        if was != found:
            what = "is gone" if found is None else "is new" if was is None else "has changed"
            yield f"{name} {now.version}: file {path} {what}"


def loaded_differences(locked: Lock, now: Lock) -> Iterator[str]:
    """Name what differs in the order of hooks and the owners of names, which takes the imported plugins to see."""
    for hook in _keys(locked.hooks, now.hooks):
        was, found = locked.hooks.get(hook, []), now.hooks.get(hook, [])
        if was != found:
            yield f"hook {hook}: {_names(found)}; in the lock {_names(was)}"
    for kind in _keys(locked.names, now.names):
        was_named, named = locked.names.get(kind, {}), now.names.get(kind, {})
        for name in _keys(was_named, named):
            before, after = was_named.get(name), named.get(name)
            if before != after:
                yield f"{kind} '{name}': of {_owner(after)}; in the lock of {_owner(before)}"


def _keys(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    return [*first, *(key for key in second if key not in first)]


def _names(plugins: list[str]) -> str:
    return ", ".join(plugins) or "nobody"


def _owner(plugin: str | None) -> str:
    return "nobody" if plugin is None else f"plugin '{plugin}'"
