"""What holds for the hooks that contribute at build time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from pi_core import HookError, Hooks, PluginConflictError, PluginError, PluginLoadError, hookimpl
from pi_core._registry import Contributions, collect_contributions

from .making import holding, hooks_of, manager_of
from .wrapping import refuses_wrappers


class RegisterHook:
    """Tests of a register hook. ``contribution`` makes one of a name, ``wrong`` is what it may not give."""

    hook: ClassVar[str]
    kind: ClassVar[str]
    wrong: ClassVar[tuple[Any, ...]]

    def contribution(self, name: str) -> Any:
        raise AssertionError

    def offers(self, name: str, *contributions: Any) -> Any:
        return holding(name, **{self.hook: hookimpl(lambda self: contributions)})

    def registered(self, *plugins: Any, failed: list[PluginError] | None = None) -> Contributions[Any]:
        registry = collect_contributions(hooks_of(*plugins), None if failed is None else failed.append)
        contributions: Contributions[Any] = getattr(registry, self.hook.removeprefix("register_"))
        return contributions

    def test_contributions_keep_their_owner_and_the_order_of_the_plugins(self) -> None:
        one, two, three = map(self.contribution, ("one", "two", "three"))
        hooks = hooks_of(self.offers("b", two, one), self.offers("a", three))
        found = hooks.contributions(self.hook)
        assert [(str(owner), value) for owner, value in found] == [
            ("plugin 'b' (pi-b 1.2)", two),
            ("plugin 'b' (pi-b 1.2)", one),
            ("plugin 'a' (pi-a 1.2)", three),
        ]
        assert self.registered(self.offers("b", two, one), self.offers("a", three)).names() == ["two", "one", "three"]

    def test_none_and_generators_are_answers(self) -> None:
        made = self.contribution("one")

        def generate(self: Any) -> Iterator[Any]:
            yield made

        nothing = holding("n", **{self.hook: hookimpl(lambda self: None)})
        contributions = self.registered(nothing, holding("g", **{self.hook: hookimpl(generate)}))
        assert list(contributions.items()) == [("one", made)]
        assert Hooks().contributions(self.hook) == []

    def test_two_owners_of_a_name_both_lose_it(self) -> None:
        plugins = [self.offers("a", self.contribution("one")), self.offers("b", mine := self.contribution("one"))]
        with pytest.raises(PluginConflictError) as caught:
            self.registered(*plugins)
        assert f"{self.kind} 'one' is offered by plugin 'a' (pi-a 1.2) and plugin 'b' (pi-b 1.2)" in str(caught.value)
        assert caught.value.owners == ("a", "b")
        failed: list[PluginError] = []
        contributions = self.registered(*plugins, failed=failed)
        assert (failed, contributions.names(), contributions.get("one")) == ([], [], None)
        assert contributions.get("b/one") is mine

    @pytest.mark.parametrize("error", [ValueError("boom"), SystemExit("boom")])
    def test_an_exception_is_blamed_and_the_others_stay(self, error: BaseException) -> None:
        def fail(self: Any) -> Any:
            raise error

        def fails_later(self: Any) -> Iterator[Any]:
            yield "never seen"
            raise error

        for function in (fail, fails_later):
            plugins = [holding("bad", **{self.hook: hookimpl(function)}), self.offers("a", self.contribution("one"))]
            with pytest.raises(HookError) as caught:
                self.registered(*plugins)
            assert str(caught.value) == f"boom (plugin 'bad' (pi-bad 1.2), hook {self.hook})"
            assert caught.value.__cause__ is error
            failed: list[PluginError] = []
            assert self.registered(*plugins, failed=failed).names() == ["one"]
            assert [one.plugin for one in failed] == ["bad"]

    def test_what_is_no_contribution_is_blamed_and_nothing_of_the_plugin_is_kept(self) -> None:
        for wrong in self.wrong:
            failed: list[PluginError] = []
            bad = self.offers("bad", self.contribution("mine"), wrong)
            assert self.registered(bad, self.offers("a", self.contribution("one")), failed=failed).names() == ["one"]
            assert [(one.plugin, one.distribution) for one in failed] == [("bad", "pi-bad 1.2")]
            assert f"hook {self.hook}" in str(failed[0])
            with pytest.raises(HookError):
                self.registered(bad)

    def test_an_answer_that_is_no_iterable_is_blamed(self) -> None:
        with pytest.raises(HookError, match="'int' object is not iterable") as caught:
            self.registered(holding("bad", **{self.hook: hookimpl(lambda self: 3)}))
        assert caught.value.plugin == "bad"

    def test_one_plugin_cannot_give_a_name_twice(self) -> None:
        with pytest.raises(HookError, match=f"{self.kind} 'one' is given twice") as caught:
            self.registered(self.offers("bad", self.contribution("one"), self.contribution("one")))
        assert caught.value.plugin == "bad"

    def test_async_arguments_and_wrappers_are_refused(self) -> None:
        async def late(self: Any) -> Any:
            return []

        with pytest.raises(PluginLoadError, match=f"{self.hook} at .* is async, but the hook is called without await"):
            hooks_of(holding("a", **{self.hook: hookimpl(late)}))
        hidden = holding("bad", **{self.hook: hookimpl(lambda self: late(self))})
        with pytest.raises(HookError, match="it is async, but the hook is called without await"):
            self.registered(hidden)
        with pytest.raises(PluginLoadError, match=r"argument 'config' of .* is not one the hook has \(it has none\)"):
            hooks_of(holding("a", **{self.hook: hookimpl(lambda self, config: [])}))
        refuses_wrappers(self.hook)

    def test_a_callable_cannot_contribute(self) -> None:
        with pytest.raises(TypeError, match=f"there is no hook '{self.hook}' that a callable can implement"):
            Hooks(callables={self.hook: list})

    def test_monitors_see_the_call(self) -> None:
        manager = manager_of(self.offers("a", self.contribution("one")))
        seen: list[Any] = []
        manager.add_hookcall_monitoring(
            lambda hook, found, given: seen.append((hook, dict(given))),
            lambda outcome, hook, found, given: seen.append(len(outcome.get_result())),
        )
        Hooks(manager).contributions(self.hook)
        assert seen == [(self.hook, {}), 1]
