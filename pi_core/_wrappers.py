"""Wrappers around a hook: pluggy's generator wrappers and async ``proceed`` wrappers, nested in call order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any

from ._dispatch import Combine, Implementation, Plan, Report, isolate, switched_off
from .errors import HookError

Inner = Callable[[tuple[Any, ...]], Awaitable[Any]]


async def around(plan: Plan, arguments: tuple[Any, ...], combine: Combine) -> Any:
    """Call ``combine`` with the arguments inside the plan's wrappers, and let its monitor see the call.

    A generator wrapper sees the answer at its ``yield`` and returns what counts. An async wrapper awaits ``proceed()``,
    which takes changed arguments by name.
    """
    return await _watched(plan, arguments, _Nest(plan, combine).call(0, arguments))


async def around_notify(
    plan: Plan, arguments: tuple[Any, ...], combine: Combine, failures: dict[Implementation, int], report: Report
) -> None:
    """As :func:`around`, for a hook whose failures are isolated: a wrapper that raises is reported and passed over."""
    await _watched(plan, arguments, _Nest(plan, combine).call_isolated(0, arguments, failures, report))


async def _watched(plan: Plan, arguments: tuple[Any, ...], call: Awaitable[Any]) -> Any:
    if plan.monitor is None:
        return await call
    close = plan.monitor(arguments)
    try:
        answer = await call
    except BaseException as error:
        return close(None, error)
    return close(answer, None)


class _Nest:
    """The wrappers of one call, each around the next, and ``combine`` in the middle."""

    __slots__ = ("_combine", "_plan")

    def __init__(self, plan: Plan, combine: Combine) -> None:
        self._plan = plan
        self._combine = combine

    async def call(self, position: int, arguments: tuple[Any, ...]) -> Any:
        if position == len(self._plan.wrappers):
            return await self._combine(self._plan, arguments)
        return await self._wrap(position, arguments, lambda given: self.call(position + 1, given))

    async def call_isolated(
        self, position: int, arguments: tuple[Any, ...], failures: dict[Implementation, int], report: Report
    ) -> None:
        if position == len(self._plan.wrappers):
            await self._combine(self._plan, arguments)
            return
        passed_on = False

        def inner(given: tuple[Any, ...]) -> Awaitable[Any]:
            nonlocal passed_on
            passed_on = True
            return self.call_isolated(position + 1, given, failures, report)

        wrapper = self._plan.wrappers[position]
        if not switched_off(wrapper, failures):
            try:
                await self._wrap(position, arguments, inner)
                return
            except BaseException as error:
                cause = error.__cause__ if isinstance(error, HookError) else None
                isolate(wrapper, cause or error, failures, report)
        if not passed_on:
            await inner(arguments)

    def _wrap(self, position: int, arguments: tuple[Any, ...], inner: Inner) -> Awaitable[Any]:
        wrapper = self._plan.wrappers[position]
        return (self._in_async if wrapper.is_async else self._in_generator)(wrapper, arguments, inner)

    async def _in_async(self, wrapper: Implementation, arguments: tuple[Any, ...], inner: Inner) -> Any:
        from_inside: list[BaseException] = []

        async def proceed(**changes: Any) -> Any:
            given = self._changed(arguments, changes) if changes else arguments
            try:
                return await inner(given)
            except BaseException as error:
                from_inside.append(error)
                raise

        try:
            return wrapper.check(await wrapper.call(*arguments, proceed=proceed))
        except BaseException as error:
            if any(error is known for known in from_inside):
                raise
            wrapper.fail(error)

    def _changed(self, arguments: tuple[Any, ...], changes: dict[str, Any]) -> tuple[Any, ...]:
        names = self._plan.arguments
        for name in changes:
            if name not in names:
                raise TypeError(f"proceed: the hook has no argument '{name}' (it has {', '.join(names)})")
        return tuple(changes.get(name, value) for name, value in zip(names, arguments, strict=True))

    async def _in_generator(self, wrapper: Implementation, arguments: tuple[Any, ...], inner: Inner) -> Any:
        generator = _started(wrapper, arguments)
        answer, error = None, None
        try:
            answer = await inner(arguments)
        except BaseException as raised:
            error = raised
        return _finished(wrapper, generator, answer, error)


def _started(wrapper: Implementation, arguments: tuple[Any, ...]) -> Generator[None, Any, Any]:
    generator: Generator[None, Any, Any] = wrapper.call(*arguments)
    try:
        next(generator)
    except StopIteration:
        wrapper.fail(RuntimeError("the wrapper did not yield"))
    except BaseException as error:
        wrapper.fail(error)
    return generator


def _finished(
    wrapper: Implementation, generator: Generator[None, Any, Any], answer: Any, error: BaseException | None
) -> Any:
    try:
        if error is None:
            generator.send(answer)
        else:
            generator.throw(error)
    except StopIteration as stop:
        given = stop.value
    except BaseException as raised:
        if raised is error:
            raise
        wrapper.fail(raised)
    else:
        generator.close()
        twice = RuntimeError("the wrapper yielded twice")
        twice.__context__ = error
        wrapper.fail(twice)
    if error is not None and not isinstance(error, Exception):
        raise error
    try:
        return wrapper.check(given)
    except TypeError as unusable:
        wrapper.fail(unusable)
