"""The driver of hooks: implementations compiled to a plan, and one loop for each way their answers combine.

It works on pluggy's public ``get_hookimpls()`` and awaits each answer before the next implementation is called, so that
first-result, chains and wrappers mean the same for ``def`` and ``async def``.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from types import CodeType
from typing import Any, NoReturn, TypeAlias, TypeVar

from ._answers import copier_of
from .errors import HookError, PluginFailure, describe_owner, own_words
from .tools import Block

StateT = TypeVar("StateT")
FAILURES_BEFORE_OFF = 3


@dataclass(frozen=True, slots=True)
class Owner:
    """Who an implementation belongs to."""

    plugin: str
    distribution: str = ""

    def __str__(self) -> str:
        return describe_owner(self.plugin, self.distribution)

    def failed(self, hook: str, error: BaseException) -> HookError:
        """Return the exception that names plugin, distribution and hook; its cause is ``error``."""
        if isinstance(error, HookError):
            return error
        text = f"{own_words(error) or type(error).__name__} ({self}, hook {hook})"
        failure = HookError(text, plugin=self.plugin, distribution=self.distribution, hook=hook)
        failure.__cause__ = error
        return failure


def anything(answer: Any) -> Any:
    """Accept an answer as it is."""
    return answer


@dataclass(frozen=True, slots=True, eq=False)
class Implementation:
    """One implementation of a hook.

    :param call: takes the hook's arguments in the order of its signature.
    :param check: returns what counts of an answer that is not ``None``, of a wrapper's any answer.
    """

    hook: str
    owner: Owner
    call: Callable[..., Any]
    is_async: bool
    function: Callable[..., Any]
    check: Callable[[Any], Any] = anything

    def failed(self, error: BaseException) -> HookError:
        """Return the exception that names plugin, distribution and hook; its cause is ``error``."""
        return self.owner.failed(self.hook, error)

    def fault(self, error: BaseException) -> Exception:
        """Return what the plugin is to be blamed for; raises what is not its own, such as a cancellation of the run."""
        if isinstance(error, Exception):
            return error
        if _is_stray(error):
            stray = RuntimeError("what it waited for was cancelled")
            stray.__cause__ = error
            return stray
        raise error

    def failure(self, error: Exception, *, disabled: bool = False) -> PluginFailure:
        """Return the report of what it raised."""
        return PluginFailure(self.owner.plugin, self.owner.distribution, self.hook, error, disabled=disabled)

    def fail(self, error: BaseException) -> NoReturn:
        """Raise ``error`` with the plugin's name."""
        raise self.failed(self.fault(error))


def _is_stray(error: BaseException) -> bool:
    """Whether a cancellation is that of something a plugin awaited, and nobody asked the current task to end."""
    import asyncio

    if not isinstance(error, asyncio.CancelledError):
        return False
    task = asyncio.current_task()
    return task is not None and not task.cancelling()


@dataclass(frozen=True, slots=True)
class Plan:
    """How a hook is called: its implementations in call order, its wrappers, the outermost first, and who watches.

    :param monitor: called with the arguments before the call; what it returns, with the outcome after it.
    """

    hook: str
    arguments: tuple[str, ...]
    implementations: tuple[Implementation, ...]
    wrappers: tuple[Implementation, ...] = ()
    monitor: Callable[[tuple[Any, ...]], Callable[[Any, BaseException | None], Any]] | None = None


Combine: TypeAlias = Callable[[Plan, tuple[Any, ...]], Awaitable[Any]]
Report: TypeAlias = Callable[[PluginFailure], None]


def bind(
    function: Callable[..., Any],
    arguments: Sequence[str],
    wanted: Sequence[str],
    by_name: Sequence[str] = (),
    *,
    copies: Iterable[str] = (),
    proceed: bool = False,
) -> Callable[..., Any]:
    """Return a callable that takes the hook's arguments and passes on those the implementation wants.

    :param wanted: what the function takes by position, in its own order.
    :param by_name: what it takes by name.
    :param copies: the arguments of which it gets a copy.
    :param proceed: whether a keyword-only ``proceed`` is passed on too.
    """
    given = {name: name for name in (*wanted, *by_name)}
    for name in given.keys() & set(copies):
        other = f"{name} if (copy := _copier_of(type({name}))) is None else copy({name})"
        given[name] = f"[*{name}] if type({name}) is list else {other}"
    if list(given.values()) == list(arguments) and not by_name:
        return function
    passed = [given[name] for name in wanted] + [f"{name}={given[name]}" for name in by_name]
    head = [*arguments, "*", "proceed"] if proceed else arguments
    if proceed:
        passed.append("proceed=proceed")
    code = _compiled(f"lambda {', '.join(head)}: _function({', '.join(passed)})")
    bound: Callable[..., Any] = eval(code, {"_function": function, "_copier_of": copier_of})
    return bound


@cache
def _compiled(source: str) -> CodeType:
    return compile(source, "<arguments of a hook>", "eval")


def takes_proceed(function: Callable[..., Any]) -> bool:
    """Whether an implementation is an async wrapper: it has a keyword-only ``proceed``."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        parameter = inspect.signature(function).parameters.get("proceed")
        return parameter is not None and parameter.kind is parameter.KEYWORD_ONLY
    positional = code.co_argcount
    return "proceed" in code.co_varnames[positional : positional + code.co_kwonlyargcount]


# --- one loop for each kind ---------------------------------------------------------------------------------------


async def ask(implementation: Implementation, arguments: tuple[Any, ...]) -> Any:
    """Call one implementation; what it raises comes out as a :class:`~pi_core.errors.HookError`."""
    try:
        answer = implementation.call(*arguments)
        if answer is not None and (implementation.is_async or inspect.isawaitable(answer)):
            answer = await answer
        return answer if answer is None else implementation.check(answer)
    except BaseException as error:
        implementation.fail(error)


async def first(plan: Plan, arguments: tuple[Any, ...]) -> Any:
    """Return the first answer that is not ``None``."""
    for implementation in plan.implementations:
        answer = await ask(implementation, arguments)
        if answer is not None:
            return answer
    return None


async def any_true(plan: Plan, arguments: tuple[Any, ...]) -> bool:
    """Return whether any answer is true; the first one that is ends the asking."""
    for implementation in plan.implementations:
        if await ask(implementation, arguments):
            return True
    return False


async def collect(plan: Plan, arguments: tuple[Any, ...]) -> list[tuple[Owner, Any]]:
    """Return every answer that is not ``None``, with its owner."""
    answers = []
    for implementation in plan.implementations:
        answer = await ask(implementation, arguments)
        if answer is not None:
            answers.append((implementation.owner, answer))
    return answers


async def record(plan: Plan, arguments: tuple[Any, ...]) -> None:
    """Call every implementation; the first exception comes out when all were called, the others as its notes."""
    failure: HookError | None = None
    for implementation in plan.implementations:
        try:
            await ask(implementation, arguments)
        except HookError as error:
            if failure is None:
                failure = error
            else:
                failure.add_note(f"and then: {error}")
    if failure is not None:
        raise failure


async def chain(plan: Plan, arguments: tuple[Any, ...]) -> Any:
    """Let each implementation replace the first argument of the next, and return the last value.

    An answer is checked where it matters: at the end, or when the next implementation fails on it. Either way the one
    that gave it is blamed.
    """
    given = list(arguments)
    source: Implementation | None = None
    for implementation in plan.implementations:
        try:
            answer = implementation.call(*given)
            if answer is not None and (implementation.is_async or inspect.isawaitable(answer)):
                answer = await answer
        except BaseException as error:
            if source is not None and isinstance(error, Exception):
                _check(source, given[0])
            implementation.fail(error)
        if answer is not None:
            given[0], source = answer, implementation
    return given[0] if source is None else _check(source, given[0])


def _check(implementation: Implementation, answer: Any) -> Any:
    try:
        return implementation.check(answer)
    except Exception as error:
        implementation.fail(error)


async def fold(
    plan: Plan,
    state: StateT,
    arguments: Callable[[StateT], tuple[Any, ...]],
    apply: Callable[[StateT, Any], StateT],
) -> StateT:
    """Apply every answer to the state that the next implementation sees.

    :param arguments: makes the arguments of one call from the state.
    :param apply: makes the next state from the last one and an answer that is not ``None``.
    """
    given = arguments(state)
    for implementation in plan.implementations:
        try:
            answer = implementation.call(*given)
            if answer is not None and (implementation.is_async or inspect.isawaitable(answer)):
                answer = await answer
            if answer is not None:
                state = apply(state, implementation.check(answer))
                given = arguments(state)
        except BaseException as error:
            implementation.fail(error)
    return state


async def notify(plan: Plan, arguments: tuple[Any, ...], failures: dict[Implementation, int], report: Report) -> None:
    """Call every implementation; an exception is reported and the others run.

    :param failures: how often each implementation has failed in this run; three switch it off.
    """
    for implementation in plan.implementations:
        if failures and switched_off(implementation, failures):
            continue
        try:
            answer = implementation.call(*arguments)
            if answer is not None and (implementation.is_async or inspect.isawaitable(answer)):
                await answer
        except BaseException as error:
            isolate(implementation, error, failures, report)


def switched_off(implementation: Implementation, failures: dict[Implementation, int]) -> bool:
    """Whether an implementation has failed too often in this run to be called again."""
    return failures.get(implementation, 0) >= FAILURES_BEFORE_OFF


def isolate(
    implementation: Implementation, error: BaseException, failures: dict[Implementation, int], report: Report
) -> None:
    """Count and report what an implementation raised; what is not its own fault comes out."""
    fault = implementation.fault(error)
    failures[implementation] = failures.get(implementation, 0) + 1
    report(implementation.failure(fault, disabled=switched_off(implementation, failures)))


async def guard(
    plan: Plan,
    arguments: tuple[Any, ...],
    apply: Callable[[Any, Any], Any],
    refuse: Callable[[Implementation, Exception], Any],
) -> Any:
    """Ask in order and return the first :class:`Block`, else the first argument as the other answers changed it.

    :param apply: makes the next first argument from the last one and another answer.
    :param refuse: makes of an exception the answer that ends the asking.
    """
    given = list(arguments)
    for implementation in plan.implementations:
        try:
            answer = implementation.call(*given)
            if answer is not None and (implementation.is_async or inspect.isawaitable(answer)):
                answer = await answer
            if answer is not None:
                answer = implementation.check(answer)
                if isinstance(answer, Block):
                    return answer
                given[0] = apply(given[0], answer)
        except BaseException as error:
            return refuse(implementation, implementation.fault(error))
    return given[0]


def call_now(implementation: Implementation, arguments: tuple[Any, ...]) -> Any:
    """Call an implementation of a sync hook.

    :raises TypeError: it gave a coroutine, which nobody would await.
    """
    answer = implementation.call(*arguments)
    if inspect.iscoroutine(answer):
        answer.close()
        raise TypeError("it is async, but the hook is called without await")
    return answer


def register(
    plan: Plan, arguments: tuple[Any, ...] = (), failed: Callable[[HookError], None] | None = None
) -> list[tuple[Owner, Any]]:
    """Return every item of every answer, with its owner.

    :param failed: told about an implementation that raised; without it the exception comes out.
    """
    contributions: list[tuple[Owner, Any]] = []
    for implementation in plan.implementations:
        try:
            answer = call_now(implementation, arguments)
            items: Iterable[Any] = () if answer is None else answer
            given = [(implementation.owner, item) for item in items]
        except (Exception, SystemExit) as error:
            failure = implementation.failed(error)
            if failed is None:
                raise failure from failure.__cause__
            failed(failure)
            continue
        contributions += given
    return contributions
