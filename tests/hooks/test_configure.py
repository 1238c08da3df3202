from __future__ import annotations

import copy
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from pi_core import Build, HookError, Hooks, PluginLoadError, hookimpl

from .making import holding
from .wrapping import refuses_wrappers


class Limits:
    """A plugin with options."""

    name = "limits"

    class Options(BaseModel):
        model_config = ConfigDict(extra="forbid")

        most: int = 3
        names: list[str] = []

    def __init__(self) -> None:
        self.seen: list[Any] = []

    @hookimpl
    def configure(self, options: Limits.Options) -> None:
        self.seen.append(options)

    @hookimpl
    def register_tools(self) -> list[Any]:
        self.seen.append("tools")
        return []


def build(*plugins: Any, **options: Any) -> Build:
    return Build(list(plugins), only=[], options=options)


def test_each_plugin_gets_its_own_options_once_before_it_contributes() -> None:
    limits, other = Limits(), Limits()
    other.name = "other"
    build(limits, other, limits={"most": 5, "names": ["a"]})
    assert limits.seen == [Limits.Options(most=5, names=["a"]), "tools"]
    assert other.seen == [Limits.Options(), "tools"]


def test_a_plugin_without_a_model_gets_the_mapping_as_a_copy() -> None:
    seen: list[Any] = []

    def configure(self: Any, options: dict[str, Any]) -> None:
        seen.append(copy.deepcopy(options))
        options["names"].clear()
        options.clear()

    given = {"names": ["a"]}
    build(holding("plain", configure=hookimpl(configure)), plain=given)
    assert (seen, given) == ([{"names": ["a"]}], {"names": ["a"]})


def test_options_that_do_not_fit_name_plugin_and_every_key() -> None:
    with pytest.raises(PluginLoadError) as caught:
        build(Limits(), limits={"most": "many", "nmaes": []})
    text = str(caught.value)
    assert "plugin 'limits': its options are not valid" in text
    assert "limits.most: Input should be a valid integer" in text
    assert "limits.nmaes: Extra inputs are not permitted" in text
    assert "Its options: most, names" in text
    with pytest.raises(PluginLoadError, match="its options are to be a table of keys and values, got 3"):
        build(Limits(), limits=3)


def test_options_for_a_plugin_that_takes_none_are_refused() -> None:
    quiet = holding("quiet", register_tools=hookimpl(lambda self: []))
    build(quiet, quiet={})
    with pytest.raises(PluginLoadError, match="plugin 'quiet': it takes no options, but some are given: most"):
        build(quiet, quiet={"most": 3})


@pytest.mark.parametrize("error", [ValueError("boom"), SystemExit("boom")])
def test_an_exception_fails_the_build_and_is_blamed(error: BaseException) -> None:
    def configure(self: Any, options: Any) -> None:
        raise error

    with pytest.raises(HookError, match=r"boom \(plugin 'bad', hook configure\)") as caught:
        build(holding("bad", configure=hookimpl(configure)))
    assert caught.value.__cause__ is error


def test_async_and_wrappers_are_refused() -> None:
    async def late(self: Any, options: Any) -> None:
        return None

    with pytest.raises(PluginLoadError, match=r"configure at .* is async"):
        build(holding("bad", configure=hookimpl(late)))
    with pytest.raises(HookError, match="it is async, but the hook is called without await"):
        build(holding("bad", configure=hookimpl(lambda self, options: late(self, options))))
    refuses_wrappers("configure")


def test_a_plugin_object_of_an_agent_is_not_configured() -> None:
    limits = Limits()
    Hooks.over(limits)
    assert limits.seen == []
    with pytest.raises(TypeError, match="no hook 'configure' that a callable can implement"):
        Hooks(callables={"configure": lambda options: None})
