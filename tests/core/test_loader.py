from __future__ import annotations

import dataclasses
import itertools
import logging
import types
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from pi_core import ConfigError, HookError, PluginConflictError, PluginLoadError, Tool, hookimpl
from pi_core._loader import Offer, arrange, installed, load_plugins, normalized


def tool(name: str) -> Tool:
    return Tool(name, "", {"type": "object", "properties": {}}, lambda arguments, context: "ok")


def plugin(*tools: str, **functions: Callable[..., Any]) -> Any:
    """A class whose instances offer tools."""
    functions = {"register_tools": lambda self: [tool(name) for name in tools], **functions}
    return type("Made", (), {name: hookimpl(function) for name, function in functions.items()})


def offer(name: str, made: Any = None, *, distribution: str = "", imported: list[str] | None = None) -> Offer:
    """An installed plugin; ``made`` is what its entry point gives, or the exception it raises."""

    def load() -> Any:
        if imported is not None:
            imported.append(name)
        if isinstance(made, BaseException):
            raise made
        return plugin(f"{name}_tool") if made is None else made

    return Offer(name, f"{name}.plugin:Plugin", distribution or f"pi-{name}", "1.2", load)


def states(loaded: Any) -> dict[str, str]:
    return {record.name: record.state for record in loaded.records}


# --- order ---


def test_plugins_are_called_in_the_order_named_then_by_name() -> None:
    loaded = load_plugins(offers=[offer(name) for name in "dbca"], order=["c", "d"])
    assert [record.name for record in loaded.records] == ["c", "d", "a", "b"]
    assert loaded.registry.tools.names() == ["c_tool", "d_tool", "a_tool", "b_tool"]


def test_only_some_in_their_order() -> None:
    imported: list[str] = []
    loaded = load_plugins(offers=[offer(name, imported=imported) for name in "abcd"], only=["d", "b"])
    assert imported == ["d", "b"]
    assert loaded.registry.tools.names() == ["d_tool", "b_tool"]
    assert states(loaded) == {"d": "loaded", "b": "loaded", "a": "left out", "c": "left out"}
    assert loaded.problems() == []


def test_order_does_not_depend_on_how_they_are_found() -> None:
    offers = [offer("b"), offer("a", distribution="pi-y"), offer("a", distribution="pi-x")]
    for found in itertools.permutations(offers):
        assert [one.distribution for one in arrange(found, [])] == ["pi-x", "pi-y", "pi-b"]
        assert [one.distribution for one in arrange(found, ["b"])] == ["pi-b", "pi-x", "pi-y"]


# --- blocked and left out ---


@pytest.mark.parametrize("name", ["b", "pi-b", "Pi_B", "pi.b"])
def test_what_is_blocked_is_not_imported(name: str) -> None:
    imported: list[str] = []
    loaded = load_plugins(offers=[offer("a", imported=imported), offer("b", imported=imported)], block=[name])
    assert imported == ["a"]
    (blocked,) = [record for record in loaded.records if record.state == "blocked"]
    assert (blocked.name, blocked.reason) == ("b", "blocked by configuration, not imported")
    assert loaded.problems() == []


def test_built_in_only() -> None:
    imported: list[str] = []
    loaded = load_plugins(
        offers=[
            offer("mine", distribution="Pi_Agent.Framework", imported=imported),
            offer("theirs", imported=imported),
        ],
        built_in_only=True,
    )
    assert imported == ["mine"]
    assert states(loaded) == {"mine": "loaded", "theirs": "left out"}


# --- broken ones ---


class Panic(BaseException):
    """Not an Exception, as a panic of a module in another language is."""


@pytest.mark.parametrize("error", [ImportError("no module x"), SystemExit("bye"), Panic("aborted")])
def test_a_plugin_that_does_not_load_is_left_out_and_reported(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "pi"):
        loaded = load_plugins(offers=[offer("a"), offer("bad", error)])
    assert loaded.registry.tools.names() == ["a_tool"]
    assert loaded.problems() == [record.getMessage() for record in caplog.records]
    (problem,) = loaded.problems()
    assert problem == (
        f"plugin 'bad' (pi-bad 1.2) failed to load from bad.plugin:Plugin: {type(error).__name__}: {error}. "
        "To run without it: PI_BLOCK=bad"
    )


def test_an_interruption_while_loading_is_none_of_the_plugin_s() -> None:
    with pytest.raises(KeyboardInterrupt):
        load_plugins(offers=[offer("a", KeyboardInterrupt())])


def boom(*given: Any) -> Any:
    raise ValueError("boom")


async def late(self: Any) -> Any:
    return []


def exit_(*given: Any) -> Any:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (type("Init", (), {"__init__": boom}), "failed to load from bad.plugin:Plugin: ValueError: boom"),
        (plugin(on_turn_strat=lambda self: None), "did you mean 'on_turn_start'?"),
        (plugin(on_turn_start=lambda self, evnt: None), "argument 'evnt' of on_turn_start at"),
        (plugin(register_commands=late), "is async, but the hook is called without await"),
        (plugin(register_hookspecs=lambda self: boom()), "register_hookspecs at"),
        (plugin(configure=lambda self: boom()), "boom (plugin 'bad' (pi-bad 1.2), hook configure)"),
        (plugin(configure=lambda self: exit_()), "3 (plugin 'bad' (pi-bad 1.2), hook configure)"),
        (plugin(register_commands=lambda self: boom()), "boom (plugin 'bad' (pi-bad 1.2), hook register_commands)"),
        (plugin(register_commands=lambda self: exit_()), "3 (plugin 'bad' (pi-bad 1.2), hook register_commands)"),
        (plugin(register_providers=lambda self: ["x"]), "(plugin 'bad' (pi-bad 1.2), hook register_providers)"),
        (type("Nothing", (), {}), "it implements no hook; mark its functions with @hookimpl"),
        (3, "it implements no hook"),
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_a_plugin_that_fails_on_the_way_is_taken_out_whole(
    bad: Any, why: str, strict: bool, caplog: pytest.LogCaptureFixture
) -> None:
    offers = [offer("a"), offer("bad", bad), offer("c")]
    if strict:
        with pytest.raises((PluginLoadError, HookError)) as caught:
            load_plugins(offers=offers, strict=True)
        assert (caught.value.plugin, caught.value.distribution) == ("bad", "pi-bad 1.2")
        assert why in str(caught.value)
        return
    with caplog.at_level(logging.WARNING, "pi"):
        loaded = load_plugins(offers=offers)
    assert loaded.registry.tools.names() == ["a_tool", "c_tool"]
    assert states(loaded) == {"a": "loaded", "bad": "failed", "c": "loaded"}
    (problem,) = loaded.problems()
    assert why in problem
    assert "plugin 'bad' (pi-bad 1.2)" in problem
    assert problem.count("PI_BLOCK=bad") == 1
    assert [owner.plugin for owner, _, _ in loaded.hooks.implementations("register_tools")] == ["a", "c"]
    (said,) = caplog.records
    assert said.exc_info


def test_the_others_are_configured_and_asked_once() -> None:
    calls: list[str] = []

    def configure(self: Any, options: Any) -> None:
        calls.append("configure")

    def register_tools(self: Any) -> list[Tool]:
        calls.append("tools")
        return []

    good = plugin(configure=configure, register_tools=register_tools)
    broken = plugin(register_commands=lambda self: boom())
    load_plugins(offers=[offer("a", good), offer("bad", broken), offer("worse", plugin(configure=lambda self: boom()))])
    assert calls == ["configure", "tools"]


def test_what_a_failing_plugin_gave_before_is_dropped() -> None:
    half = plugin("half", register_commands=lambda self: boom())
    loaded = load_plugins(offers=[offer("a", plugin("half")), offer("bad", half)])
    assert loaded.registry.tools.owner("half") is not None
    assert loaded.conflicts == []


# --- one name, two offers ---


def test_the_second_offer_of_a_name_is_not_imported_and_reported() -> None:
    imported: list[str] = []
    offers = [offer("a", distribution=name, imported=imported) for name in ("pi-one", "pi-two")]
    loaded = load_plugins(offers=offers)
    assert imported == ["a"]
    assert [record.state for record in loaded.records] == ["loaded", "shadowed"]
    (problem,) = loaded.problems()
    assert problem == (
        "plugin 'a' (pi-two 1.2) is not loaded: the name is taken by a.plugin:Plugin from pi-one 1.2. Block one "
        "distribution with PI_BLOCK=pi-two"
    )
    with pytest.raises(PluginLoadError, match="the name is taken by"):
        load_plugins(offers=offers, strict=True)
    assert [record.origin for record in load_plugins(offers=offers, block=["pi-one"]).records if not record.reason] == [
        "pi-two 1.2"
    ]


def test_what_ships_with_the_framework_keeps_its_names() -> None:
    offers = [offer("tools", distribution="aaa"), offer("tools", distribution="pi-agent-framework")]
    loaded = load_plugins(offers=offers)
    assert [(record.origin, record.state) for record in loaded.records] == [
        ("pi-agent-framework 1.2", "loaded"),
        ("aaa 1.2", "shadowed"),
    ]


def test_an_object_beats_an_installed_plugin_of_its_name() -> None:
    mine = plugin("mine")()
    mine.name = "a"
    imported: list[str] = []
    loaded = load_plugins(offers=[offer("a", imported=imported), offer("b")], objects=[mine])
    assert imported == []
    assert loaded.registry.tools.names() == ["mine", "b_tool"]
    assert [(record.name, record.state) for record in loaded.records] == [
        ("a", "loaded"),
        ("a", "shadowed"),
        ("b", "loaded"),
    ]


def test_an_object_that_fails_raises_whatever_strict_says() -> None:
    with pytest.raises(PluginLoadError, match="there is no hook zzz"):
        load_plugins(offers=[], objects=[plugin(zzz=lambda self: None)()])
    with pytest.raises(HookError, match="boom"):
        load_plugins(offers=[], objects=[plugin(register_tools=lambda self: boom())()])
    with pytest.raises(PluginLoadError, match="another plugin has this name"):
        load_plugins(offers=[], objects=[plugin()(), plugin()()])


# --- conflicts and decisions ---


def test_a_conflict_is_reported_or_decided_and_strict_raises() -> None:
    offers = [offer("a", plugin("read", "x")), offer("b", plugin("read"))]
    loaded = load_plugins(offers=offers)
    assert loaded.registry.tools.names() == ["x"]
    (problem,) = loaded.problems()
    assert problem.startswith("tool 'read' is offered by plugin 'a' (pi-a 1.2) and plugin 'b' (pi-b 1.2)")
    with pytest.raises(PluginConflictError):
        load_plugins(offers=offers, strict=True)
    decided = load_plugins(offers=offers, decisions={"read": "b"}, strict=True)
    owner = decided.registry.tools.owner("read")
    assert owner is not None
    assert owner.plugin == "b"
    assert decided.problems() == []


# --- names of nothing ---


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"order": ["zzz"]}, "the order names plugin 'zzz', which is not installed"),
        ({"options": {"zzz": {}}}, "options are given for plugin 'zzz', which is not installed"),
        ({"block": ["zzz"]}, "'zzz' is to be blocked, but no plugin and no distribution of one is called that"),
        ({"decisions": {"read": "a"}}, "'read' is to come from plugin 'a', which offers nothing of that name"),
        ({"decisions": {"a_tool": "zzz"}}, "'a_tool' is to come from plugin 'zzz', which offers nothing of that name"),
    ],
)
def test_a_name_of_nothing_is_a_problem_and_strict_raises(given: dict[str, Any], fault: str) -> None:
    loaded = load_plugins(offers=[offer("a")], **given)
    assert loaded.problems() == [fault]
    assert loaded.registry.tools.names() == ["a_tool"]
    with pytest.raises(ConfigError, match=fault):
        load_plugins(offers=[offer("a")], strict=True, **given)


def test_a_plugin_that_is_wanted_but_not_installed() -> None:
    loaded = load_plugins(offers=[offer("a")], only=["a", "zzz"])
    assert loaded.problems() == ["plugin 'zzz' is not installed. Install the distribution that offers it"]
    assert states(loaded) == {"a": "loaded", "zzz": "failed"}
    with pytest.raises(PluginLoadError, match="plugin 'zzz' is not installed"):
        load_plugins(offers=[offer("a")], only=["a", "zzz"], strict=True)


# --- options ---


class Options(BaseModel):
    path: str


def test_options_that_do_not_fit_leave_the_plugin_out() -> None:
    made = plugin(configure=lambda self, options: None)
    made.Options = Options
    loaded = load_plugins(offers=[offer("a", made)], options={"a": {"path": 3}})
    (problem,) = loaded.problems()
    assert "plugin 'a' (pi-a 1.2): its options are not valid: a.path: Input should be a valid string" in problem
    loaded = load_plugins(offers=[offer("a", made)])
    assert "a.path: Field required" in loaded.problems()[0]


def test_each_build_has_plugin_objects_of_its_own() -> None:
    class Counting:
        @hookimpl
        def register_tools(self) -> list[Tool]:
            return []

    first, second = (load_plugins(offers=[offer("a", Counting)]).records[0].plugin for _ in range(2))
    assert type(first) is type(second) is Counting
    assert first is not second


def test_loading_is_timed_and_records_say_where_from() -> None:
    (record,) = load_plugins(offers=[offer("a")]).records
    assert record.seconds > 0
    assert (record.target, record.origin) == ("a.plugin:Plugin", "pi-a 1.2")
    given = load_plugins(offers=[], objects=[plugin()()]).records[0]
    assert (given.target, given.origin, given.seconds) == (f"{__name__}:Made", "", 0)
    module: Any = types.ModuleType("my_module")
    module.on_turn_start = hookimpl(lambda: None)
    assert load_plugins(offers=[], objects=[module]).records[0].target == "my_module"


@pytest.mark.parametrize("name", ["pi-agent-framework", "Pi_Agent__Framework", "pi.agent-framework"])
def test_names_of_distributions_are_compared_as_the_standards_say(name: str) -> None:
    assert normalized(name) == "pi-agent-framework"
    assert dataclasses.replace(offer("a"), distribution=name).built_in


def test_what_is_installed_is_found_once() -> None:
    assert installed() is installed()
    names = {found.name for found in installed() if found.built_in}
    assert {"models", "modes", "scripted"} <= names


def test_a_distribution_without_metadata_is_no_stumbling_block(site: Any) -> None:
    info = site.folder / "odd-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[pi]\nodd = odd:Plugin\n", encoding="utf-8")
    site.changed()
    (found,) = [one for one in installed() if one.name == "odd"]
    assert (found.distribution, found.version, found.origin, found.built_in) == ("", "", "", False)
    (problem,) = load_plugins(only=["odd"]).problems()
    assert problem.startswith("plugin 'odd' failed to load from odd:Plugin: ModuleNotFoundError")
