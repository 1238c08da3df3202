"""Hooks that plugins offer, called by name: every kind means for them what it means for the core's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pi_core import Block, HookError, Hooks, Kind, OnError, PluginFailure, RunContext, hookimpl, hookspec

from .making import holding, run
from .test_register_hookspecs import offering


class Offered:
    @staticmethod
    @hookspec(Kind.CHAIN)
    async def change(values: list[int], ctx: RunContext) -> list[int] | None:
        """A chain."""

    @staticmethod
    @hookspec(Kind.NOTIFY)
    async def seen(value: int, ctx: RunContext) -> None:
        """A notification."""

    @staticmethod
    @hookspec(Kind.NOTIFY, on_error=OnError.LOG)
    async def logged(value: int) -> None:
        """A notification whose failures are only logged."""

    @staticmethod
    @hookspec(Kind.NOTIFY, on_error=OnError.FAIL_RUN)
    async def heeded(value: int) -> None:
        """A notification whose failures come out."""

    @staticmethod
    @hookspec(Kind.RECORD)
    async def kept(value: int) -> None:
        """A record."""

    @staticmethod
    @hookspec(Kind.FIRST)
    async def found(name: str) -> str | None:
        """The first."""

    @staticmethod
    @hookspec(Kind.COLLECT)
    async def gathered() -> str | None:
        """All."""

    @staticmethod
    @hookspec(Kind.GUARD)
    async def allowed(action: str) -> Block | None:
        """A guard."""

    @staticmethod
    @hookspec(Kind.REGISTER)
    def parts(size: int) -> list[str]:  # type: ignore[empty-body]
        """Contributions."""


def hooks_with(*plugins: dict[str, Any]) -> Hooks:
    named = [
        holding(f"p{number}", **{name: hookimpl(function) for name, function in functions.items()})
        for number, functions in enumerate(plugins)
    ]
    return Hooks.over(offering("offers", Offered), *named)


def boom(*given: Any) -> Any:
    raise ValueError("boom")


def test_chain() -> None:
    def edit(self: Any, values: list[int]) -> None:
        values.clear()

    async def more(self: Any, values: list[int]) -> list[int]:
        return [*values, len(values)]

    hooks = hooks_with({"change": edit}, {"change": more}, {"change": more})
    given = [7]
    assert run(hooks.call("change", values=given, ctx=RunContext())) == [7, 1, 2]
    assert given == [7]
    assert run(hooks_with().call("change", values=given, ctx=RunContext())) is given


def test_notify_isolates_and_switches_off_for_the_run() -> None:
    reports: list[PluginFailure] = []
    trace: list[int] = []
    watch = {"plugin_error": lambda self, failure: reports.append(failure)}
    hooks = hooks_with({"seen": lambda self, value: boom()}, {"seen": lambda self, value: trace.append(value)}, watch)
    ctx = RunContext()
    for value in range(5):
        assert run(hooks.call("seen", value=value, ctx=ctx)) is None
    assert trace == [0, 1, 2, 3, 4]
    assert [one.disabled for one in reports] == [False, False, True]
    run(hooks.call("seen", value=9, ctx=RunContext()))
    assert len(reports) == 4


def test_notify_that_logs(caplog: pytest.LogCaptureFixture) -> None:
    reports: list[PluginFailure] = []
    watch = {"plugin_error": lambda self, failure: reports.append(failure)}
    assert run(hooks_with({"logged": lambda self: boom()}, watch).call("logged", value=1)) is None
    assert reports == []
    assert "plugin 'p0', hook logged: ValueError: boom" in caplog.text


@pytest.mark.parametrize("hook", ["heeded", "kept"])
def test_failures_that_come_out_when_all_were_called(hook: str) -> None:
    trace: list[int] = []
    hooks = hooks_with({hook: lambda self, value: boom()}, {hook: lambda self, value: trace.append(value)})
    with pytest.raises(HookError, match="boom") as caught:
        run(hooks.call(hook, value=1))
    assert (caught.value.plugin, caught.value.hook) == ("p0", hook)
    assert trace == [1]


def test_first() -> None:
    async def nobody(self: Any, name: str) -> None:
        return None

    hooks = hooks_with({"found": nobody}, {"found": lambda self, name: name.upper()}, {"found": lambda self: boom()})
    assert run(hooks.call("found", name="x")) == "X"
    assert run(hooks_with().call("found", name="x")) is None


def test_collect() -> None:
    hooks = hooks_with({"gathered": lambda self: "a"}, {"gathered": lambda self: None}, {"gathered": lambda self: "b"})
    assert [(owner.plugin, value) for owner, value in run(hooks.call("gathered"))] == [("p0", "a"), ("p2", "b")]
    assert run(hooks_with().call("gathered")) == []


def test_guard() -> None:
    reports: list[PluginFailure] = []
    watch = {"plugin_error": lambda self, failure: reports.append(failure)}
    trace: list[str] = []
    asks = {"allowed": lambda self, action: trace.append(action)}
    assert run(hooks_with(asks, asks).call("allowed", action="go")) is None
    assert trace == ["go", "go"]
    assert run(hooks_with({"allowed": lambda self: Block("no")}, asks).call("allowed", action="x")) == Block("no")
    assert trace == ["go", "go"]
    blocked = run(hooks_with({"allowed": lambda self: boom()}, watch).call("allowed", action="x"))
    assert blocked == Block("boom (plugin 'p0', hook allowed)")
    assert [str(one.error) for one in reports] == ["boom"]
    blocked = run(hooks_with({"allowed": lambda self: True}).call("allowed", action="x"))
    assert "expected Block or None, got bool" in blocked.reason


def test_register_takes_arguments() -> None:
    hooks = hooks_with({"parts": lambda self, size: ["x"] * size}, {"parts": lambda self: None})
    assert [(owner.plugin, part) for owner, part in run(hooks.call("parts", size=2))] == [("p0", "x"), ("p0", "x")]


def test_a_callable_implements_an_offered_hook() -> None:
    hooks = hooks_with({"found": lambda self, name: "plugin"}).extended({"found": lambda name: f"own {name}"})
    assert run(hooks.call("found", name="x")) == "own x"


def test_a_hook_of_the_core_can_be_called_by_name() -> None:
    hooks = Hooks(callables={"get_api_key": lambda provider: f"key of {provider}"})
    assert run(hooks.call("get_api_key", provider="p", ctx=RunContext())) == "key of p"


def test_wrong_calls_say_what_is_wrong() -> None:
    hooks = hooks_with()
    with pytest.raises(KeyError, match="nope"):
        run(hooks.call("nope"))
    with pytest.raises(KeyError, match="change"):
        run(Hooks().call("change", values=[], ctx=RunContext()))
    with pytest.raises(TypeError, match="hook found takes name, got nothing"):
        run(hooks.call("found"))
    with pytest.raises(TypeError, match="hook gathered takes nothing, got x"):
        run(hooks.call("gathered", x=1))


def test_a_cancellation_passes() -> None:
    async def wait(self: Any, action: str) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        hooks = hooks_with({"allowed": wait})
        task = asyncio.ensure_future(hooks.call("allowed", action="x"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())


def test_an_exception_cannot_do_what_the_kind_does_not_allow() -> None:
    with pytest.raises(ValueError, match="an exception in a chain hook cannot be ISOLATE, only FAIL_RUN"):
        hookspec(Kind.CHAIN, on_error=OnError.ISOLATE)
    with pytest.raises(ValueError, match="an exception in a guard hook cannot be LOG, only BLOCK"):
        hookspec(Kind.GUARD, on_error=OnError.LOG)
