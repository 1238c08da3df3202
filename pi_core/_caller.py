"""What calls the hooks of a set of plugins and callables: plans, compiled once, and the road of each kind of hook."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Self, TypeVar

from ._dispatch import (
    Combine,
    Implementation,
    Owner,
    Plan,
    call_now,
    chain,
    collect,
    first,
    guard,
    notify,
    record,
    register,
    takes_proceed,
)
from ._log import log
from ._manager import CORE_SPECS, HookManager, Spec, implementation
from ._tracing import Tracer, traced
from ._wrappers import around, around_notify
from .context import RunContext
from .errors import HookError, PluginFailure
from .markers import Contract, Kind, OnError
from .tools import Block

APPLICATION: Final = Owner("application")
"""The owner of the callables that an application passes to its agent."""

CallerT = TypeVar("CallerT", bound="HookCaller")
_MISSING: Final = object()


class HookCaller:
    """Calls the hooks of a set of plugins and callables.

    :param manager: holds the plugins; ``None`` for none.
    :param callables: implementations by hook name, called before the plugins'.
    :param without: plugin names that are left out.
    :raises TypeError: a callable for a hook that does not exist, or with arguments it does not have.
    :raises ValueError: a plugin that is to be left out is not there.
    """

    __slots__ = ("_callables", "_generation", "_manager", "_plans", "_tracers", "_without")

    def __init__(
        self,
        manager: HookManager | None = None,
        callables: Mapping[str, Callable[..., Any]] | None = None,
        without: Iterable[str] = (),
    ) -> None:
        self._manager = manager
        self._without = frozenset(without)
        for name in self._without:
            if manager is None or not manager.has_plugin(name):
                named = [] if manager is None else [name for name, _ in reversed(manager.list_name_plugin())]
                here = ", ".join(named) or "none"
                raise ValueError(f"there is no plugin '{name}' to leave out (plugins here: {here})")
        self._callables = {name: self._from_callable(name, function) for name, function in (callables or {}).items()}
        self._plans: dict[str, Plan | None] = {}
        self._tracers: list[Tracer] = []
        self._generation = manager.generation if manager is not None else 0

    @classmethod
    def over(cls, *plugins: object, callables: Mapping[str, Callable[..., Any]] | None = None) -> Self:
        """Return a facade over plugin objects, the first called first.

        :raises PluginLoadError: a plugin cannot be registered.
        """
        if not plugins:
            return cls(None, callables)
        manager = HookManager()
        manager.register_all(plugins)
        return cls(manager, callables)

    def extended(
        self, callables: Mapping[str, Callable[..., Any]] | None = None, *, without: Iterable[str] = ()
    ) -> Self:
        """Return a facade over the same plugins with further callables, called first, or without some of the plugins.

        :raises ValueError: a plugin that is to be left out is not there.
        """
        made = type(self)(self._manager, callables, self._without | set(without))
        made._tracers = list(self._tracers)
        for name, plan in self._callables.items():
            further = made._callables.get(name)
            made._callables[name] = plan if further is None else _joined(further, plan)
        return made

    def has(self, name: str) -> bool:
        """Whether anybody implements or wraps a hook."""
        return self._plan(name) is not None

    def implemented(self) -> frozenset[str]:
        """The names of the hooks that somebody implements or wraps."""
        return frozenset(name for name in self._specs if self._plan(name) is not None)

    def trace(self, tracer: Tracer) -> Callable[[], None]:
        """Tell ``tracer`` about every call of an implementation from now on.

        :returns: a function that ends it.
        """
        self._tracers.append(tracer)
        self._plans.clear()

        def stop() -> None:
            if tracer in self._tracers:
                self._tracers.remove(tracer)
                self._plans.clear()

        return stop

    def implementations(self, name: str) -> list[tuple[Owner, Callable[..., Any], bool]]:
        """Who implements a hook, in call order: owner, function, and whether it is a wrapper (those come first)."""
        plan = self._plan(name)
        if plan is None:
            return []
        wrappers = [(found.owner, found.function, True) for found in plan.wrappers]
        return wrappers + [(found.owner, found.function, False) for found in plan.implementations]

    def specifications(self) -> list[tuple[str, tuple[str, ...], Contract]]:
        """Every hook in call order: name, arguments, contract; those that plugins offer come last."""
        return [(name, spec.arguments, spec.contract) for name, spec in self._specs.items()]

    def offered_by(self, name: str) -> str:
        """Return which plugin offers a hook; an empty text for those of the core."""
        return self._specs[name].offered_by

    def contributions(self, name: str, failed: Callable[[HookError], None] | None = None) -> list[tuple[Owner, Any]]:
        """Call a register hook and return every contribution with its owner.

        :param failed: told about an implementation that raised; without it the exception comes out.
        :raises HookError: an implementation raised.
        """
        plan = self._plan(name)
        return [] if plan is None else self._sync(plan, (), lambda plan, given: register(plan, given, failed))

    def report(self, failure: PluginFailure) -> None:
        """Log a failure of a plugin and tell the plugins that watch for it."""
        log().warning("%s", failure, exc_info=failure.error)
        self.plugin_error(failure)

    def plugin_error(self, failure: PluginFailure) -> None:
        """Tell the plugins about a failure; what they raise is logged."""
        plan = self._plan("plugin_error")
        if plan is not None:
            self._sync(plan, (failure,), _log_failures)

    async def call(self, name: str, /, **arguments: Any) -> Any:
        """Call a hook that a plugin offers, combined as its contract says; a chain folds the hook's first argument.

        A guard gives ``None`` or the :class:`~pi_core.Block` of the first objection.

        :raises KeyError: no such hook.
        :raises TypeError: an argument is missing, or not one of the hook's.
        :raises HookError: an implementation raised where the contract does not say otherwise.
        """
        contract, order, _ = self._specs[name]
        if arguments.keys() != set(order):
            raise TypeError(
                f"hook {name} takes {', '.join(order) or 'nothing'}, got {', '.join(arguments) or 'nothing'}"
            )
        given = tuple(arguments[key] for key in order)
        plan = self._plan(name) or Plan(name, order, ())
        match contract.kind:
            case Kind.CHAIN:
                return await self._run(plan, given, chain)
            case Kind.NOTIFY if contract.on_error in (OnError.ISOLATE, OnError.LOG):
                ctx = arguments.get("ctx")
                report = self.report if contract.on_error is OnError.ISOLATE else _log
                return await self._notify(plan, given, ctx.failures if isinstance(ctx, RunContext) else {}, report)
            case Kind.NOTIFY | Kind.RECORD:
                return await self._run(plan, given, record)
            case Kind.COLLECT:
                return await self._run(plan, given, collect)
            case Kind.REGISTER:
                return self._sync(plan, given, register)
            case Kind.GUARD:
                return await self._run(plan, given, self._guard)
            case Kind.FIRST:
                return await self._run(plan, given, first)

    async def _guard(self, plan: Plan, arguments: tuple[Any, ...]) -> Block | None:
        def apply(value: Any, answer: Any) -> Any:
            raise TypeError(f"expected Block or None, got {type(answer).__name__}")

        def refuse(found: Implementation, error: Exception) -> Block:
            self.report(found.failure(error))
            return Block(str(found.failed(error)))

        answer = await guard(plan, arguments, apply, refuse)
        return answer if isinstance(answer, Block) else None

    # --- roads ---

    def _run(self, plan: Plan, arguments: tuple[Any, ...], combine: Combine) -> Awaitable[Any]:
        if plan.wrappers or plan.monitor is not None:
            return around(plan, arguments, combine)
        return combine(plan, arguments)

    def _notify(
        self,
        plan: Plan,
        arguments: tuple[Any, ...],
        failures: dict[Implementation, int],
        report: Callable[[PluginFailure], None] | None = None,
    ) -> Awaitable[None]:
        report = report or self.report
        if plan.wrappers or plan.monitor is not None:

            def combine(plan: Plan, given: tuple[Any, ...]) -> Awaitable[None]:
                return notify(plan, given, failures, report)

            return around_notify(plan, arguments, combine, failures, report)
        return notify(plan, arguments, failures, report)

    @staticmethod
    def _sync(plan: Plan, arguments: tuple[Any, ...], combine: Callable[[Plan, tuple[Any, ...]], Any]) -> Any:
        if plan.monitor is None:
            return combine(plan, arguments)
        end = plan.monitor(arguments)
        try:
            answer = combine(plan, arguments)
        except BaseException as error:
            return end(None, error)
        return end(answer, None)

    # --- plans ---

    @property
    def _specs(self) -> Mapping[str, Spec]:
        return CORE_SPECS if self._manager is None else self._manager.specs

    def _plan(self, name: str) -> Plan | None:
        manager = self._manager
        if manager is not None and manager.generation != self._generation:
            self._plans.clear()
            self._generation = manager.generation
        plan: Any = self._plans.get(name, _MISSING)
        if plan is _MISSING:
            plan = self._plans[name] = self._compile(name)
        return plan  # type: ignore[no-any-return]

    def _compile(self, name: str) -> Plan | None:
        plan = self._callables.get(name)
        if self._manager is not None:
            found = self._manager.plan(name, self._without)
            plan = found if plan is None else _joined(plan, found)
        if plan is None or not (plan.implementations or plan.wrappers):
            return None
        return traced(plan, self._tracers) if self._tracers else plan

    def _from_callable(self, name: str, function: Callable[..., Any]) -> Plan:
        spec = self._specs.get(name)
        if spec is None or spec.contract.kind is Kind.REGISTER or name == "configure":
            raise TypeError(f"there is no hook '{name}' that a callable can implement")
        wraps = takes_proceed(function)
        wanted: list[str] = []
        by_name: list[str] = []
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name in spec.arguments and parameter.kind is parameter.POSITIONAL_OR_KEYWORD and not by_name:
                wanted.append(parameter.name)
            elif parameter.name in spec.arguments and parameter.kind is not parameter.POSITIONAL_ONLY:
                by_name.append(parameter.name)
            elif parameter.default is parameter.empty and not (wraps and parameter.name == "proceed"):
                known = f"{', '.join(spec.arguments)}, taken by name"
                raise TypeError(f"{name}: argument '{parameter.name}' is not one of the hook's ({known})")
        is_async = inspect.iscoroutinefunction(function)
        if is_async and not spec.contract.is_async:
            raise TypeError(f"{name} is called without await, but the callable is async")
        if wraps and not (is_async and spec.contract.wrappers):
            why = "a wrapper is async def" if spec.contract.wrappers else "the hook may not be wrapped"
            raise TypeError(f"{name}: the callable takes 'proceed', but {why}")
        made = implementation(name, spec, APPLICATION, function, wanted, by_name, wraps=wraps)
        return Plan(name, spec.arguments, () if wraps else (made,), (made,) if wraps else ())


def _joined(before: Plan, after: Plan) -> Plan:
    return Plan(
        after.hook,
        after.arguments,
        before.implementations + after.implementations,
        before.wrappers + after.wrappers,
        after.monitor,
    )


def _log(failure: PluginFailure) -> None:
    log().error("%s", failure, exc_info=failure.error)


def _log_failures(plan: Plan, arguments: tuple[Any, ...]) -> None:
    for found in plan.implementations:
        try:
            call_now(found, arguments)
        except Exception as error:
            _log(found.failure(error))
