"""What a build is made of right now: versions, hashes of files, hook order; written as a lock, or compared with one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ._build_file import BuildFile, read_build_file
from ._loader import BUILT_IN, Loaded, installed, normalized
from ._lock import (
    Lock,
    LockedDistribution,
    LockedPlugin,
    code_differences,
    loaded_differences,
    plugin_differences,
    read_lock,
)
from ._pinned import Pinned, find_plugins, load_found
from .errors import BuildError, PiError

if TYPE_CHECKING:
    from importlib.metadata import Distribution, PackagePath


@dataclass(slots=True)
class Comparison:
    """What a check found.

    :param differences: between the lock and what is there.
    :param notes: what is worth knowing and no difference.
    """

    differences: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def write_lock(path: Path) -> tuple[Path, list[str]]:
    """Write the lock of a build file and return where it is, with a line for each file altered since it was installed.

    :raises BuildError: the file is wrong, or a plugin is missing.
    :raises PluginError: a plugin fails, or two own a name.
    """
    file = read_build_file(path)
    found = find_plugins(file)
    if faults := [pinned.fault for pinned in found if pinned.fault]:
        raise BuildError("\n".join(f"{file.path}: {fault}" for fault in faults))
    lock = _with_hooks(_snapshot(found), load_found(file, found))
    file.lock_path.write_text(lock.text(), encoding="utf-8")
    return file.lock_path, list(_altered(lock))


def compare(path: Path) -> Comparison:
    """Compare a build file and what is installed with the lock.

    Plugins are imported, to see the order of their hooks, only if all of their code is what was locked.

    :raises BuildError: the file is wrong, or there is no lock.
    """
    file = read_build_file(path)
    lock = read_lock(file.lock_path)
    if lock is None:
        raise BuildError(f"There is no lock {file.lock_path}. Write it with: pi build lock {file.path}")
    found = find_plugins(file, lock)
    faulty = {pinned.entry.name: pinned.fault for pinned in found if pinned.fault}
    now = _snapshot(found)
    known = lock.model_copy(update={"plugins": [plugin for plugin in lock.plugins if plugin.name not in faulty]})
    result = Comparison(list(faulty.values()), list(_not_part(file, found)))
    result.differences += plugin_differences(known, now)
    code = list(code_differences(lock, now))
    result.differences += code
    if faulty or code or any(lock.distribution_of(name) is None for name in file.names):
        result.notes.append("hooks and names were not compared, since that imports code that is not the locked one")
    else:
        try:
            result.differences += loaded_differences(lock, _with_hooks(now, load_found(file, found)))
        except PiError as error:
            result.differences.append(str(error))
    return result


def _not_part(file: BuildFile, found: Sequence[Pinned]) -> Iterator[str]:
    used = {(pinned.offer.name, pinned.offer.distribution) for pinned in found if pinned.offer is not None}
    for offer in installed():
        if not offer.built_in and (offer.name, offer.distribution) not in used:
            yield f"plugin '{offer.name}' ({offer.origin}) is installed, but not part of the build, and not imported"


def _snapshot(found: Sequence[Pinned]) -> Lock:
    """Describe plugins that need not be imported for it."""
    from importlib import metadata

    plugins, modules = [], {BUILT_IN: {"pi_core"}}
    for pinned in found:
        if (offer := pinned.offer) is not None:
            modules.setdefault(offer.distribution, set()).add(offer.target.split(":")[0].split(".")[0])
            if not pinned.fault:
                plugins.append(LockedPlugin(name=offer.name, distribution=offer.distribution, target=offer.target))
    distributions = {name: _locked(metadata.distribution(name), tops) for name, tops in modules.items()}
    return Lock(
        plugins=plugins,
        distributions=distributions,
        requirements=_requirements(distributions),
        hooks={},
        names={},
    )


def _with_hooks(lock: Lock, loaded: Loaded) -> Lock:
    return lock.model_copy(update={"hooks": _hook_order(loaded), "names": _owners(loaded)})


def _hook_order(loaded: Loaded) -> dict[str, list[str]]:
    orders = {}
    for hook, _, _ in loaded.hooks.specifications():
        found = loaded.hooks.implementations(hook)
        if found:
            orders[hook] = [f"{owner.plugin} (wrapper)" if wrapper else owner.plugin for owner, _, wrapper in found]
    return orders


def _owners(loaded: Loaded) -> dict[str, dict[str, str]]:
    owners: dict[str, dict[str, str]] = {}
    for kind in loaded.registry.kinds():
        for name in kind.names():
            owner = kind.owner(name)
            if owner is not None:
                owners.setdefault(kind.kind, {})[name] = owner.plugin
    return owners


def _locked(distribution: Distribution, modules: Iterable[str]) -> LockedDistribution:
    editable = is_editable(distribution)
    if editable or distribution.files is None:
        paths = dict(_module_files({*modules, *(distribution.read_text("top_level.txt") or "").split()}))
    else:
        paths = {found.as_posix(): _place(found) for found in _recorded_files(distribution)}
    files = {name: hash_file(path) for name, path in paths.items() if path.is_file()}
    return LockedDistribution(version=distribution.version, editable=editable, files=files)


def is_editable(distribution: Distribution) -> bool:
    """Whether a distribution's modules are in its source folder."""
    text = distribution.read_text("direct_url.json")
    return text is not None and bool(json.loads(text).get("dir_info", {}).get("editable"))


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, as hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _record(distribution: Distribution) -> Iterator[PackagePath]:
    """What a distribution brought, be it there or not: from Python 3.12 on, ``files`` leaves out what is missing."""
    import csv
    from importlib.metadata import FileHash, PackagePath

    text = distribution.read_text("RECORD")
    if not text:
        yield from distribution.files or ()
        return
    for name, *rest in csv.reader(text.splitlines()):
        found = PackagePath(name)
        found.hash = FileHash(rest[0]) if rest and rest[0] else None
        found.dist = distribution
        yield found


def _recorded_files(distribution: Distribution) -> Iterator[PackagePath]:
    """The files a wheel brought: no compiled ones, no scripts, and of the metadata only the entry points."""
    for found in _record(distribution):
        metadata = found.parts[0].endswith(".dist-info")
        if found.parts[0] != ".." and found.suffix != ".pyc" and (not metadata or found.name == "entry_points.txt"):
            yield found


def _place(found: PackagePath) -> Path:
    return Path(str(found.locate()))


def _module_files(modules: Iterable[str]) -> Iterator[tuple[str, Path]]:
    from importlib.util import find_spec

    for module in sorted(modules):
        spec = find_spec(module)
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            base = Path(folder)
            for path in sorted(base.rglob("*")):
                if path.is_file() and path.suffix != ".pyc":
                    yield path.relative_to(base.parent).as_posix(), path
        if spec is not None and not spec.submodule_search_locations and spec.origin is not None:
            yield Path(spec.origin).name, Path(spec.origin)


def _requirements(roots: Iterable[str]) -> dict[str, str]:
    """Return the installed versions of everything some distributions need, without themselves."""
    from importlib import metadata

    from packaging.requirements import Requirement

    own = {normalized(root) for root in roots}
    pending = [(root, "") for root in own]
    seen: set[tuple[str, str]] = set()
    versions: dict[str, str] = {}
    while pending:
        name, extra = pending.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        versions[name] = distribution.version
        for text in distribution.requires or ():
            need = Requirement(text)
            if need.marker is None or need.marker.evaluate({"extra": extra}):
                pending += [(normalized(need.name), wanted) for wanted in ("", *need.extras)]
    return {name: version for name, version in sorted(versions.items()) if name not in own}


def _altered(lock: Lock) -> Iterator[str]:
    """Name the files of locked distributions that are not as their wheel brought them."""
    import base64
    from importlib import metadata

    for name, locked in lock.distributions.items():
        for found in () if locked.editable else _recorded_files(metadata.distribution(name)):
            hashed = locked.files.get(found.as_posix())
            if hashed is None:
                yield f"{name} {locked.version}: file {found} is missing; it is locked without"
            elif found.hash is not None and found.hash.mode == "sha256":
                digest = base64.urlsafe_b64decode(found.hash.value + "==")
                if digest.hex() != hashed:
                    yield f"{name} {locked.version}: file {found} was changed after it was installed; locked as it is"
