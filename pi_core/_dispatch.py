"""The driver of hooks: implementations compiled to a plan, and one loop for each way their answers combine.

It works on pluggy's public ``get_hookimpls()`` and awaits each answer before the next implementation is called, so that
first-result, chains and wrappers mean the same for ``def`` and ``async def``.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from .errors import HookError, PluginFailure, describe_owner

log = logging.getLogger("pi")

StateT = TypeVar("StateT")
FAILURES_BEFORE_OFF = 3


@dataclass(frozen=True, slots=True)
class Owner:
    """Who an implementation belongs to."""

    plugin: str
    distribution: str = ""

    def __str__(self) -> str:
        return describe_owner(self.plugin, self.distribution)


@dataclass(frozen=True, slots=True, eq=False)
class Implementation:
    """One implementation of a hook. ``call`` takes the hook's arguments in the order of its signature."""

    hook: str
    owner: Owner
    call: Callable[..., Any]
    is_async: bool
    function: Callable[..., Any]

    def failed(self, error: Exception) -> HookError:
        """Return the exception that names plugin, distribution and hook; its cause is ``error``."""
        if isinstance(error, HookError):
            return error
        failure = HookError(
            f"{error} ({self.owner}, hook {self.hook})" if str(error) else f"{self.owner}, hook {self.hook}",
            plugin=self.owner.plugin,
            distribution=self.owner.distribution,
            hook=self.hook,
        )
        failure.__cause__ = error
        return failure


@dataclass(frozen=True, slots=True)
class Plan:
    """How a hook is called: its implementations in call order, and its wrappers, the outermost first."""

    hook: str
    arguments: tuple[str, ...]
    implementations: tuple[Implementation, ...]
    wrappers: tuple[Implementation, ...]


def bind(
    function: Callable[..., Any], arguments: Sequence[str], wanted: Sequence[str], *, proceed: bool = False
) -> Callable[..., Any]:
    """Return a callable that takes the hook's arguments and passes on those the implementation wants.

    :param proceed: whether a keyword-only ``proceed`` is passed on too.
    """
    if list(wanted) == list(arguments):
        return function
    head = [*arguments, "*", "proceed"] if proceed else arguments
    passed = ", ".join(f"{name}={name}" for name in ([*wanted, "proceed"] if proceed else wanted))
    compiled: Callable[..., Any] = eval(f"lambda {', '.join(head)}: _function({passed})", {"_function": function})
    return compiled


def takes_proceed(function: Callable[..., Any]) -> bool:
    """Whether an implementation is an async wrapper: it has a keyword-only ``proceed``."""
    parameter = inspect.signature(function).parameters.get("proceed")
    return parameter is not None and parameter.kind is parameter.KEYWORD_ONLY


async def _settle(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


async def ask(implementation: Implementation, arguments: tuple[Any, ...]) -> Any:
    """Call one implementation; what it raises comes out as a :class:`~pi_core.errors.HookError`."""
    try:
        answer = implementation.call(*arguments)
        if implementation.is_async:
            return await answer
        return answer if answer is None else await _settle(answer)
    except Exception as error:
        raise implementation.failed(error) from error


async def first(plan: Plan, arguments: tuple[Any, ...], accept: Callable[[Any], bool] | None = None) -> Any:
    """Return the first answer that is not ``None`` (and that ``accept`` takes)."""
    for implementation in plan.implementations:
        answer = await ask(implementation, arguments)
        if answer is not None and (accept is None or accept(answer)):
            return answer
    return None


async def collect(plan: Plan, arguments: tuple[Any, ...]) -> list[tuple[Owner, Any]]:
    """Return every answer that is not ``None``, with its owner."""
    answers = []
    for implementation in plan.implementations:
        answer = await ask(implementation, arguments)
        if answer is not None:
            answers.append((implementation.owner, answer))
    return answers


async def record(plan: Plan, arguments: tuple[Any, ...]) -> None:
    """Call every implementation; the first exception comes out when all were called."""
    failure: HookError | None = None
    for implementation in plan.implementations:
        try:
            await ask(implementation, arguments)
        except HookError as error:
            failure = failure or error
    if failure is not None:
        raise failure


async def chain(
    plan: Plan,
    state: StateT,
    arguments: Callable[[StateT], tuple[Any, ...]],
    fold: Callable[[StateT, Any], StateT],
) -> StateT:
    """Fold every answer into the state that the next implementation sees.

    :param arguments: makes the arguments of one call from the state, with copies of what may be edited.
    :param fold: makes the next state from the last one and an answer that is not ``None``.
    """
    for implementation in plan.implementations:
        try:
            answer = implementation.call(*arguments(state))
            if implementation.is_async or inspect.isawaitable(answer):
                answer = await answer
            if answer is not None:
                state = fold(state, answer)
        except Exception as error:
            raise implementation.failed(error) from error
    return state


async def notify(
    plan: Plan,
    arguments: tuple[Any, ...],
    failures: dict[Implementation, int],
    report: Callable[[PluginFailure], None],
) -> None:
    """Call every implementation; an exception is reported and the others run.

    :param failures: how often each implementation has failed in this run; three switch it off.
    """
    for implementation in plan.implementations:
        if failures and failures.get(implementation, 0) >= FAILURES_BEFORE_OFF:
            continue
        try:
            answer = implementation.call(*arguments)
            if answer is not None and (implementation.is_async or inspect.isawaitable(answer)):
                await answer
        except Exception as error:
            count = failures[implementation] = failures.get(implementation, 0) + 1
            owner = implementation.owner
            failure = PluginFailure(
                owner.plugin, owner.distribution, plan.hook, error, disabled=count >= FAILURES_BEFORE_OFF
            )
            report(failure)


def register(plan: Plan) -> list[tuple[Owner, Any]]:
    """Return every item of every answer, with its owner."""
    contributions: list[tuple[Owner, Any]] = []
    for implementation in plan.implementations:
        try:
            answer = implementation.call()
            items: Iterable[Any] = () if answer is None else answer
            contributions.extend((implementation.owner, item) for item in items)
        except Exception as error:
            raise implementation.failed(error) from error
    return contributions


# --- wrappers -----------------------------------------------------------------------------------------------------


def _start(wrapper: Implementation, arguments: tuple[Any, ...]) -> Generator[None, Any, Any]:
    generator: Generator[None, Any, Any] = wrapper.call(*arguments)
    try:
        next(generator)
    except StopIteration:
        raise wrapper.failed(RuntimeError("the wrapper did not yield")) from None
    except Exception as error:
        raise wrapper.failed(error) from error
    return generator


def _finish(
    wrapper: Implementation, generator: Generator[None, Any, Any], answer: Any, error: BaseException | None
) -> Any:
    try:
        if error is None:
            generator.send(answer)
        else:
            generator.throw(error)
    except StopIteration as stop:
        return stop.value
    except Exception as raised:
        if raised is error:
            raise
        raise wrapper.failed(raised) from raised
    generator.close()
    raise wrapper.failed(RuntimeError("the wrapper yielded twice"))


async def wrapped(plan: Plan, arguments: tuple[Any, ...], inner: Callable[..., Awaitable[Any]]) -> Any:
    """Call ``inner`` with the arguments inside the plan's wrappers.

    A generator wrapper sees the answer at its ``yield`` and returns what counts. An async wrapper awaits ``proceed()``,
    which takes changed arguments by name.
    """
    return await _wrapped_from(0, plan, arguments, inner)


async def _wrapped_from(
    position: int, plan: Plan, arguments: tuple[Any, ...], inner: Callable[..., Awaitable[Any]]
) -> Any:
    if position == len(plan.wrappers):
        return await inner(*arguments)
    wrapper = plan.wrappers[position]
    if not wrapper.is_async:
        generator = _start(wrapper, arguments)
        answer, raised = None, None
        try:
            answer = await _wrapped_from(position + 1, plan, arguments, inner)
        except BaseException as error:
            raised = error
        return _finish(wrapper, generator, answer, raised)

    inside: BaseException | None = None

    async def proceed(**changes: Any) -> Any:
        nonlocal inside
        changed = arguments
        if changes:
            unknown = set(changes) - set(plan.arguments)
            if unknown:
                raise TypeError(f"proceed: hook {plan.hook} has no argument {sorted(unknown)[0]!r}")
            changed = tuple(changes.get(name, value) for name, value in zip(plan.arguments, arguments, strict=True))
        try:
            return await _wrapped_from(position + 1, plan, changed, inner)
        except BaseException as error:
            inside = error
            raise

    try:
        return await wrapper.call(*arguments, proceed=proceed)
    except Exception as error:
        if error is inside:
            raise
        raise wrapper.failed(error) from error
