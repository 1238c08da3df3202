from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from pi_core import Hooks, Kind, PluginLoadError, hookimpl, hookspec
from pi_core._manager import HookManager

from .making import holding, run


class Weather:
    @staticmethod
    @hookspec(Kind.CHAIN)
    async def transform_forecast(forecast: list[str], place: str) -> list[str] | None:
        """Called with a forecast."""


class Tides:
    @staticmethod
    @hookspec(Kind.NOTIFY)
    async def on_high_tide(place: str) -> None:
        """Called at high tide."""


def offering(name: str, *holders: Any) -> Any:
    return holding(name, register_hookspecs=hookimpl(lambda self: holders))


def test_a_plugin_offers_hooks_that_others_implement_whatever_their_order() -> None:
    def transform_forecast(self: Any, forecast: list[str]) -> list[str]:
        return [*forecast, "sun"]

    user = holding("user", transform_forecast=hookimpl(transform_forecast))
    for plugins in ([user, offering("weather", Weather)], [offering("weather", Weather), user]):
        hooks = Hooks.over(*plugins)
        assert run(hooks.call("transform_forecast", forecast=["rain"], place="here")) == ["rain", "sun"]
        name, arguments, contract = hooks.specifications()[-1]
        assert (name, arguments, contract.kind) == ("transform_forecast", ("forecast", "place"), Kind.CHAIN)


def test_two_plugins_offer_different_hooks() -> None:
    hooks = Hooks.over(offering("weather", Weather), offering("tides", Tides))
    names = ("transform_forecast", "on_high_tide", "stream")
    assert [hooks.offered_by(name) for name in names] == ["weather", "tides", ""]
    assert {"transform_forecast", "on_high_tide"} < {name for name, _, _ in hooks.specifications()}


def test_the_hooks_of_one_manager_are_not_those_of_another() -> None:
    Hooks.over(offering("weather", Weather))
    assert "transform_forecast" not in {name for name, _, _ in Hooks().specifications()}


def test_it_may_be_written_under_another_name() -> None:
    def mine(self: Any) -> Iterable[Any]:
        return [Weather]

    hooks = Hooks.over(holding("weather", mine=hookimpl(specname="register_hookspecs")(mine)))
    assert "transform_forecast" in {name for name, _, _ in hooks.specifications()}


class TakesACoreName:
    @staticmethod
    @hookspec(Kind.NOTIFY)
    def on_turn_end() -> None:
        """A hook of the core's name."""


class WithoutContract:
    import pluggy

    @staticmethod
    @pluggy.HookspecMarker("pi")
    def bare() -> None:
        """A hook marked by pluggy's own marker."""


class Empty:
    pass


@pytest.mark.parametrize(
    ("holder", "why"),
    [
        (TakesACoreName, "on_turn_end"),
        (WithoutContract, "hook bare has no contract: mark it with pi_core.hookspec"),
        (Empty, "did not find any"),
    ],
)
def test_what_cannot_be_offered_is_blamed(holder: Any, why: str) -> None:
    with pytest.raises(PluginLoadError, match=why) as caught:
        HookManager().add_offered(offering("bad", holder), "bad", "pi-bad 1.2")
    assert (caught.value.plugin, caught.value.distribution) == ("bad", "pi-bad 1.2")
    assert "register_hookspecs at " in str(caught.value)
    assert "PI_BLOCK=bad" in str(caught.value)


@pytest.mark.parametrize("error", [ValueError("boom"), SystemExit("boom")])
def test_a_plugin_that_raises_is_blamed(error: BaseException) -> None:
    def fail(self: Any) -> Any:
        raise error

    with pytest.raises(PluginLoadError, match=f"{type(error).__name__}: boom") as caught:
        Hooks.over(holding("bad", register_hookspecs=hookimpl(fail)))
    assert caught.value.__cause__ is error


def test_async_is_refused_before_it_is_called() -> None:
    async def late(self: Any) -> Any:
        return [Weather]

    with pytest.raises(PluginLoadError, match="is async, but the hook is called without await"):
        Hooks.over(holding("bad", register_hookspecs=hookimpl(late)))


def test_a_hook_that_nobody_offers_is_unknown() -> None:
    user = holding("user", transform_forecast=hookimpl(lambda self, forecast: None))
    with pytest.raises(PluginLoadError, match="there is no hook transform_forecast"):
        Hooks.over(user)
    Hooks.over(holding("user", transform_forecast=hookimpl(optionalhook=True)(lambda self, forecast: None)))
