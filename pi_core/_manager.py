"""The plugin manager of one build: pluggy's, with checks at registration and plans for the driver."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeAlias

import pluggy

from . import hookspecs
from ._answers import check_of, wrapper_check_of
from ._dispatch import Implementation, Owner, Plan, anything, bind, takes_proceed
from ._requires import unmet
from .errors import PluginLoadError, describe_owner
from .markers import PROJECT, Contract, Kind, contract_of

HookImpls: TypeAlias = Sequence[pluggy.HookImpl]
Before: TypeAlias = Callable[[str, HookImpls, Mapping[str, Any]], None]
After: TypeAlias = Callable[[pluggy.Result[Any], str, HookImpls, Mapping[str, Any]], None]


class Spec(NamedTuple):
    """What a manager knows of a hook."""

    contract: Contract
    arguments: tuple[str, ...]
    offered_by: str = ""


def read_specs(holder: object) -> dict[str, Spec]:
    """Return the hooks that a module or class declares with :func:`~pi_core.hookspec`."""
    specs = {}
    for name in dir(holder):
        contract = contract_of(getattr(holder, name, None))
        if contract is not None:
            parameters = inspect.signature(getattr(holder, name)).parameters
            specs[name] = Spec(contract, tuple(parameter for parameter in parameters if parameter != "self"))
    return specs


def implements(holder: object) -> bool:
    """Whether a module, class or object has functions that are marked as implementations of a hook."""
    reader = pluggy.PluginManager(PROJECT)
    return any(reader.parse_hookimpl_opts(holder, name) is not None for name in dir(holder))


def _core_specs() -> dict[str, Spec]:
    specs = read_specs(hookspecs)
    return {name: specs[name] for name in vars(hookspecs) if name in specs}


CORE_SPECS: Final[Mapping[str, Spec]] = _core_specs()
"""The core's hooks, in call order."""

_NO_GENERATORS: Final = (Kind.NOTIFY, Kind.RECORD, Kind.GUARD)


class HookManager(pluggy.PluginManager):
    """Holds the plugins of one build; ``generation`` grows whenever the plans made from it are out of date."""

    def __init__(self) -> None:
        super().__init__(PROJECT)
        self.generation = 0
        self.specs: dict[str, Spec] = {}
        self.distributions: dict[str, str] = {}
        self._monitors: list[tuple[Before, After]] = []
        self.add_hookspecs(hookspecs)

    def add_hookspecs(self, module_or_class: ModuleType | type, *, offered_by: str = "") -> None:
        """Add the hooks that a module or class declares with :func:`~pi_core.hookspec`.

        :param offered_by: the name of the plugin that offers them.
        :raises TypeError: one is marked with pluggy's own marker, so that it has no contract.
        :raises ValueError: it declares none, or one that is there already.
        """
        specs = CORE_SPECS if module_or_class is hookspecs else read_specs(module_or_class)
        for name in dir(module_or_class):
            if name not in specs and self.parse_hookspec_opts(module_or_class, name) is not None:
                raise TypeError(f"hook {name} has no contract: mark it with pi_core.hookspec, not with pluggy's marker")
        super().add_hookspecs(module_or_class)
        self.specs.update({name: spec._replace(offered_by=offered_by) for name, spec in specs.items()})
        self.generation += 1

    def register(self, plugin: object, name: str | None = None, *, distribution: str = "") -> str | None:
        """Register a plugin object, checked against the hooks it implements.

        :param name: the plugin name; the object's ``name`` or class name by default.
        :param distribution: name and version of the distribution it came from.
        :raises PluginLoadError: it requires what is not installed, it or one of its name is registered already, it
            implements no hook, misspells one, wants an argument the hook does not have, is ``async`` on a sync hook, or
            wraps a hook that may not be.
        """
        name = name or plugin_name(plugin)
        why = unmet(plugin)
        if why:
            raise refused(name, distribution, why)
        if self.has_plugin(name):
            raise refused(name, distribution, "another plugin has this name; give one a 'name' attribute")
        if self.is_registered(plugin):
            raise refused(name, distribution, f"it is registered already, as '{self.get_name(plugin)}'")
        self._check(plugin, name, distribution)
        try:
            registered = super().register(plugin, name)
        except pluggy.PluginValidationError as error:
            raise refused(name, distribution, str(error)) from error
        if registered is not None:
            self.distributions[registered] = distribution
        self.generation += 1
        return registered

    def register_all(self, plugins: Iterable[object]) -> None:
        """Register plugin objects given in call order, with the hooks they offer to each other.

        :raises PluginLoadError: one of them is refused.
        """
        given = [(plugin, plugin_name(plugin)) for plugin in plugins]
        for plugin, name in given:
            self.add_offered(plugin, name)
        for plugin, name in reversed(given):
            self.register(plugin, name)

    def add_offered(self, plugin: object, name: str, distribution: str = "") -> None:
        """Add the hooks that a plugin offers to others through ``register_hookspecs``.

        :raises PluginLoadError: it requires what is not installed, it raises, or it offers something that is no hook,
            or one that is there already.
        """
        why = unmet(plugin)
        if why:
            raise refused(name, distribution, why)
        for hook, function, _ in self._marked(plugin):
            if hook != "register_hookspecs":
                continue
            self._check_signature(function, hook, plugin, name, distribution)
            try:
                for module in function():
                    self.add_hookspecs(module, offered_by=name)
            except (Exception, SystemExit) as error:
                why = f"{hook} at {_place(function)}: {type(error).__name__}: {error}"
                raise refused(name, distribution, why) from error

    def unregister(self, plugin: object | None = None, name: str | None = None) -> Any:
        """Take a plugin out."""
        removed = super().unregister(plugin, name)
        self.generation += 1
        return removed

    def add_hookcall_monitoring(self, before: Before, after: After) -> Callable[[], None]:
        """Call ``before`` and ``after`` around every hook call, those of async hooks included.

        :returns: a function that ends the monitoring.
        """
        undo = super().add_hookcall_monitoring(before, after)
        monitor = (before, after)
        self._monitors.append(monitor)
        self.generation += 1

        def stop() -> None:
            undo()
            self._monitors.remove(monitor)
            self.generation += 1

        return stop

    def owner(self, name: str) -> Owner:
        """Return who the plugin of a name is."""
        return Owner(name, self.distributions.get(name, ""))

    def plan(self, hook: str, without: frozenset[str] = frozenset(), only: str | None = None) -> Plan:
        """Compile how a hook is called, without the plugins of ``without``, or for the one plugin ``only``.

        :raises KeyError: no such hook.
        """
        spec = self.specs[hook]
        implementations: list[Implementation] = []
        wrappers: list[tuple[tuple[int, int], Implementation]] = []
        hookimpls = getattr(self.hook, hook).get_hookimpls()
        if not hookimpls:
            return Plan(hook, spec.arguments, ())
        registered = {name: position for position, (name, _) in enumerate(self.list_name_plugin())}
        for found in reversed(hookimpls):
            if found.plugin_name in without or only not in (None, found.plugin_name):
                continue
            wraps = found.wrapper or takes_proceed(found.function)
            by_name = [name for name in found.kwargnames if name in spec.arguments]
            made = implementation(
                hook, spec, self.owner(found.plugin_name), found.function, found.argnames, by_name, wraps=wraps
            )
            if wraps:
                wrappers.append((_rank(found, registered[found.plugin_name]), made))
            else:
                implementations.append(made)
        ordered = [made for _, made in sorted(wrappers, key=lambda ranked: ranked[0])]
        monitor = self._monitor(hook, spec, hookimpls) if self._monitors else None
        return Plan(hook, spec.arguments, tuple(implementations), tuple(ordered), monitor)

    def _monitor(
        self, hook: str, spec: Spec, hookimpls: Any
    ) -> Callable[[tuple[Any, ...]], Callable[[Any, BaseException | None], Any]]:
        monitors = list(self._monitors)

        def begin(arguments: tuple[Any, ...]) -> Callable[[Any, BaseException | None], Any]:
            given = dict(zip(spec.arguments, arguments, strict=True))
            for before, _ in monitors:
                before(hook, hookimpls, given)

            def end(answer: Any, error: BaseException | None) -> Any:
                result = pluggy.Result(answer, error)
                for _, after in monitors:
                    after(result, hook, hookimpls, given)
                return result.get_result()

            return end

        return begin

    def _marked(self, plugin: object) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
        """The functions of a plugin that are marked as implementations, with the hook each is for."""
        for attribute in dir(plugin):
            options = None if attribute.startswith("__") else self.parse_hookimpl_opts(plugin, attribute)
            if options is not None:
                yield options.get("specname") or attribute, getattr(plugin, attribute), options

    def _check(self, plugin: object, name: str, distribution: str) -> None:
        marked = list(self._marked(plugin))
        if not marked:
            raise refused(name, distribution, "it implements no hook; mark its functions with @hookimpl")
        for hook, function, options in marked:
            place = f"{hook} at {_place(function)}"
            if hook not in self.specs:
                if options.get("optionalhook"):
                    continue
                import difflib

                close = difflib.get_close_matches(hook, self.specs, n=1)
                hint = f", did you mean '{close[0]}'? Or" if close else ";"
                why = f"there is no hook {place}{hint} the plugin that offers it is missing"
                raise refused(name, distribution, why)
            self._check_signature(function, hook, plugin, name, distribution)
            contract = self.specs[hook].contract
            wraps = bool(options.get("wrapper"))
            if options.get("hookwrapper"):
                raise refused(name, distribution, f"old-style hookwrapper on {place}; use wrapper=True")
            if (wraps or takes_proceed(function)) and not contract.wrappers:
                why = f"{place} may not be wrapped: it is a {contract.kind.value} hook"
                raise refused(name, distribution, why)
            generator = inspect.isgeneratorfunction(function)
            if wraps and not generator:
                why = f"wrapper=True on {place} needs a generator; an async wrapper takes a keyword-only 'proceed'"
                raise refused(name, distribution, why)
            if not wraps and contract.kind in _NO_GENERATORS and (generator or inspect.isasyncgenfunction(function)):
                raise refused(name, distribution, f"{place} is a generator, so its body would never run")

    def _check_signature(self, function: Any, hook: str, plugin: object, name: str, distribution: str) -> None:
        spec = self.specs[hook]
        place = f"{hook} at {_place(function)}"
        is_async = inspect.iscoroutinefunction(function)
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY and parameter.name == "proceed":
                if not is_async:
                    raise refused(name, distribution, f"{place} takes 'proceed', so it must be async def")
                continue
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and parameter.name in spec.arguments:
                continue
            accepted = ", ".join(spec.arguments) or "none"
            why = f"argument '{parameter.name}' of {place} is not one the hook has (it has {accepted})"
            if parameter.name == "self" and inspect.isclass(plugin):
                why = f"{plugin.__name__} is a class; the plugin is an instance of it: {plugin.__name__}()"
            raise refused(name, distribution, why)
        if is_async and not spec.contract.is_async:
            raise refused(name, distribution, f"{place} is async, but the hook is called without await")


def implementation(
    hook: str,
    spec: Spec,
    owner: Owner,
    function: Callable[..., Any],
    wanted: Iterable[str],
    by_name: Iterable[str],
    *,
    wraps: bool,
) -> Implementation:
    """Return a function as an implementation of a hook, or as a wrapper of one."""
    proceed = wraps and takes_proceed(function)
    return Implementation(
        hook,
        owner,
        bind(function, spec.arguments, tuple(wanted), tuple(by_name), copies=spec.contract.copies, proceed=proceed),
        inspect.iscoroutinefunction(function),
        function,
        (wrapper_check_of(hook) if wraps else check_of(hook)) or anything,
    )


def _rank(found: Any, position: int) -> tuple[int, int]:
    """Where pluggy calls an implementation; here for wrappers of both kinds, which it keeps in two lists."""
    if found.trylast:
        return (2, position)
    return (0 if found.tryfirst else 1, -position)


def refused(name: str, distribution: str, why: str) -> PluginLoadError:
    """Return the exception for a plugin that cannot be used, with the way to do without it."""
    way_out = f". To run without it: PI_BLOCK={name}" if distribution else ""
    text = f"{describe_owner(name, distribution)}: {why}{way_out}"
    return PluginLoadError(text, plugin=name, distribution=distribution)


def plugin_name(plugin: object) -> str:
    """The name of a plugin object: its ``name`` attribute, else its module's or class's name."""
    given = getattr(plugin, "name", None)
    if isinstance(given, str) and given:
        return given
    named = plugin if inspect.ismodule(plugin) or inspect.isclass(plugin) else type(plugin)
    return str(getattr(named, "__name__", type(plugin).__name__))


def _place(function: Any) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else repr(function)
