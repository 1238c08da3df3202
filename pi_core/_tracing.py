"""Watching single implementations: what each was given, what it answered, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ._dispatch import Implementation, Owner, Plan
from ._log import log


@dataclass(slots=True)
class HookTrace:
    """One call of one implementation of a hook.

    :param arguments: what it was given, by name; a tracer must not change it.
    :param answer: what it returned; ``None`` when it raised.
    :param error: what it raised.
    :param began: when it was called, seconds of :func:`time.perf_counter`.
    :param seconds: how long it took; for a wrapper with everything it wraps.
    :param wrapper: whether it wraps the hook.
    """

    hook: str
    owner: Owner
    function: str
    arguments: Mapping[str, Any]
    answer: Any
    error: BaseException | None
    began: float
    seconds: float
    wrapper: bool


Tracer: TypeAlias = Callable[[HookTrace], None]
"""Called after each call of an implementation of a hook. One that raises is logged and not called again."""


def traced(plan: Plan, tracers: list[Tracer]) -> Plan:
    """Return the plan with every call of an implementation told to the tracers.

    :param tracers: those of the moment; one that raises is taken out.
    """
    return replace(
        plan,
        implementations=tuple(_watched(plan, found, tracers, wrapper=False) for found in plan.implementations),
        wrappers=tuple(_watched(plan, found, tracers, wrapper=True) for found in plan.wrappers),
    )


def _watched(plan: Plan, found: Implementation, tracers: list[Tracer], *, wrapper: bool) -> Implementation:
    name = getattr(found.function, "__qualname__", repr(found.function))

    def tell(began: float, given: tuple[Any, ...], answer: Any, error: BaseException | None) -> None:
        seconds = time.perf_counter() - began
        arguments = dict(zip(plan.arguments, given, strict=False))
        for tracer in list(tracers):
            try:
                tracer(HookTrace(plan.hook, found.owner, name, arguments, answer, error, began, seconds, wrapper))
            except Exception as failure:
                # Neither the plugin nor the run has failed.
                tracers.remove(tracer)
                log().error("a tracer of hooks failed and is not called again: %s", failure, exc_info=failure)

    async def call_async(*given: Any, **named: Any) -> Any:
        began = time.perf_counter()
        try:
            answer = await found.call(*given, **named)
        except BaseException as error:
            tell(began, given, None, error)
            raise
        tell(began, given, answer, None)
        return answer

    def call_generator(*given: Any) -> Generator[None, Any, Any]:
        began = time.perf_counter()
        try:
            answer = yield from found.call(*given)
        except BaseException as error:
            tell(began, given, None, error)
            raise
        tell(began, given, answer, None)
        return answer

    def call(*given: Any) -> Any:
        began = time.perf_counter()
        try:
            answer = found.call(*given)
        except BaseException as error:
            tell(began, given, None, error)
            raise
        tell(began, given, answer, None)
        return answer

    return replace(found, call=call_async if found.is_async else call_generator if wrapper else call)
