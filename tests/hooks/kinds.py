"""What holds for every hook, and for every hook of a kind. A test file declares its hook and adds what is special."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from pi_core import HookError, Hooks, PluginFailure, PluginLoadError, hookimpl
from pi_core._manager import CORE_SPECS
from pi_core.context import ListView

from .making import STYLES, answering, holding, hooks_of, implementation, manager_of, plugin, run
from .spoiling import spoil


class Hook:
    """Tests of every hook of a run.

    ``answer`` makes the n-th of several different answers, ``arguments`` what the hook is called with.
    """

    hook: ClassVar[str]

    def arguments(self) -> dict[str, Any]:
        raise AssertionError

    def answer(self, number: int) -> Any:
        raise AssertionError

    def nothing(self, arguments: dict[str, Any]) -> Any:
        """What comes out when no plugin answers."""
        return None

    def combined(self, answers: list[Any], arguments: dict[str, Any]) -> Any:
        """What comes out when plugins answer so, none of them ``None``."""
        raise AssertionError

    def asked(self, answers: list[Any]) -> int:
        """How many plugins are asked when they would answer so."""
        return len(answers)

    async def call(self, hooks: Hooks, arguments: dict[str, Any] | None = None) -> Any:
        return await getattr(hooks, self.hook)(**(self.arguments() if arguments is None else arguments))

    def quiet(self, name: str, trace: list[str], **options: Any) -> Any:
        """A plugin that notes its name and answers nothing."""
        return plugin(self.hook, name, lambda given: trace.append(name), **options)

    # --- order ---

    def test_nobody_implements_it(self) -> None:
        arguments = self.arguments()
        for hooks in (Hooks(), hooks_of(holding("other", plugin_error=hookimpl(lambda self: None)))):
            if self.hook != "plugin_error":
                assert not hooks.has(self.hook)
            assert run(self.call(hooks, arguments)) == self.nothing(arguments)

    @pytest.mark.parametrize("style", STYLES)
    def test_plugins_are_called_in_the_order_given(self, style: str) -> None:
        trace: list[str] = []
        run(self.call(hooks_of(*(self.quiet(name, trace, style=style) for name in "cab"))))
        assert trace == ["c", "a", "b"]

    def test_each_is_awaited_before_the_next_is_called(self) -> None:
        trace: list[str] = []

        async def slow(given: dict[str, Any]) -> None:
            trace.append("a begins")
            await asyncio.sleep(0)
            trace.append("a ends")

        run(self.call(hooks_of(plugin(self.hook, "a", slow), self.quiet("b", trace, style="def"))))
        assert trace == ["a begins", "a ends", "b"]

    def test_tryfirst_and_trylast(self) -> None:
        trace: list[str] = []
        run(
            self.call(
                hooks_of(
                    self.quiet("a", trace),
                    self.quiet("last", trace, trylast=True),
                    self.quiet("b", trace),
                    self.quiet("first", trace, tryfirst=True),
                )
            )
        )
        assert trace == ["first", "a", "b", "last"]

    # --- answers ---

    @pytest.mark.parametrize("style", STYLES)
    def test_answers_combine(self, style: str) -> None:
        trace: list[int] = []
        answers = [None, self.answer(1), None, self.answer(2)]

        def react(number: int) -> Callable[[dict[str, Any]], Any]:
            def react(given: dict[str, Any]) -> Any:
                trace.append(number)
                return answers[number]

            return react

        arguments = self.arguments()
        plugins = [plugin(self.hook, f"p{number}", react(number), style=style) for number in range(len(answers))]
        given = [answer for answer in answers if answer is not None]
        assert run(self.call(hooks_of(*plugins), arguments)) == self.combined(given, arguments)
        assert trace == list(range(self.asked(answers)))

    def test_without_an_answer_nothing_changes(self) -> None:
        arguments = self.arguments()
        hooks = hooks_of(*(plugin(self.hook, name, lambda given: None) for name in "ab"))
        assert run(self.call(hooks, arguments)) == self.nothing(arguments)

    # --- arguments ---

    def test_an_implementation_takes_the_arguments_it_wants(self) -> None:
        names = CORE_SPECS[self.hook].arguments
        wanted = [[], list(names), list(reversed(names)), *([name] for name in names), [f"{names[0]}=None"]]
        seen: list[dict[str, Any]] = []
        arguments = self.arguments()
        plugins = [plugin(self.hook, f"p{number}", seen.append, names=some) for number, some in enumerate(wanted)]
        run(self.call(hooks_of(*plugins), arguments))
        assert [list(given) for given in seen] == [[name.partition("=")[0] for name in some] for some in wanted]
        for given in seen:
            for name, value in given.items():
                assert value is arguments[name] or type(value) is type(arguments[name])

    @pytest.mark.parametrize("argument", ["messagez", "*rest", "**rest"])
    def test_an_unknown_argument_is_refused(self, argument: str) -> None:
        one = plugin(self.hook, "a", lambda given: None, names=[])
        source = f"def {self.hook}(self, {argument}): pass"
        namespace: dict[str, Any] = {}
        exec(source, namespace)
        one = holding("a", **{self.hook: hookimpl(namespace[self.hook])})
        with pytest.raises(PluginLoadError) as caught:
            hooks_of(one)
        text = str(caught.value)
        assert f"argument '{argument.strip('*')}' of {self.hook} at <string>:1" in text
        assert all(name in text for name in CORE_SPECS[self.hook].arguments)
        assert (caught.value.plugin, caught.value.distribution) == ("a", "pi-a 1.2")

    def test_editing_in_place_changes_nothing(self) -> None:
        arguments = self.arguments()
        seen: list[dict[str, Any]] = []

        def edit(given: dict[str, Any]) -> None:
            for name in CORE_SPECS[self.hook].contract.copies:
                spoil(given[name])

        hooks = hooks_of(plugin(self.hook, "a", edit), plugin(self.hook, "b", seen.append))
        came = run(self.call(hooks, arguments))
        untouched = self.arguments()
        for name in CORE_SPECS[self.hook].contract.copies:
            assert same(seen[0][name], untouched[name])
            assert same(arguments[name], untouched[name])
        assert same(came, self.nothing(untouched))

    # --- failures ---

    def assert_failure(self, failing: Any, trace: list[str]) -> None:
        """Check what comes of a plugin ``bad`` that raises ``ValueError("boom")``, between ``a`` and ``c``."""
        raise AssertionError

    @pytest.mark.parametrize("style", STYLES)
    def test_an_exception(self, style: str) -> None:
        def react(given: dict[str, Any]) -> None:
            raise ValueError("boom")

        self.assert_failure(plugin(self.hook, "bad", react, style=style), [])

    def test_a_cancellation_of_its_own_making_is_a_failure(self) -> None:
        async def react(given: dict[str, Any]) -> None:
            future = asyncio.get_running_loop().create_future()
            future.cancel()
            await future

        self.assert_stray(plugin(self.hook, "bad", react))

    def assert_stray(self, failing: Any) -> None:
        with pytest.raises(HookError, match="what it waited for was cancelled"):
            run(self.call(hooks_of(failing)))

    def test_a_cancellation_of_the_run_passes(self) -> None:
        trace: list[str] = []

        async def main() -> None:
            waits = asyncio.Event()

            async def react(given: dict[str, Any]) -> None:
                waits.set()
                await asyncio.Event().wait()

            hooks = hooks_of(plugin(self.hook, "a", react), self.quiet("b", trace))
            task = asyncio.ensure_future(self.call(hooks))
            await waits.wait()
            task.cancel("enough")
            with pytest.raises(asyncio.CancelledError, match="enough"):
                await task

        run(main())
        assert trace == []

    # --- who takes part ---

    def test_a_run_without_some_plugins(self) -> None:
        trace: list[str] = []
        hooks = hooks_of(*(self.quiet(name, trace) for name in "abc"))
        run(self.call(hooks.extended(without=["b"])))
        run(self.call(hooks.extended(without=["b"]).extended(without=["a"])))
        assert trace == ["a", "c", "c"]
        trace.clear()
        run(self.call(hooks))
        assert trace == ["a", "b", "c"]
        assert not hooks.extended(without="abc").has(self.hook)

    @pytest.mark.parametrize("style", STYLES)
    def test_callables_come_before_the_plugins(self, style: str) -> None:
        trace: list[str] = []

        def note(name: str) -> Callable[..., Any]:
            function = implementation(self.hook, lambda given: trace.append(name), style=style)
            return function.__get__(object())  # type: ignore[no-any-return]

        hooks = hooks_of(self.quiet("a", trace), self.quiet("b", trace), callables={self.hook: note("own")})
        run(self.call(hooks))
        assert trace == ["own", "a", "b"]
        assert [owner.plugin for owner, _, _ in hooks.implementations(self.hook)] == ["application", "a", "b"]
        trace.clear()
        run(self.call(hooks.extended({self.hook: note("further")})))
        assert trace == ["further", "own", "a", "b"]
        trace.clear()
        run(self.call(Hooks(callables={self.hook: note("alone")})))
        assert trace == ["alone"]

    def test_a_callable_takes_the_arguments_it_wants(self) -> None:
        names = CORE_SPECS[self.hook].arguments
        source = f"lambda {names[-1]}, limit=3: seen.append(({names[-1]}, limit))"
        seen: list[Any] = []
        arguments = self.arguments()
        run(self.call(Hooks(callables={self.hook: eval(source, {"seen": seen})}), arguments))
        assert [(type(value), limit) for value, limit in seen] == [(type(arguments[names[-1]]), 3)]
        with pytest.raises(TypeError, match=f"{self.hook}: argument 'unknown' is not one of the hook's"):
            Hooks(callables={self.hook: lambda unknown: None})

    # --- watching ---

    def test_monitors_see_the_call(self) -> None:
        manager = manager_of(self.quiet("a", []))
        hooks = Hooks(manager)
        seen: list[Any] = []
        stop = manager.add_hookcall_monitoring(
            lambda hook, found, given: seen.append((hook, [one.plugin_name for one in found], dict(given))),
            lambda outcome, hook, found, given: seen.append((hook, outcome.get_result())),
        )
        arguments = self.arguments()
        came = run(self.call(hooks, arguments))
        assert seen == [(self.hook, ["a"], arguments), (self.hook, came)]
        stop()
        run(self.call(hooks))
        assert len(seen) == 2


class NotifyHook(Hook):
    """Results are ignored; an exception is reported, the others run, and three switch the implementation off."""

    def answer(self, number: int) -> Any:
        return f"ignored {number}"

    def combined(self, answers: list[Any], arguments: dict[str, Any]) -> Any:
        return None

    @pytest.mark.parametrize("style", STYLES)
    def test_an_answer_is_no_failure(self, style: str) -> None:
        reports: list[PluginFailure] = []
        watch = holding("watch", plugin_error=hookimpl(lambda self, failure: reports.append(failure)))
        run(self.call(hooks_of(plugin(self.hook, "a", answering("ignored"), style=style), watch)))
        assert reports == []

    def assert_failure(self, failing: Any, trace: list[str]) -> None:
        reports: list[PluginFailure] = []
        watch = holding("watch", plugin_error=hookimpl(lambda self, failure: reports.append(failure)))
        hooks = hooks_of(self.quiet("a", trace), failing, self.quiet("c", trace), watch)
        arguments = self.arguments()
        for _ in range(5):
            assert run(self.call(hooks, arguments)) is None
        assert trace == ["a", "c"] * 5
        assert [(one.plugin, one.distribution, one.hook, str(one.error)) for one in reports] == [
            ("bad", "pi-bad 1.2", self.hook, "boom")
        ] * 3
        assert [one.disabled for one in reports] == [False, False, True]
        run(self.call(hooks))
        assert len(reports) == 4
        assert not reports[3].disabled, "a new run begins anew"

    def assert_stray(self, failing: Any) -> None:
        reports: list[PluginFailure] = []
        watch = holding("watch", plugin_error=hookimpl(lambda self, failure: reports.append(failure)))
        assert run(self.call(hooks_of(failing, watch))) is None
        assert [str(one.error) for one in reports] == ["what it waited for was cancelled"]


class RaisingHook(Hook):
    """An exception comes out with the names of plugin, distribution and hook."""

    later_run = False

    def assert_failure(self, failing: Any, trace: list[str]) -> None:
        with pytest.raises(HookError) as caught:
            run(self.call(hooks_of(self.quiet("a", trace), failing, self.quiet("c", trace))))
        error = caught.value
        assert str(error) == f"boom (plugin 'bad' (pi-bad 1.2), hook {self.hook})"
        assert (error.plugin, error.distribution, error.hook) == ("bad", "pi-bad 1.2", self.hook)
        assert isinstance(error.__cause__, ValueError)
        assert trace == (["a", "c"] if self.later_run else ["a"])

    def test_a_failure_named_once_keeps_its_name(self) -> None:
        inner = HookError("inner", plugin="other", hook="their_hook", distribution="pi-other 3")
        inner.__cause__ = KeyError("x")

        def react(given: dict[str, Any]) -> None:
            raise inner

        with pytest.raises(HookError) as caught:
            run(self.call(hooks_of(plugin(self.hook, "a", react))))
        assert caught.value is inner
        assert isinstance(inner.__cause__, KeyError)


class RecordHook(RaisingHook):
    """As notify, but all are called and the first exception comes out."""

    later_run = True

    def answer(self, number: int) -> Any:
        return f"ignored {number}"

    def combined(self, answers: list[Any], arguments: dict[str, Any]) -> Any:
        return None

    def test_further_failures_are_notes_of_the_first(self) -> None:
        def failing(text: str) -> Callable[[dict[str, Any]], None]:
            def react(given: dict[str, Any]) -> None:
                raise OSError(text)

            return react

        hooks = hooks_of(plugin(self.hook, "a", failing("disk")), plugin(self.hook, "b", failing("net")))
        with pytest.raises(HookError, match="disk") as caught:
            run(self.call(hooks))
        assert caught.value.__notes__ == [f"and then: net (plugin 'b' (pi-b 1.2), hook {self.hook})"]


class AnswerHook(RaisingHook):
    """A hook whose answers count, so that a wrong one is blamed on the plugin that gave it."""

    wrong: ClassVar[tuple[Any, ...]] = (object(),)

    def test_a_wrong_answer_is_blamed(self) -> None:
        for wrong in self.wrong:
            hooks = hooks_of(plugin(self.hook, "good", lambda given: None), plugin(self.hook, "bad", answering(wrong)))
            with pytest.raises(HookError, match=r"expected .*got") as caught:
                run(self.call(hooks))
            assert (caught.value.plugin, caught.value.hook) == ("bad", self.hook)
            assert isinstance(caught.value.__cause__, TypeError)


class FirstHook(AnswerHook):
    """The first answer that is not ``None`` counts, and nobody is asked after it."""

    def combined(self, answers: list[Any], arguments: dict[str, Any]) -> Any:
        return answers[0]

    def asked(self, answers: list[Any]) -> int:
        return 1 + next(number for number, answer in enumerate(answers) if answer is not None)


class CollectHook(AnswerHook):
    """All answers count."""

    def nothing(self, arguments: dict[str, Any]) -> Any:
        return []


class ChainHook(AnswerHook):
    """Each gets what the previous one returned."""

    def nothing(self, arguments: dict[str, Any]) -> Any:
        return next(iter(arguments.values()))

    def combined(self, answers: list[Any], arguments: dict[str, Any]) -> Any:
        return answers[-1]

    def test_each_sees_what_the_previous_one_returned(self) -> None:
        first = next(iter(self.arguments()))
        seen: list[Any] = []

        def react(number: int) -> Callable[[dict[str, Any]], Any]:
            def react(given: dict[str, Any]) -> Any:
                seen.append(given[first])
                return self.answer(number)

            return react

        arguments = self.arguments()
        run(self.call(hooks_of(*(plugin(self.hook, f"p{number}", react(number)) for number in (1, 2, 3))), arguments))
        assert seen == [arguments[first], self.answer(1), self.answer(2)]

    def test_a_failure_leaves_nothing_half_applied(self) -> None:
        def fail(given: dict[str, Any]) -> None:
            for value in given.values():
                spoil(value)
            raise ValueError("boom")

        arguments = self.arguments()
        hooks = hooks_of(plugin(self.hook, "a", lambda given: self.answer(1)), plugin(self.hook, "b", fail))
        with pytest.raises(HookError, match="boom"):
            run(self.call(hooks, arguments))
        assert same(arguments, self.arguments())


def same(one: Any, other: Any) -> bool:
    """Whether two arguments are equal, part by part; objects that compare by identity are taken as equal."""
    if isinstance(one, list | tuple | ListView):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if type(one) is not type(other):
        return False
    if dataclasses.is_dataclass(one):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in dataclasses.fields(one))
    by_identity: Any = object.__eq__
    return type(one).__eq__ is by_identity or bool(one == other)
