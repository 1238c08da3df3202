"""The parts of the driver; what the kinds mean is tested per hook, in ``tests/hooks``."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from pi_core._dispatch import Implementation, Owner, bind, takes_proceed
from pi_core.errors import HookError

NAMES = ("one", "two", "ctx")


def given(**arguments: Any) -> dict[str, Any]:
    return arguments


def test_a_function_that_takes_everything_in_order_is_called_as_it_is() -> None:
    def function(one: int, two: int, ctx: int) -> None:
        """Do nothing."""

    assert bind(function, NAMES, NAMES) is function


@pytest.mark.parametrize("wanted", [(), ("two",), ("ctx", "one"), ("ctx", "two", "one")])
def test_arguments_go_where_they_belong(wanted: tuple[str, ...]) -> None:
    function = eval(f"lambda {', '.join(wanted)}: ({', '.join(wanted)},)") if wanted else lambda: ()
    assert bind(function, NAMES, wanted)(1, 2, 3) == tuple({"one": 1, "two": 2, "ctx": 3}[name] for name in wanted)


def test_arguments_by_name_leave_others_at_their_default() -> None:
    def function(one: int, limit: int = 5, *, ctx: int = 0) -> tuple[int, int, int]:
        return one, limit, ctx

    assert bind(function, NAMES, ["one"], ["ctx"])(1, 2, 3) == (1, 5, 3)


def test_only_the_named_arguments_are_copied() -> None:
    values, data = [1], {"a": [1]}
    one, two, ctx = bind(lambda one, two, ctx: (one, two, ctx), NAMES, NAMES, copies=["one", "two"])(
        values, data, values
    )
    assert (one, two) == (values, data)
    assert one is not values
    assert two is not data
    assert two["a"] is not data["a"]
    assert ctx is values


def test_proceed_is_passed_on() -> None:
    async def wrap(ctx: int, *, proceed: int) -> tuple[int, int]:
        return ctx, proceed

    assert takes_proceed(wrap)
    assert not takes_proceed(lambda proceed: proceed)
    assert asyncio.run(bind(wrap, NAMES, ["ctx"], proceed=True)(1, 2, 3, proceed=4)) == (3, 4)


def test_a_failure_is_named_once_and_keeps_its_cause() -> None:
    owner = Owner("p", "pi-p 1.2")
    error = ValueError("boom")
    failure = owner.failed("on_turn_end", error)
    assert str(failure) == "boom (plugin 'p' (pi-p 1.2), hook on_turn_end)"
    assert failure.__cause__ is error
    assert Owner("q").failed("other", failure) is failure
    assert str(owner.failed("on_turn_end", TimeoutError())).startswith("TimeoutError (plugin 'p'")


def test_what_is_not_the_plugin_s_fault_comes_out() -> None:
    made = Implementation("h", Owner("p"), lambda: None, False, lambda: None)
    for error in (KeyboardInterrupt(), SystemExit(3), GeneratorExit()):
        with pytest.raises(type(error)) as caught:
            made.fail(error)
        assert caught.value is error

    async def cancelled() -> None:
        task = asyncio.current_task()
        assert task is not None
        with pytest.raises(HookError, match="what it waited for was cancelled"):
            made.fail(asyncio.CancelledError())
        task.cancel()
        error = asyncio.CancelledError()
        with pytest.raises(asyncio.CancelledError) as caught:
            made.fail(error)
        assert caught.value is error
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(0)
        task.uncancel()

    asyncio.run(cancelled())


def test_the_log_is_silent_until_it_is_configured() -> None:
    code = "import pi_core; pi_core.Hooks().report(pi_core.PluginFailure('p', '', 'h', ValueError('boom')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
