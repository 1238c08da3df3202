"""The plugin manager of one build: pluggy's, with checks at registration and plans for the driver."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pluggy

from . import hookspecs
from ._dispatch import Implementation, Owner, Plan, bind, takes_proceed
from .errors import PluginLoadError, describe_owner
from .markers import PROJECT, Contract, contract_of

Before = Callable[[str, Any, dict[str, Any]], None]
After = Callable[[Any, str, Any, dict[str, Any]], None]


class HookManager(pluggy.PluginManager):
    """Holds the plugins of one build; ``generation`` grows whenever the plans made from it are out of date."""

    def __init__(self, specs: Iterable[object] = (hookspecs,)) -> None:
        super().__init__(PROJECT)
        self.generation = 0
        self.contracts: dict[str, Contract] = {}
        self.signatures: dict[str, tuple[str, ...]] = {}
        self.distributions: dict[str, str] = {}
        self.monitors: list[tuple[Before, After]] = []
        for module in specs:
            self.add_hookspecs(module)

    def add_hookspecs(self, module_or_class: object) -> None:
        """Add the hooks that a module or class declares with :func:`~pi_core.hookspec`."""
        super().add_hookspecs(module_or_class)
        for name, function in vars(module_or_class).items():
            contract = contract_of(function)
            if contract is not None:
                self.contracts[name] = contract
                parameters = inspect.signature(function).parameters
                self.signatures[name] = tuple(parameter for parameter in parameters if parameter != "self")
        self.generation += 1

    def register(self, plugin: object, name: str | None = None, *, distribution: str = "") -> str | None:
        """Register a plugin object, checked against the hooks it implements.

        :param name: the plugin name; the object's ``name`` or class name by default.
        :param distribution: name and version of the distribution it came from.
        :raises PluginLoadError: it is registered already, misspells a hook, wants an argument the hook does not have,
            is ``async`` on a sync hook, or wraps a hook that may not be wrapped.
        """
        name = name or plugin_name(plugin)
        self._check(plugin, name, distribution)
        try:
            registered = super().register(plugin, name)
        except (pluggy.PluginValidationError, ValueError) as error:
            raise self._refuse(name, distribution, str(error)) from error
        if registered is not None:
            self.distributions[registered] = distribution
        self.generation += 1
        return registered

    def register_all(self, plugins: Iterable[tuple[object, str | None, str]]) -> None:
        """Register plugins given in call order, with the hooks they offer to each other.

        :param plugins: object, plugin name, and name and version of the distribution.
        :raises PluginLoadError: one of them is refused.
        """
        given = list(plugins)
        for plugin, name, distribution in given:
            offer = getattr(plugin, "register_hookspecs", None)
            if offer is not None and self.parse_hookimpl_opts(plugin, "register_hookspecs") is not None:
                named = name or plugin_name(plugin)
                try:
                    for module in offer():
                        self.add_hookspecs(module)
                except Exception as error:
                    raise self._refuse(named, distribution, f"register_hookspecs: {error}") from error
        for plugin, name, distribution in reversed(given):
            self.register(plugin, name, distribution=distribution)

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
        self.monitors.append(monitor)

        def stop() -> None:
            undo()
            self.monitors.remove(monitor)

        return stop

    def owner(self, name: str) -> Owner:
        """Return who the plugin of a name is."""
        return Owner(name, self.distributions.get(name, ""))

    def plan(self, hook: str, without: frozenset[str] = frozenset(), only: str | None = None) -> Plan:
        """Compile how a hook is called, without the plugins of ``without``, or for the one plugin ``only``.

        :raises KeyError: no such hook.
        """
        arguments = self.signatures[hook]
        implementations: list[Implementation] = []
        wrappers: list[Implementation] = []
        for found in reversed(getattr(self.hook, hook).get_hookimpls()):
            if found.plugin_name in without or only not in (None, found.plugin_name):
                continue
            wanted = [*found.argnames, *(key for key in found.kwargnames if key in arguments)]
            proceed = takes_proceed(found.function)
            made = Implementation(
                hook,
                self.owner(found.plugin_name),
                bind(found.function, arguments, wanted, proceed=proceed),
                inspect.iscoroutinefunction(found.function),
                found.function,
            )
            (wrappers if proceed or found.wrapper else implementations).append(made)
        return Plan(hook, arguments, tuple(implementations), tuple(wrappers))

    def _refuse(self, name: str, distribution: str, why: str) -> PluginLoadError:
        text = f"{describe_owner(name, distribution)}: {why}. To run without it: PI_BLOCK={name}"
        return PluginLoadError(text, plugin=name, distribution=distribution)

    def _check(self, plugin: object, name: str, distribution: str) -> None:
        for attribute in dir(plugin):
            options = self.parse_hookimpl_opts(plugin, attribute)
            if options is None:
                continue
            function = getattr(plugin, attribute)
            hook = options.get("specname") or attribute
            place = f"{hook} at {_place(function)}"
            contract = self.contracts.get(hook)
            if contract is None:
                if options.get("optionalhook"):
                    continue
                close = difflib.get_close_matches(hook, self.contracts, n=1)
                hint = f", did you mean '{close[0]}'?" if close else ""
                raise self._refuse(name, distribution, f"there is no hook {place}{hint}")
            self._check_signature(function, hook, place, contract, name, distribution)
            wraps = bool(options.get("wrapper") or options.get("hookwrapper"))
            if options.get("hookwrapper"):
                raise self._refuse(name, distribution, f"old-style hookwrapper on {place}; use wrapper=True")
            if (wraps or takes_proceed(function)) and not contract.wrappers:
                raise self._refuse(
                    name, distribution, f"{place} may not be wrapped: it is a {contract.kind.value} hook"
                )

    def _check_signature(
        self, function: Any, hook: str, place: str, contract: Contract, name: str, distribution: str
    ) -> None:
        known = self.signatures[hook]
        is_async = inspect.iscoroutinefunction(function)
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY and parameter.name == "proceed" and is_async:
                continue
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and parameter.name in known:
                continue
            accepted = ", ".join(known) or "none"
            why = f"argument '{parameter.name}' of {place} is not one the hook has (it has {accepted})"
            raise self._refuse(name, distribution, why)
        if is_async and not contract.is_async:
            raise self._refuse(name, distribution, f"{place} is async, but the hook is called without await")


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
