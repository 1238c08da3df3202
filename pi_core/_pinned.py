"""The plugins of a build file: found without a scan where their distribution is known, checked, loaded strictly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ._build_file import BuildFile, PluginEntry, read_build_file
from ._loader import BUILT_IN, GROUP, Loaded, Offer, installed, load_plugins, normalized
from ._lock import Lock, read_lock
from .errors import BuildError, ConfigError, PluginError, describe_owner

if TYPE_CHECKING:
    from importlib.metadata import Distribution


@dataclass(slots=True)
class Pinned:
    """A plugin of a build file and what is installed of it.

    :param fault: why it cannot be used, with what to do; empty when it can.
    """

    entry: PluginEntry
    offer: Offer | None = None
    fault: str = ""


def load_pinned(path: Path, environ: Mapping[str, str]) -> tuple[BuildFile, Loaded]:
    """Read a build file and load its plugins, and no others.

    :param environ: environment variables; those the build needs must be there.
    :raises BuildError: the file is wrong, a plugin or a name in the environment is missing, or a version differs.
    :raises PluginError: a plugin fails, or two own a name.
    """
    file = read_build_file(path)
    _check_environment(file, environ)
    lock = read_lock(file.lock_path)
    found = find_plugins(file, lock)
    faults = [pinned.fault for pinned in found if pinned.fault]
    faults += _blocked(environ, found)
    if lock is not None:
        faults += _not_as_locked(file, lock, found)
    if faults:
        raise BuildError("\n".join(f"{file.path}: {fault}" for fault in faults))
    return file, load_found(file, found)


def load_found(file: BuildFile, found: Sequence[Pinned]) -> Loaded:
    """Load plugins that were found without a fault.

    :raises BuildError: the file decides about a name that its plugin does not offer.
    :raises PluginError: a plugin fails, or two own a name.
    """
    try:
        return load_plugins(
            offers=[pinned.offer for pinned in found if pinned.offer is not None],
            order=file.names,
            options={entry.name: entry.options for entry in file.plugins if entry.options},
            decisions=file.conflicts,
            strict=True,
        )
    except ConfigError as error:
        raise BuildError(f"{file.path}: {error}") from error
    except PluginError as error:
        way_out = f"To run without it, take it out of {file.path}"
        error.args = (str(error).replace(f"To run without it: PI_BLOCK={error.plugin}", way_out),)
        raise


def find_plugins(file: BuildFile, lock: Lock | None = None) -> list[Pinned]:
    """Find the plugins of a build file, in call order. Nothing is imported.

    Only a plugin whose distribution neither the file nor the lock names, and which the framework does not offer, makes
    it look at everything that is installed.
    """
    search = _Search(file, lock)
    return [search.find(entry) for entry in file.plugins]


_Described: TypeAlias = tuple[str, str, list[Offer]]


class _Search:
    """Looks up distributions, each once."""

    def __init__(self, file: BuildFile, lock: Lock | None) -> None:
        self._lock = lock
        self._block = {normalized(name) for name in file.block}
        self._known: dict[str, _Described | None] = {}

    def find(self, entry: PluginEntry) -> Pinned:
        wanted = entry.distribution or (self._lock.distribution_of(entry.name) if self._lock is not None else None)
        if wanted is not None:
            return self._from(entry, wanted)
        if any(offer.name == entry.name for offer in self._offers(BUILT_IN)):
            return self._from(entry, BUILT_IN)
        offers = [offer for offer in installed() if offer.name == entry.name]
        names = sorted({offer.distribution for offer in offers if normalized(offer.distribution) not in self._block})
        if len(names) == 1:
            return self._from(entry, names[0])
        if names:
            why = f'is offered by {" and ".join(names)}: choose with distribution = "{names[0]}"'
        else:
            why = 'is not installed: install the distribution that offers it, and name it with distribution = "..."'
        return Pinned(entry, fault=f"{describe_owner(entry.name)} {why}")

    def _from(self, entry: PluginEntry, name: str) -> Pinned:
        owner = describe_owner(entry.name)
        version = entry.version or ""
        locked = self._lock.distributions.get(name) if self._lock is not None else None
        if locked is not None and entry.accepts(locked.version):
            version = f"=={locked.version}"
        install = f"Run: pip install '{name}{version}'"
        described = self._describe(name)
        if normalized(name) in self._block:
            return Pinned(entry, fault=f"{owner} comes from {name}, which is blocked")
        if described is None:
            wanted = f"{name} {entry.version or ''}".rstrip()
            return Pinned(entry, fault=f"{owner}: {wanted} is wanted, but it is not installed. {install}")
        name, version, offers = described
        offer = next((offer for offer in offers if offer.name == entry.name), None)
        if offer is None:
            others = ", ".join(sorted(offer.name for offer in offers)) or "no plugin"
            return Pinned(entry, fault=f"{owner}: {name} {version} does not offer it; it offers {others}")
        if not entry.accepts(version):
            why = f"{owner}: {name} {entry.version} is wanted, {version} is installed. {install}"
            return Pinned(entry, offer, why)
        return Pinned(entry, offer)

    def _offers(self, name: str) -> list[Offer]:
        described = self._describe(name)
        return [] if described is None else described[2]

    def _describe(self, name: str) -> _Described | None:
        key = normalized(name)
        if key not in self._known:
            self._known[key] = _described(name)
        return self._known[key]


def _described(name: str) -> _Described | None:
    from importlib import metadata

    try:
        distribution: Distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    told = distribution.metadata
    name, version = told["Name"], told["Version"]
    entries = [entry for entry in distribution.entry_points if entry.group == GROUP]
    return name, version, [Offer(entry.name, entry.value, name, version, entry.load) for entry in entries]


def _check_environment(file: BuildFile, environ: Mapping[str, str]) -> None:
    missing = [name for name in file.build.environment if not environ.get(name)]
    if missing:
        raise BuildError(
            f"{file.path}: build.environment: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set in "
            "the environment. Set what is missing and run again"
        )


def _blocked(environ: Mapping[str, str], found: Sequence[Pinned]) -> Iterator[str]:
    """A pinned build is never run in part, so that nobody leaves out a guard from outside."""
    blocked = [name.strip() for name in environ.get("PI_BLOCK", "").split(",")]
    distributions = {normalized(name) for name in blocked}
    for pinned in found:
        offer = pinned.offer
        if offer is not None and (offer.name in blocked or normalized(offer.distribution) in distributions):
            yield (
                f"{describe_owner(offer.name, offer.origin)} is blocked by PI_BLOCK, but this build needs it. Unset "
                "PI_BLOCK, or take the plugin out of [[plugins]]"
            )


def _not_as_locked(file: BuildFile, lock: Lock, found: Sequence[Pinned]) -> Iterator[str]:
    told: set[str] = set()
    for pinned in found:
        offer = pinned.offer
        locked = None if offer is None else lock.distributions.get(offer.distribution)
        if offer is None or locked is None or pinned.fault:
            continue
        if locked.version == offer.version or offer.distribution in told:
            continue
        told.add(offer.distribution)
        yield (
            f"{describe_owner(pinned.entry.name)}: {offer.distribution} {locked.version} is locked, {offer.version} is "
            f"installed. Run: pip install '{offer.distribution}=={locked.version}', or accept what is installed with: "
            f"pi build lock {file.path}"
        )
