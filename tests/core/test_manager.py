from __future__ import annotations

import asyncio
import types
from collections.abc import Callable
from typing import Any

import pluggy
import pytest

from pi_core import Hooks, Kind, PluginLoadError, RunContext, TurnStartEvent, hookimpl, hookspec
from pi_core import hookspecs as core
from pi_core._manager import CORE_SPECS, HookManager, plugin_name, read_specs


class Watch:
    """A plugin that observes."""

    def __init__(self, name: str = "watch") -> None:
        self.name = name

    @hookimpl
    def on_turn_start(self, event: TurnStartEvent) -> None:
        """Look."""


def manager(*plugins: Any) -> HookManager:
    made = HookManager()
    made.register_all(plugins)
    return made


def plugin(**functions: Callable[..., Any]) -> Any:
    made = type("Made", (), {name: hookimpl(function) for name, function in functions.items()})()
    made.name = "made"
    return made


# --- what is refused ---


@pytest.mark.parametrize(
    ("hook", "hint"),
    [("on_turn_strat", ", did you mean 'on_turn_start'?"), ("transform_contex", ", did you mean 'transform_context'?")],
)
def test_a_misspelt_hook_names_the_line_and_the_closest_hook(hook: str, hint: str) -> None:
    with pytest.raises(PluginLoadError) as caught:
        manager(plugin(**{hook: lambda self: None}))
    assert f"plugin 'made': there is no hook {hook} at {__file__}:" in str(caught.value)
    assert str(caught.value).endswith(f"{hint} Or the plugin that offers it is missing")


def test_a_hook_like_no_other_gets_no_hint() -> None:
    with pytest.raises(PluginLoadError, match=r"there is no hook zzz at [^,]*; the plugin that offers it is missing$"):
        manager(plugin(zzz=lambda self: None))


def test_an_optional_hook_may_be_unknown() -> None:
    made = types.SimpleNamespace(name="made", hook_of_tomorrow=hookimpl(optionalhook=True)(lambda: None))
    manager(made)


def test_a_plugin_that_marks_nothing_is_refused() -> None:
    class Forgot:
        def on_turn_start(self, event: TurnStartEvent) -> None:
            """Never called, since nothing marks it."""

    with pytest.raises(PluginLoadError, match="plugin 'Forgot': it implements no hook; mark its functions with"):
        manager(Forgot())


def test_a_class_in_place_of_an_instance_is_explained() -> None:
    with pytest.raises(PluginLoadError, match=r"Watch is a class; the plugin is an instance of it: Watch\(\)"):
        manager(Watch)


@pytest.mark.parametrize("hook", ["on_turn_end", "record_message", "before_tool_call"])
def test_a_generator_whose_body_would_never_run_is_refused(hook: str) -> None:
    def generate(self: Any) -> Any:
        yield

    async def generate_async(self: Any) -> Any:
        yield

    for function in (generate, generate_async):
        with pytest.raises(PluginLoadError, match=f"{hook} at .* is a generator, so its body would never run"):
            manager(plugin(**{hook: function}))


def test_one_name_and_one_object_are_registered_once() -> None:
    one = Watch()
    with pytest.raises(PluginLoadError, match="plugin 'watch': another plugin has this name; give one a 'name'"):
        manager(Watch(), Watch())
    made = manager(one)
    with pytest.raises(PluginLoadError, match="plugin 'other': it is registered already, as 'watch'"):
        made.register(one, "other")
    assert [name for name, _ in made.list_name_plugin()] == ["watch"]


def test_the_way_out_is_named_for_what_is_installed() -> None:
    with pytest.raises(PluginLoadError) as caught:
        HookManager().register(plugin(zzz=lambda self: None), "p", distribution="pi-p 1.2")
    error = caught.value
    assert str(error).startswith("plugin 'p' (pi-p 1.2): there is no hook zzz")
    assert str(error).endswith("To run without it: PI_BLOCK=p")
    assert (error.plugin, error.distribution) == ("p", "pi-p 1.2")


def test_a_refused_plugin_leaves_nothing_behind() -> None:
    made = HookManager()
    for bad in (
        plugin(on_turn_start=lambda self: None, zzz=lambda self: None),
        plugin(on_turn_start=lambda self, x: None),
    ):
        with pytest.raises(PluginLoadError):
            made.register(bad)
    assert made.list_name_plugin() == []
    assert made.plan("on_turn_start").implementations == ()


# --- names and order ---


def test_the_name_of_a_plugin_object() -> None:
    module = types.ModuleType("my_module")
    assert [plugin_name(one) for one in (Watch("given"), module, Watch, HookManager())] == [
        "given",
        "my_module",
        "Watch",
        "HookManager",
    ]


def test_a_module_is_a_plugin() -> None:
    module: Any = types.ModuleType("my_module")
    module.on_turn_start = hookimpl(lambda event: None)
    assert manager(module).plan("on_turn_start").implementations[0].owner.plugin == "my_module"
    assert HookManager().register(module, "other") == "other"


def test_one_plugin_may_implement_a_hook_under_another_name() -> None:
    class Two:
        @hookimpl(specname="on_turn_start")
        def first(self) -> None:
            """Look."""

        @hookimpl(specname="on_turn_start", trylast=True)
        def last(self) -> None:
            """Look."""

    found = manager(Two()).plan("on_turn_start").implementations
    assert [one.function.__name__ for one in found] == ["first", "last"]


def test_order_is_that_of_pluggy_among_those_that_try() -> None:
    def named(name: str, **options: Any) -> Any:
        made = type("Made", (), {"on_turn_start": hookimpl(**options)(lambda self: None)})()
        made.name = name
        return made

    plugins = [
        named("a"), named("f1", tryfirst=True), named("l1", trylast=True),
        named("b"), named("f2", tryfirst=True), named("l2", trylast=True),
    ]  # fmt: skip
    made = manager(*plugins)
    order = [one.owner.plugin for one in made.plan("on_turn_start").implementations]
    assert order[:4] == ["f1", "f2", "a", "b"]
    assert order == [one.plugin_name for one in reversed(made.hook.on_turn_start.get_hookimpls())]


def test_wrappers_of_both_kinds_are_ranked_as_pluggy_ranks_those_of_one() -> None:
    def made(kind: str, **given: Any) -> Any:
        def generator(self: Any) -> Any:
            return (yield)

        async def late(self: Any, *, proceed: Any) -> Any:
            return await proceed()

        return hookimpl(wrapper=True, **given)(generator) if kind == "g" else hookimpl(**given)(late)

    options: list[dict[str, Any]] = [{}, {"tryfirst": True}, {"trylast": True}] * 2

    def wrapping(kinds: str) -> list[str]:
        plugins = []
        for number, (kind, given) in enumerate(zip(kinds, options, strict=True)):
            one = type("Made", (), {"on_turn_start": made(kind, **given)})()
            one.name = str(number)
            plugins.append(one)
        return [one.owner.plugin for one in manager(*plugins).plan("on_turn_start").wrappers]

    expected = wrapping("gggggg")
    assert expected[:4] == ["1", "4", "0", "3"]
    assert [wrapping(kinds) for kinds in ("aaaaaa", "agagag", "gagaga")] == [expected] * 3


# --- plans ---


def test_a_plan_is_made_again_when_the_plugins_change() -> None:
    made = HookManager()
    hooks = Hooks(made)
    assert not hooks.has("on_turn_start")
    made.register(one := Watch())
    assert hooks.has("on_turn_start")
    made.unregister(one)
    assert not hooks.has("on_turn_start")
    made.register(one)
    assert hooks.has("on_turn_start")


def test_a_plan_for_one_plugin() -> None:
    made = manager(Watch("a"), Watch("b"))
    assert [one.owner.plugin for one in made.plan("on_turn_start", only="b").implementations] == ["b"]
    assert [one.owner.plugin for one in made.plan("on_turn_start", frozenset("b")).implementations] == ["a"]
    with pytest.raises(KeyError, match="zzz"):
        made.plan("zzz")


def test_two_managers_do_not_see_each_other() -> None:
    manager(Watch())
    assert HookManager().list_name_plugin() == []


# --- hookspecs ---


def test_the_core_s_hooks_are_in_call_order() -> None:
    assert list(HookManager().specs) == list(CORE_SPECS)
    assert list(CORE_SPECS) == [name for name in vars(core) if name in CORE_SPECS]
    assert CORE_SPECS["transform_context"].arguments == ("messages", "ctx")


def test_specs_of_a_class_and_its_bases() -> None:
    class Base:
        @staticmethod
        @hookspec(Kind.NOTIFY)
        def one(value: int) -> None:
            """One."""

    class Derived(Base):
        @hookspec(Kind.FIRST)
        async def two(self, value: int) -> int | None:
            """Two."""

    specs = read_specs(Derived)
    assert {name: spec.arguments for name, spec in specs.items()} == {"one": ("value",), "two": ("value",)}
    made = HookManager()
    made.add_hookspecs(Derived)
    assert {"one", "two"} < made.specs.keys()


def test_a_deprecated_hook_or_argument_warns_when_it_is_implemented() -> None:
    class Old:
        @staticmethod
        @hookspec(Kind.NOTIFY, warn_on_impl=DeprecationWarning("old_hook is gone in 0.3"))
        def old_hook() -> None:
            """Old."""

        @staticmethod
        @hookspec(Kind.NOTIFY, warn_on_impl_args={"old": DeprecationWarning("old is gone in 0.3")})
        def new_hook(new: int, old: int) -> None:
            """New."""

    made = HookManager()
    made.add_hookspecs(Old)
    made.register(plugin(new_hook=lambda self, new: None), "quiet")
    with pytest.warns(DeprecationWarning, match="old_hook is gone in 0.3"):
        made.register(plugin(old_hook=lambda self: None), "a")
    with pytest.warns(DeprecationWarning, match="old is gone in 0.3"):
        made.register(plugin(new_hook=lambda self, old: None), "b")


# --- monitoring ---


def test_monitors_nest_and_end() -> None:
    made = manager(Watch())
    trace: list[str] = []

    def monitor(name: str) -> Callable[[], None]:
        return made.add_hookcall_monitoring(
            lambda hook, found, given: trace.append(f"{name} before {hook}"),
            lambda outcome, hook, found, given: trace.append(f"{name} after {hook}"),
        )

    hooks = Hooks(made)
    asyncio.run(hooks.on_turn_start(TurnStartEvent(), RunContext()))
    stop = monitor("one")
    monitor("two")
    asyncio.run(hooks.on_turn_start(TurnStartEvent(), RunContext()))
    assert trace == [f"{name} {when} on_turn_start" for when in ("before", "after") for name in ("one", "two")]
    trace.clear()
    stop()
    asyncio.run(hooks.on_turn_start(TurnStartEvent(), RunContext()))
    assert trace == ["two before on_turn_start", "two after on_turn_start"]


def test_tracing_of_pluggy_covers_async_hooks() -> None:
    made = manager(Watch())
    lines: list[str] = []
    made.trace.root.setwriter(lines.append)
    undo = made.enable_tracing()
    asyncio.run(Hooks(made).on_turn_start(TurnStartEvent(), RunContext()))
    undo()
    assert any("on_turn_start" in line for line in lines)
    assert any("finish on_turn_start" in line for line in lines)


def test_a_monitor_sees_a_failure_and_may_replace_it() -> None:
    def fail(self: Any) -> None:
        raise ValueError("boom")

    made = manager(plugin(get_api_key=fail))
    seen: list[str] = []

    def after(outcome: pluggy.Result[Any], hook: str, found: Any, given: Any) -> None:
        seen.append(str(outcome.exception))
        outcome.force_result("spare key")

    made.add_hookcall_monitoring(lambda hook, found, given: None, after)
    assert asyncio.run(Hooks(made).get_api_key("p", RunContext())) == "spare key"
    assert seen == ["boom (plugin 'made', hook get_api_key)"]
