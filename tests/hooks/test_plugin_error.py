from __future__ import annotations

from typing import Any

import pytest

from pi_core import Hooks, PluginFailure, PluginLoadError, RunContext, TurnStartEvent, hookimpl

from .making import holding, hooks_of, manager_of, run
from .wrapping import refuses_wrappers

FAILURE = PluginFailure("bad", "pi-bad 1.2", "on_turn_end", ValueError("boom"))


def watching(name: str, trace: list[Any], **options: Any) -> Any:
    return holding(name, plugin_error=hookimpl(**options)(lambda self, failure: trace.append((name, failure))))


def test_every_plugin_is_told_in_call_order() -> None:
    trace: list[Any] = []
    hooks = hooks_of(watching("b", trace), watching("a", trace, tryfirst=True), watching("c", trace))
    hooks.plugin_error(FAILURE)
    assert trace == [("a", FAILURE), ("b", FAILURE), ("c", FAILURE)]
    trace.clear()
    hooks.extended(without=["a", "c"]).plugin_error(FAILURE)
    assert trace == [("b", FAILURE)]


def test_a_callable_is_told_first() -> None:
    trace: list[Any] = []
    hooks = hooks_of(watching("a", trace), callables={"plugin_error": lambda failure: trace.append("own")})
    hooks.plugin_error(FAILURE)
    assert trace == ["own", ("a", FAILURE)]


def test_what_it_raises_is_logged_and_the_others_are_told(caplog: pytest.LogCaptureFixture) -> None:
    def fail(self: Any) -> None:
        raise OSError("full")

    trace: list[Any] = []
    hooks_of(holding("worse", plugin_error=hookimpl(fail)), watching("a", trace)).plugin_error(FAILURE)
    assert trace == [("a", FAILURE)]
    assert "plugin 'worse' (pi-worse 1.2), hook plugin_error: OSError: full" in caplog.text


def test_a_report_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    def fail(self: Any) -> None:
        raise ValueError("boom")

    trace: list[Any] = []
    hooks = hooks_of(holding("bad", on_turn_start=hookimpl(fail)), watching("a", trace))
    run(hooks.on_turn_start(TurnStartEvent(), RunContext()))
    ((_, failure),) = trace
    assert str(failure) == "plugin 'bad' (pi-bad 1.2), hook on_turn_start: ValueError: boom"
    assert str(failure) in caplog.text
    assert "in fail" in caplog.text


def test_a_coroutine_that_nobody_would_await_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def late() -> None:
        return None

    hooks_of(holding("bad", plugin_error=hookimpl(lambda self: late()))).plugin_error(FAILURE)
    assert "plugin 'bad' (pi-bad 1.2), hook plugin_error: TypeError: it is async" in caplog.text


def test_async_callables_and_wrappers_are_refused() -> None:
    async def late(self: Any, failure: PluginFailure) -> None:
        return None

    async def own(failure: PluginFailure) -> None:
        return None

    with pytest.raises(PluginLoadError, match=r"plugin_error at .* is async, but the hook is called without await"):
        hooks_of(holding("bad", plugin_error=hookimpl(late)))
    with pytest.raises(TypeError, match="plugin_error is called without await, but the callable is async"):
        Hooks(callables={"plugin_error": own})
    refuses_wrappers("plugin_error")


def test_an_unknown_argument_is_refused() -> None:
    with pytest.raises(PluginLoadError, match=r"argument 'error' of plugin_error at .* is not one the hook has"):
        hooks_of(holding("bad", plugin_error=hookimpl(lambda self, error: None)))


def test_monitors_see_the_call() -> None:
    manager = manager_of(watching("a", []))
    seen: list[Any] = []
    manager.add_hookcall_monitoring(
        lambda hook, found, given: seen.append((hook, dict(given))), lambda outcome, hook, found, given: None
    )
    Hooks(manager).plugin_error(FAILURE)
    assert seen == [("plugin_error", {"failure": FAILURE})]


def test_nobody_watches() -> None:
    Hooks().plugin_error(FAILURE)
    assert not Hooks().has("plugin_error")
