"""The facade: who takes part, and what it says about it. What the hooks do is tested per hook, in ``tests/hooks``."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pi_core import HookError, Hooks, HookTrace, RunContext, TurnStartEvent, hookimpl
from pi_core._manager import CORE_SPECS, HookManager


class Watch:
    """A plugin that observes."""

    def __init__(self, name: str) -> None:
        self.name = name

    @hookimpl
    def on_turn_start(self) -> None:
        """Look."""


def test_leaving_out_a_plugin_that_is_not_there() -> None:
    hooks = Hooks.over(Watch("a"), Watch("b"))
    for made in (hooks, hooks.extended(without=["a"])):
        with pytest.raises(ValueError, match=r"there is no plugin 'zzz' to leave out \(plugins here: a, b\)"):
            made.extended(without=["b", "zzz"])
    with pytest.raises(ValueError, match=r"there is no plugin 'a' to leave out \(plugins here: none\)"):
        Hooks(without=["a"])


def test_who_implements_what() -> None:
    hooks = Hooks.over(Watch("a"), callables={"get_api_key": lambda: "key"})
    assert hooks.implemented() == {"on_turn_start", "get_api_key"}
    assert hooks.has("on_turn_start")
    assert not hooks.has("on_turn_end")
    assert [owner.plugin for owner, _, _ in hooks.implementations("on_turn_start")] == ["a"]
    assert hooks.implementations("on_turn_end") == []
    assert Hooks().implemented() == frozenset()


def test_the_hooks_there_are() -> None:
    assert [(name, arguments) for name, arguments, _ in Hooks().specifications()] == [
        (name, spec.arguments) for name, spec in CORE_SPECS.items()
    ]


def test_a_contribution_that_fails_comes_out_or_is_told() -> None:
    class Bad:
        @hookimpl
        def register_tools(self) -> Any:
            raise ValueError("boom")

    class Good:
        @hookimpl
        def register_tools(self) -> Any:
            return ["tool"]

    hooks = Hooks.over(Bad(), Good())
    with pytest.raises(HookError, match=r"boom \(plugin 'Bad', hook register_tools\)"):
        hooks.contributions("register_tools")
    failed: list[HookError] = []
    assert [value for _, value in hooks.contributions("register_tools", failed.append)] == ["tool"]
    assert [error.plugin for error in failed] == ["Bad"]


def test_a_tracer_that_raises_is_logged_and_dropped_and_the_hook_is_not_touched(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hooks = Hooks.over(Watch("a"), callables={"get_api_key": lambda: "key"})
    broken: list[HookTrace] = []
    seen: list[str] = []

    def tracer(trace: HookTrace) -> None:
        broken.append(trace)
        raise OSError("no space left")

    end = hooks.trace(tracer)
    hooks.trace(lambda trace: seen.append(trace.hook))
    ctx = RunContext()

    async def calls() -> list[str | None]:
        await hooks.on_turn_start(TurnStartEvent(), ctx)
        return [await hooks.get_api_key("scripted", ctx) for _ in range(2)]

    assert asyncio.run(calls()) == ["key", "key"]
    assert [trace.hook for trace in broken] == ["on_turn_start"]
    assert seen == ["on_turn_start", "get_api_key", "get_api_key"]
    assert ctx.failures == {}
    assert "a tracer of hooks failed and is not called again: no space left" in caplog.text
    end()


def test_a_facade_follows_its_manager() -> None:
    manager = HookManager()
    hooks = Hooks(manager)
    fewer = hooks.extended()
    assert hooks.implemented() == fewer.implemented() == frozenset()
    manager.register(Watch("a"))
    assert hooks.implemented() == fewer.implemented() == {"on_turn_start"}
