"""Installed plugins: found, blocked before import, ordered, loaded one by one, and reported."""

from __future__ import annotations

import functools
import inspect
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ValidationError

from ._dispatch import log
from ._manager import HookManager, plugin_name
from ._registry import Registry, collect_contributions
from .errors import PluginConflictError, PluginError, PluginLoadError, describe_owner
from .hooks import Hooks

GROUP = "pi"
BUILT_IN = "pi-agent-framework"

State: TypeAlias = Literal["loaded", "failed", "blocked", "shadowed", "left out"]


@dataclass(frozen=True, slots=True)
class Offer:
    """A plugin that an installed distribution offers.

    :param name: the entry-point name, which is the plugin's name.
    :param target: ``module:attribute``.
    """

    name: str
    target: str
    distribution: str
    version: str
    load: Callable[[], Any] = field(repr=False, compare=False)

    @property
    def origin(self) -> str:
        """Distribution and version."""
        return f"{self.distribution} {self.version}".strip()

    @property
    def built_in(self) -> bool:
        """Whether it ships with the framework."""
        return normalized(self.distribution) == BUILT_IN


@dataclass(slots=True)
class PluginRecord:
    """What became of an offered plugin.

    :param reason: why it is not loaded, with the way out.
    :param seconds: how long importing and creating it took.
    """

    name: str
    target: str
    origin: str
    state: State
    reason: str = ""
    seconds: float = 0.0
    plugin: object | None = field(default=None, repr=False)


@dataclass(slots=True)
class Loaded:
    """The plugins of a build, ready to be called."""

    hooks: Hooks
    registry: Registry
    records: list[PluginRecord]
    conflicts: list[PluginConflictError]

    def problems(self) -> list[str]:
        """One line for each plugin that is not as it should be, and each name that two own."""
        failed = [record.reason for record in self.records if record.state in ("failed", "shadowed")]
        return failed + [str(conflict) for conflict in self.conflicts]


def normalized(name: str) -> str:
    """Return a distribution name as the packaging standards compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@functools.cache
def installed() -> tuple[Offer, ...]:
    """Find what is offered, once per process, in an order that does not depend on the file system."""
    from importlib import metadata

    offers = []
    for entry in metadata.entry_points(group=GROUP):
        distribution = entry.dist.name if entry.dist is not None else ""
        version = entry.dist.version if entry.dist is not None else ""
        offers.append(Offer(entry.name, entry.value, distribution, version, entry.load))
    return tuple(sorted(offers, key=lambda offer: (offer.name, normalized(offer.distribution), offer.target)))


def arrange(offers: Iterable[Offer], order: Sequence[str]) -> list[Offer]:
    """Put the plugins named in ``order`` first, the rest by name."""
    rank = {name: position for position, name in enumerate(order)}
    return sorted(offers, key=lambda offer: (rank.get(offer.name, len(rank)), offer.name))


def load_plugins(
    *,
    offers: Iterable[Offer] | None = None,
    objects: Sequence[object] = (),
    order: Sequence[str] = (),
    only: Sequence[str] | None = None,
    block: Iterable[str] = (),
    built_in_only: bool = False,
    options: Mapping[str, Any] | None = None,
    decisions: Mapping[str, str] | None = None,
    strict: bool = False,
) -> Loaded:
    """Load plugins and collect what they contribute.

    :param offers: what may be loaded; everything that is installed by default.
    :param objects: plugin objects given by the application; they come first and beat an installed one of their name.
    :param order: plugin names in call order; the rest follows by name.
    :param only: load these and nothing else.
    :param block: plugin or distribution names that are not imported.
    :param options: each plugin's own options, by plugin name.
    :param decisions: which plugin has a name that several own.
    :param strict: raise for a plugin that fails or a name that two own, instead of going on without.
    :raises PluginError: with ``strict``, the first fault; without, options for a plugin given as an object that fails.
    """
    records: list[PluginRecord] = []
    for given in objects:
        name = plugin_name(given)
        target = f"{type(given).__module__}:{type(given).__qualname__}"
        records.append(PluginRecord(name, target, "", "loaded", plugin=given))
    taken = {record.name: record.target for record in records}
    blocked = set(block)
    blocked_distributions = {normalized(name) for name in blocked}
    for offer in arrange(installed() if offers is None else offers, only if only is not None else order):
        record = PluginRecord(offer.name, offer.target, offer.origin, "loaded")
        records.append(record)
        if offer.name in blocked or normalized(offer.distribution) in blocked_distributions:
            record.state, record.reason = "blocked", "blocked by configuration, not imported"
        elif (only is not None and offer.name not in only) or (built_in_only and not offer.built_in):
            record.state, record.reason = "left out", "not part of this build, not imported"
        elif offer.name in taken:
            record.state = "shadowed"
            record.reason = (
                f"{describe_owner(offer.name, offer.origin)} is not loaded: the name is taken by {taken[offer.name]}. "
                f"Block one distribution with PI_BLOCK={offer.distribution}"
            )
        else:
            taken[offer.name] = f"{offer.target} from {offer.origin}"
            _import(offer, record)
    if only is not None:
        found = {record.name for record in records}
        for name in only:
            if name not in found:
                reason = f"{describe_owner(name)} is not installed. Install the distribution that offers it"
                records.append(PluginRecord(name, "", "", "failed", reason))
    return _Assembly(records, options or {}, decisions or {}, strict).run()


def _import(offer: Offer, record: PluginRecord) -> None:
    began = time.perf_counter()
    try:
        found = offer.load()
        record.plugin = found() if inspect.isclass(found) else found
    except (Exception, SystemExit) as error:
        _fail(record, f"{type(error).__name__}: {error}")
    record.seconds = time.perf_counter() - began


def _fail(record: PluginRecord, why: str) -> None:
    record.state, record.plugin = "failed", None
    owner = describe_owner(record.name, record.origin)
    way_out = f"To run without it: PI_BLOCK={record.name}"
    where = f" ({record.target})" if record.target and record.target not in why else ""
    record.reason = why if why.startswith(owner) else f"{owner}{where} failed to load: {why}. {way_out}"


class _Assembly:
    """Registers imported plugins; one that fails on the way is taken out and everything is done again without it."""

    def __init__(
        self,
        records: list[PluginRecord],
        options: Mapping[str, Any],
        decisions: Mapping[str, str],
        strict: bool,
    ) -> None:
        self.records = records
        self.options = options
        self.decisions = decisions
        self.strict = strict

    def run(self) -> Loaded:
        for record in self.records:
            if record.state in ("failed", "shadowed"):
                self._check_strict(record)
        while True:
            try:
                loaded = self._assemble()
            except PluginError as error:
                blamed = next((found for found in self._active() if found.name == error.plugin), None)
                if blamed is None:
                    raise
                log.warning("%s", error, exc_info=error)
                _fail(blamed, str(error))
                self._check_strict(blamed, error)
                continue
            if self.strict and loaded.conflicts:
                raise loaded.conflicts[0]
            return loaded

    def _active(self) -> list[PluginRecord]:
        return [record for record in self.records if record.state == "loaded"]

    def _check_strict(self, record: PluginRecord, cause: Exception | None = None) -> None:
        if self.strict:
            raise PluginLoadError(record.reason, plugin=record.name, distribution=record.origin) from cause

    def _assemble(self) -> Loaded:
        manager = HookManager()
        hooks = Hooks(manager)
        active = self._active()
        manager.register_all((record.plugin, record.name, record.origin) for record in active)
        for name in self.options:
            if name not in {record.name for record in self.records}:
                log.warning("options are given for plugin '%s', which is not installed", name)
        for record in active:
            self._configure(manager, record)
        registry = collect_contributions(hooks, self.decisions)
        return Loaded(hooks, registry, self.records, registry.conflicts())

    def _configure(self, manager: HookManager, record: PluginRecord) -> None:
        plan = manager.plan("configure", only=record.name)
        given = self.options.get(record.name, {})
        if not plan.implementations:
            if given:
                raise PluginLoadError(
                    f"{describe_owner(record.name, record.origin)} takes no options, but some are given: "
                    f"{', '.join(map(str, given))}",
                    plugin=record.name,
                    distribution=record.origin,
                )
            return
        options = validated_options(record, given)
        for implementation in plan.implementations:
            try:
                implementation.call(options)
            except Exception as error:
                raise implementation.failed(error) from error


def validated_options(record: PluginRecord, given: Any) -> Any:
    """Return a plugin's options as an instance of its ``Options`` model, or as they are when it has none.

    :raises PluginLoadError: they do not fit; names the plugin and every key.
    """
    model = getattr(record.plugin, "Options", None)
    if not (inspect.isclass(model) and issubclass(model, BaseModel)):
        return given
    try:
        return model.model_validate(given)
    except ValidationError as error:
        faults = "; ".join(
            f"{record.name}.{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
            for fault in error.errors(include_url=False)
        )
        known = ", ".join(model.model_fields)
        raise PluginLoadError(
            f"{describe_owner(record.name, record.origin)}: its options are not valid: {faults}. It knows: {known}",
            plugin=record.name,
            distribution=record.origin,
        ) from None


__all__ = ["GROUP", "Loaded", "Offer", "PluginRecord", "installed", "load_plugins"]
