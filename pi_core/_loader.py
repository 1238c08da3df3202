"""Installed plugins: found, blocked before import, ordered, loaded one by one, and reported."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ValidationError

from ._dispatch import call_now
from ._log import log
from ._manager import HookManager, plugin_name, refused
from ._registry import Registry, collect_contributions
from ._requires import FRAMEWORK, normalized, unmet, unmet_by_metadata
from .errors import ConfigError, PluginConflictError, PluginError, PluginLoadError, describe_owner
from .hooks import Hooks

GROUP = "pi"
BUILT_IN = FRAMEWORK

State: TypeAlias = Literal["loaded", "failed", "blocked", "shadowed", "left out"]


@dataclass(frozen=True, slots=True)
class Offer:
    """A plugin that an installed distribution offers.

    :param name: the entry-point name, which is the plugin's name.
    :param target: ``module:attribute``, or the path of a file.
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
    :param given: whether the application passed it as an object.
    """

    name: str
    target: str
    origin: str
    state: State
    reason: str = ""
    seconds: float = 0.0
    plugin: object | None = field(default=None, repr=False)
    given: bool = False


@dataclass(slots=True)
class Loaded:
    """The plugins of a build, ready to be called.

    :param faults: what the configuration names that is not there.
    """

    hooks: Hooks
    registry: Registry
    records: list[PluginRecord]
    conflicts: list[PluginConflictError]
    faults: list[str]

    def problems(self) -> list[str]:
        """One line for each plugin that is not as it should be, each name that two own, and each name of nothing."""
        failed = [record.reason for record in self.records if record.state in ("failed", "shadowed")]
        return [*failed, *map(str, self.conflicts), *self.faults]


@functools.cache
def installed() -> tuple[Offer, ...]:
    """Find what is offered, once per process, in an order that does not depend on the file system."""
    from importlib import metadata

    @functools.cache
    def described(distribution: metadata.Distribution) -> list[str]:
        told = distribution.metadata
        return [(told.get_all(key) or [""])[0] for key in ("Name", "Version")]

    offers = []
    for entry in metadata.entry_points(group=GROUP):
        name, version = ("", "") if entry.dist is None else described(entry.dist)
        offers.append(Offer(entry.name, entry.value, name, version, entry.load))
    return tuple(arrange(offers, ()))


def arrange(offers: Iterable[Offer], order: Sequence[str]) -> list[Offer]:
    """Put the plugins named in ``order`` first, the rest by name; of one name, what ships with the framework first."""
    rank = {name: position for position, name in enumerate(order)}

    def place(offer: Offer) -> tuple[Any, ...]:
        listed = rank.get(offer.name, len(rank))
        return listed, offer.name, not offer.built_in, normalized(offer.distribution), offer.target

    return sorted(offers, key=place)


def load_plugins(
    *,
    offers: Iterable[Offer] | None = None,
    named: Iterable[Offer] = (),
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
    :param named: what is loaded beside them, whatever is left out, such as plugin files.
    :param objects: plugin objects given by the application; they come first and beat an installed one of their name.
    :param order: plugin names in call order; the rest follows by name.
    :param only: load these and nothing else.
    :param block: plugin or distribution names that are not imported.
    :param options: each plugin's own options, by plugin name.
    :param decisions: which plugin has a name that several own.
    :param strict: raise for a plugin that fails, a name that two own or a name of nothing, instead of going on without.
    :raises PluginError: an object of the application fails, or, with ``strict``, any plugin.
    :raises ConfigError: with ``strict``, a name in the configuration is that of nothing here.
    """
    found = [*(installed() if offers is None else offers), *named]
    blocked = list(block)
    records = [
        PluginRecord(plugin_name(plugin), _target(plugin), "", "loaded", plugin=plugin, given=True)
        for plugin in objects
    ]
    taken = {record.name: record.target for record in records}
    barred = {*blocked, *map(normalized, blocked)}
    for offer in arrange(found, only if only is not None else order):
        record = PluginRecord(offer.name, offer.target, offer.origin, "loaded")
        records.append(record)
        if offer.name in barred or normalized(offer.distribution) in barred:
            record.state, record.reason = "blocked", "blocked by configuration, not imported"
        elif offer.distribution and (
            (only is not None and offer.name not in only) or (built_in_only and not offer.built_in)
        ):
            record.state, record.reason = "left out", "not part of this build, not imported"
        elif offer.name in taken:
            record.state = "shadowed"
            way_out = (
                f"Block one distribution with PI_BLOCK={offer.distribution}" if offer.distribution else "Rename it"
            )
            record.reason = (
                f"{describe_owner(offer.name, offer.origin or offer.target)} is not loaded: the name is taken by "
                f"{taken[offer.name]}. {way_out}"
            )
        else:
            taken[offer.name] = f"{offer.target} from {offer.origin}" if offer.origin else offer.target
            _import(offer, record)
    for name in only or ():
        if name not in {record.name for record in records}:
            reason = f"{describe_owner(name)} is not installed. Install the distribution that offers it"
            records.append(PluginRecord(name, "", "", "failed", reason))
    names = {record.name for record in records}
    faults = [f"the order names plugin '{name}', which is not installed" for name in order if name not in names]
    faults += [
        f"options are given for plugin '{name}', which is not installed" for name in options or () if name not in names
    ]
    distributions = {normalized(offer.distribution) for offer in found}
    faults += [
        f"'{name}' is to be blocked, but no plugin and no distribution of one is called that"
        for name in blocked
        if name not in names and normalized(name) not in distributions
    ]
    return _Assembly(records, options or {}, decisions or {}, faults, strict).run()


def _target(plugin: object) -> str:
    if inspect.ismodule(plugin):
        return plugin.__name__
    kind = plugin if inspect.isclass(plugin) else type(plugin)
    return f"{kind.__module__}:{kind.__qualname__}"


def _import(offer: Offer, record: PluginRecord) -> None:
    began = time.perf_counter()
    try:
        found = offer.load()
        why = unmet(found)
        if not why:
            record.plugin = found() if inspect.isclass(found) else found
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        record.reason = (
            f"{describe_owner(record.name, record.origin)} failed to load from {record.target}: "
            f"{type(error).__name__}: {error}. {_needs(offer)}To run without it: PI_BLOCK={record.name}"
        )
        log().warning("%s", record.reason, exc_info=error)
    else:
        if why:
            record.reason = str(refused(record.name, record.origin, why))
            log().warning("%s", record.reason)
    if record.reason:
        record.state = "failed"
    record.seconds = time.perf_counter() - began


def _needs(offer: Offer) -> str:
    needs = unmet_by_metadata(offer.distribution) if offer.distribution else ""
    return f"{needs[0].upper()}{needs[1:]}. " if needs else ""


class _Assembly:
    """Registers, configures and asks imported plugins; one that fails on the way is taken out, the others go on."""

    def __init__(
        self,
        records: list[PluginRecord],
        options: Mapping[str, Any],
        decisions: Mapping[str, str],
        faults: list[str],
        strict: bool,
    ) -> None:
        self.records = records
        self.options = options
        self.decisions = decisions
        self.faults = faults
        self.strict = strict
        self.manager = HookManager()

    def run(self) -> Loaded:
        for record in self.records:
            if self.strict and record.state in ("failed", "shadowed"):
                raise PluginLoadError(record.reason, plugin=record.name, distribution=record.origin)
        manager = self.manager
        for record in self._active():
            self._try(record, lambda record: manager.add_offered(record.plugin, record.name, record.origin))
        for record in reversed(self._active()):
            self._try(record, lambda record: manager.register(record.plugin, record.name, distribution=record.origin))
        for record in self._active():
            self._try(record, self._configure)
        hooks = Hooks(manager)
        registry = collect_contributions(hooks, self._failed)
        for name, plugin in self.decisions.items():
            if not registry.decide(name, plugin):
                self.faults.append(f"'{name}' is to come from plugin '{plugin}', which offers nothing of that name")
        self.faults += registry.settle_declared()
        conflicts = registry.conflicts()
        if self.strict and conflicts:
            raise conflicts[0]
        if self.strict and self.faults:
            raise ConfigError("; ".join(self.faults))
        return Loaded(hooks, registry, self.records, conflicts, self.faults)

    def _active(self) -> list[PluginRecord]:
        return [record for record in self.records if record.state == "loaded"]

    def _try(self, record: PluginRecord, step: Callable[[PluginRecord], object]) -> None:
        try:
            step(record)
        except PluginError as error:
            self._take_out(record, error)

    def _failed(self, error: PluginError) -> None:
        self._take_out(next(record for record in self._active() if record.name == error.plugin), error)

    def _take_out(self, record: PluginRecord, error: PluginError) -> None:
        if self.strict or record.given:
            raise error
        log().warning("%s", error, exc_info=error)
        way_out = f"To run without it: PI_BLOCK={record.name}"
        record.state = "failed"
        record.reason = str(error) if way_out in str(error) else f"{error}. {way_out}"
        if self.manager.has_plugin(record.name):
            self.manager.unregister(name=record.name)

    def _configure(self, record: PluginRecord) -> None:
        plan = self.manager.plan("configure", only=record.name)
        given = self.options.get(record.name, {})
        if not plan.implementations:
            if given:
                keys = ", ".join(map(str, given))
                raise refused(record.name, record.origin, f"it takes no options, but some are given: {keys}")
            return
        options = validated_options(record, given)
        for implementation in plan.implementations:
            try:
                call_now(implementation, (options,))
            except (Exception, SystemExit) as error:
                raise implementation.failed(error) from error


def validated_options(record: PluginRecord, given: Any) -> Any:
    """Return a plugin's options as an instance of its ``Options`` model, or as they are when it has none.

    :raises PluginLoadError: they do not fit; names the plugin and every key.
    """
    if not isinstance(given, Mapping):
        raise refused(record.name, record.origin, f"its options are to be a table of keys and values, got {given!r}")
    model = getattr(record.plugin, "Options", None)
    if not (inspect.isclass(model) and issubclass(model, BaseModel)):
        return given
    try:
        return model.model_validate(given)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in (record.name, *fault['loc']))}: {fault['msg']}"
            for fault in error.errors(include_url=False)
        )
        known = ", ".join(model.model_fields) or "none"
        why = f"its options are not valid: {faults}. Its options: {known}"
        raise refused(record.name, record.origin, why) from None


__all__ = ["GROUP", "Loaded", "Offer", "PluginRecord", "installed", "load_plugins", "normalized"]
