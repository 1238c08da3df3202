"""Plugins made for a test: one implementation of one hook, in each way it can be written."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from pi_core import Hooks, hookimpl
from pi_core._manager import CORE_SPECS, HookManager

T = TypeVar("T")
React = Callable[[dict[str, Any]], Any]
STYLES = ("async def", "def", "def that returns an awaitable")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run in an event loop of its own, and check that nothing is left running."""

    async def main() -> T:
        try:
            return await asyncio.wait_for(coroutine, 20)
        finally:
            assert asyncio.all_tasks() == {asyncio.current_task()}

    return asyncio.run(main())


def implementation(hook: str, react: React, *, style: str, names: Iterable[str] | None = None) -> Callable[..., Any]:
    """Return a function that takes some arguments of a hook and answers what ``react`` makes of them.

    :param names: the arguments it takes, all by default; ``name=default`` works too.
    """
    taken = list(CORE_SPECS[hook].arguments if names is None else names)
    given = ", ".join(f"{name!r}: {name}" for name in (name.partition("=")[0] for name in taken))
    before, after = {
        "async def": ("async def", "return await later(react, {%s})"),
        "def": ("def", "return react({%s})"),
        "def that returns an awaitable": ("def", "return later(react, {%s})"),
    }[style]
    source = f"{before} {hook}({', '.join(['self', *taken])}):\n    {after % given}"
    namespace: dict[str, Any] = {"react": react, "later": _later}
    exec(source, namespace)
    function: Callable[..., Any] = namespace[hook]
    return function


async def _later(react: React, given: dict[str, Any]) -> Any:
    await asyncio.sleep(0)
    answer = react(given)
    return await answer if asyncio.iscoroutine(answer) else answer


def plugin(hook: str, name: str, react: React, *, style: str = "async def", **options: Any) -> Any:
    """Return a plugin of a name; ``names`` are the arguments it takes, further options are those of ``hookimpl``."""
    function = implementation(hook, react, style=style, names=options.pop("names", None))
    return holding(name, **{hook: hookimpl(**options)(function)})


def answering(answer: Any) -> React:
    """Return a reaction that gives an answer."""
    return lambda given: answer


def holding(name: str, **functions: Callable[..., Any]) -> Any:
    """Return a plugin of a name with some methods."""
    made = type(name.title(), (), functions)()
    made.name = name
    return made


def async_wrapper(hook: str, name: str, body: Callable[[dict[str, Any], Any], Awaitable[Any]], **options: Any) -> Any:
    """Return a plugin that wraps a hook: ``body(arguments, proceed)``."""
    taken = CORE_SPECS[hook].arguments
    given = ", ".join(f"{argument!r}: {argument}" for argument in taken)
    source = (
        f"async def {hook}({', '.join(['self', *taken])}, *, proceed):\n    return await body({{{given}}}, proceed)"
    )
    namespace: dict[str, Any] = {"body": body}
    exec(source, namespace)
    return holding(name, **{hook: hookimpl(**options)(namespace[hook])})


Body = Callable[[dict[str, Any]], Generator[None, Any, Any]]


def wrapper(kind: str, hook: str, name: str, body: Body, **options: Any) -> Any:
    """Return a plugin that wraps a hook, as a generator or as an async wrapper that does what the generator would do.

    :param body: yields once, where the answer comes, and returns what counts.
    """
    if kind == "generator":
        taken = CORE_SPECS[hook].arguments
        given = ", ".join(f"{argument!r}: {argument}" for argument in taken)
        source = f"def {hook}({', '.join(['self', *taken])}):\n    return (yield from body({{{given}}}))"
        namespace: dict[str, Any] = {"body": body}
        exec(source, namespace)
        return holding(name, **{hook: hookimpl(wrapper=True, **options)(namespace[hook])})

    async def drive(arguments: dict[str, Any], proceed: Callable[[], Awaitable[Any]]) -> Any:
        generator = body(arguments)
        next(generator)
        try:
            answer = await proceed()
        except BaseException as error:
            step: Callable[[], object] = partial(generator.throw, error)
        else:
            step = partial(generator.send, answer)
        try:
            step()
        except StopIteration as stop:
            return stop.value

    return async_wrapper(hook, name, drive, **options)


def hooks_of(*plugins: Any, callables: Mapping[str, Callable[..., Any]] | None = None) -> Hooks:
    """Return a facade over plugins, the first called first, each from a distribution ``pi-NAME 1.2``."""
    return Hooks(manager_of(*plugins), callables)


def manager_of(*plugins: Any) -> HookManager:
    manager = HookManager()
    for one in reversed(plugins):
        manager.register(one, one.name, distribution=f"pi-{one.name} 1.2")
    return manager
