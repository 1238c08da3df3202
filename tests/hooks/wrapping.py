"""What holds for the wrappers of a hook, generators and async ones."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any, ClassVar

import pytest

from pi_core import HookError, Hooks, PluginFailure, PluginLoadError, hookimpl
from pi_core._manager import CORE_SPECS

from .kinds import Hook, NotifyHook, same
from .making import async_wrapper, holding, hooks_of, plugin, run, wrapper
from .spoiling import spoil

Arguments = dict[str, Any]
Proceed = Callable[..., Awaitable[Any]]
Body = Generator[None, Any, Any]
both_kinds = pytest.mark.parametrize("kind", ["generator", "async def"])


class Wrapped(Hook):
    """Tests of a hook that may be wrapped. ``outcome`` makes what a wrapper may give."""

    none_is_an_outcome: ClassVar[bool] = False

    def outcome(self, number: int) -> Any:
        return self.answer(number)

    def spy(self, kind: str, name: str, trace: list[Any], **options: Any) -> Any:
        """A plugin whose wrapper notes its name before and after."""

        def body(arguments: Arguments) -> Body:
            trace.append(f"{name} in")
            answer = yield
            trace.append(f"{name} out")
            return answer

        return wrapper(kind, self.hook, name, body, **options)

    @both_kinds
    def test_wrappers_nest_in_call_order_whatever_their_kind(self, kind: str) -> None:
        other = "async def" if kind == "generator" else "generator"
        trace: list[str] = []
        hooks = hooks_of(self.quiet("a", trace), self.spy(kind, "one", trace), self.spy(other, "two", trace))
        arguments = self.arguments()
        assert same(run(self.call(hooks, arguments)), self.nothing(arguments))
        assert trace == ["one in", "two in", "a", "two out", "one out"]
        shown = [(owner.plugin, wraps) for owner, _, wraps in hooks.implementations(self.hook)]
        assert shown == [("one", True), ("two", True), ("a", False)]

    @both_kinds
    def test_tryfirst_is_outermost_and_trylast_innermost(self, kind: str) -> None:
        other = "async def" if kind == "generator" else "generator"
        trace: list[str] = []
        last = self.spy(kind, "last", trace, trylast=True)
        run(self.call(hooks_of(last, self.spy(other, "mid", trace), self.spy(kind, "first", trace, tryfirst=True))))
        assert trace == ["first in", "mid in", "last in", "last out", "mid out", "first out"]

    @both_kinds
    def test_what_a_wrapper_gives_counts(self, kind: str) -> None:
        seen: list[Any] = []

        def body(arguments: Arguments) -> Body:
            seen.append((yield))
            return self.outcome(2)

        arguments = self.arguments()
        hooks = hooks_of(wrapper(kind, self.hook, "w", body), plugin(self.hook, "a", lambda given: self.answer(1)))
        assert same(run(self.call(hooks, arguments)), self.outcome(2))
        assert same(seen[0], self.combined([self.answer(1)], arguments))

    def test_proceeding_with_another_argument(self) -> None:
        seen: list[Arguments] = []
        arguments = self.arguments()
        other = type(arguments["ctx"])()

        async def body(given: Arguments, proceed: Proceed) -> Any:
            return await proceed(ctx=other)

        outer, inner = async_wrapper(self.hook, "w", body), self.spy("generator", "inner", [])
        run(self.call(hooks_of(outer, inner, plugin(self.hook, "a", seen.append)), arguments))
        assert seen[0]["ctx"] is other
        assert same(seen[0], arguments)

    def test_proceeding_with_an_argument_the_hook_does_not_have(self) -> None:
        async def body(arguments: Arguments, proceed: Proceed) -> Any:
            return await proceed(unknown=1)

        self.assert_wrapper_failure(async_wrapper(self.hook, "bad", body), "the hook has no argument 'unknown'")

    @both_kinds
    def test_a_wrapper_that_raises_before(self, kind: str) -> None:
        def body(arguments: Arguments) -> Body:
            raise ValueError("boom")
            yield

        self.assert_wrapper_failure(wrapper(kind, self.hook, "bad", body), "boom")

    @both_kinds
    def test_a_wrapper_that_raises_after(self, kind: str) -> None:
        def body(arguments: Arguments) -> Body:
            yield
            raise ValueError("boom")

        self.assert_wrapper_failure(wrapper(kind, self.hook, "bad", body), "boom")

    def test_a_generator_that_does_not_yield_once(self) -> None:
        def never(arguments: Arguments) -> Body:
            return
            yield

        def twice(arguments: Arguments) -> Body:
            yield
            yield

        self.assert_wrapper_failure(wrapper("generator", self.hook, "bad", never), "the wrapper did not yield")
        self.assert_wrapper_failure(wrapper("generator", self.hook, "bad", twice), "the wrapper yielded twice")

    def assert_wrapper_failure(self, failing: Any, text: str) -> None:
        """Check what comes of a wrapper ``bad`` that fails."""
        with pytest.raises(HookError, match=text) as caught:
            run(self.call(hooks_of(self.spy("generator", "outer", []), failing)))
        error = caught.value
        assert (error.plugin, error.distribution, error.hook) == ("bad", "pi-bad 1.2", self.hook)

    def test_a_wrapper_that_proceeds_twice(self) -> None:
        trace: list[str] = []

        async def body(arguments: Arguments, proceed: Proceed) -> Any:
            await proceed()
            return await proceed()

        arguments = self.arguments()
        hooks = hooks_of(async_wrapper(self.hook, "w", body), self.quiet("a", trace))
        assert same(run(self.call(hooks, arguments)), self.nothing(arguments))
        assert trace == ["a", "a"]

    def test_a_wrapper_that_never_proceeds(self) -> None:
        trace: list[str] = []

        async def body(arguments: Arguments, proceed: Proceed) -> Any:
            return self.outcome(1)

        hooks = hooks_of(async_wrapper(self.hook, "w", body), self.spy("generator", "x", trace), self.quiet("a", trace))
        assert same(run(self.call(hooks)), self.outcome(1))
        assert trace == []

    @both_kinds
    def test_editing_arguments_in_place_in_a_wrapper_changes_nothing(self, kind: str) -> None:
        seen: list[Arguments] = []
        copies = CORE_SPECS[self.hook].contract.copies

        def body(arguments: Arguments) -> Body:
            for name in copies:
                spoil(arguments[name])
            return (yield)

        run(self.call(hooks_of(wrapper(kind, self.hook, "w", body), plugin(self.hook, "a", seen.append))))
        untouched = self.arguments()
        assert all(same(seen[0][name], untouched[name]) for name in copies)

    @both_kinds
    def test_a_cancellation_passes_the_wrappers(self, kind: str) -> None:
        seen: list[type[BaseException]] = []

        def body(arguments: Arguments) -> Body:
            try:
                return (yield)
            except BaseException as error:
                seen.append(type(error))
                raise

        self.cancel(wrapper(kind, self.hook, "w", body))
        assert seen == [asyncio.CancelledError]

    def test_a_generator_cannot_swallow_a_cancellation(self) -> None:
        def body(arguments: Arguments) -> Body:
            try:
                yield
            except BaseException:
                return self.outcome(1)

        self.cancel(wrapper("generator", self.hook, "w", body))

    def cancel(self, wrapping: Any) -> None:
        """Cancel a call that waits inside a wrapper, and check that the cancellation comes out as it is."""

        async def main() -> None:
            waits = asyncio.Event()

            async def react(given: Arguments) -> None:
                waits.set()
                await asyncio.Event().wait()

            task = asyncio.ensure_future(self.call(hooks_of(wrapping, plugin(self.hook, "a", react))))
            await waits.wait()
            task.cancel("enough")
            with pytest.raises(asyncio.CancelledError, match="enough"):
                await task

        run(main())

    def test_a_callable_may_wrap(self) -> None:
        trace: list[str] = []

        async def wrap(*, proceed: Proceed) -> Any:
            trace.append("in")
            return await proceed()

        def plain(*, proceed: Proceed) -> Any:
            return None

        spy = self.spy("generator", "w", trace)
        run(self.call(hooks_of(spy, self.quiet("a", trace), callables={self.hook: wrap})))
        assert trace == ["in", "w in", "a", "w out"]
        with pytest.raises(TypeError, match=f"{self.hook}: the callable takes 'proceed', but a wrapper is async def"):
            Hooks(callables={self.hook: plain})

    def test_wrappers_that_cannot_be(self) -> None:
        async def late(self: Any) -> None:
            return None

        def plain(self: Any, *, proceed: Proceed) -> None:
            return None

        def old(self: Any) -> Any:
            yield

        for function, why in (
            (hookimpl(wrapper=True)(late), "needs a generator; an async wrapper takes a keyword-only 'proceed'"),
            (hookimpl(plain), "takes 'proceed', so it must be async def"),
            (hookimpl(hookwrapper=True)(old), "old-style hookwrapper"),
        ):
            with pytest.raises(PluginLoadError, match=why):
                hooks_of(holding("a", **{self.hook: function}))

    def test_monitors_see_what_the_wrappers_make(self) -> None:
        async def body(arguments: Arguments, proceed: Proceed) -> Any:
            return self.outcome(1)

        hooks = hooks_of(async_wrapper(self.hook, "w", body))
        seen: list[Any] = []
        assert hooks._manager is not None
        hooks._manager.add_hookcall_monitoring(
            lambda hook, found, given: None, lambda outcome, hook, found, given: seen.append(outcome.get_result())
        )
        assert same(run(self.call(hooks)), self.outcome(1))
        assert same(seen, [self.outcome(1)])


class WrappedRaising(Wrapped):
    """An exception inside goes through the wrappers as it is."""

    def failing(self) -> Any:
        def react(given: Arguments) -> None:
            raise ValueError("boom")

        return plugin(self.hook, "inside", react)

    @both_kinds
    def test_an_exception_from_inside_passes(self, kind: str) -> None:
        seen: list[BaseException] = []

        def body(arguments: Arguments) -> Body:
            try:
                return (yield)
            except HookError as error:
                seen.append(error)
                raise

        with pytest.raises(HookError) as caught:
            run(self.call(hooks_of(wrapper(kind, self.hook, "w", body), self.failing())))
        assert caught.value is seen[0]
        assert caught.value.plugin == "inside"

    @both_kinds
    def test_a_wrapper_may_answer_in_place_of_an_exception(self, kind: str) -> None:
        def body(arguments: Arguments) -> Body:
            try:
                return (yield)
            except HookError:
                return self.outcome(3)

        hooks = hooks_of(wrapper(kind, self.hook, "w", body), self.failing())
        assert same(run(self.call(hooks)), self.outcome(3))

    def test_the_first_of_two_failures_may_be_the_one_that_counts(self) -> None:
        async def body(arguments: Arguments, proceed: Proceed) -> Any:
            try:
                return await proceed()
            except HookError as first:
                with pytest.raises(HookError):
                    await proceed()
                raise first from None

        with pytest.raises(HookError, match="boom") as caught:
            run(self.call(hooks_of(async_wrapper(self.hook, "w", body), self.failing())))
        assert caught.value.plugin == "inside"

    @both_kinds
    def test_a_wrapper_that_gives_nothing(self, kind: str) -> None:
        def body(arguments: Arguments) -> Body:
            yield

        hooks = hooks_of(wrapper(kind, self.hook, "bad", body))
        if self.none_is_an_outcome:
            assert not run(self.call(hooks))
        else:
            with pytest.raises(HookError, match="got None") as caught:
                run(self.call(hooks))
            assert caught.value.plugin == "bad"


class WrappedNotify(Wrapped, NotifyHook):
    """A wrapper that fails is reported, and those inside it are called all the same."""

    none_is_an_outcome = True

    def outcome(self, number: int) -> Any:
        return None

    def assert_wrapper_failure(self, failing: Any, text: str) -> None:
        trace: list[str] = []
        reports: list[PluginFailure] = []
        watch = holding("watch", plugin_error=hookimpl(lambda self, failure: reports.append(failure)))
        outer, inner = self.spy("generator", "outer", trace), self.spy("async def", "inner", trace)
        hooks = hooks_of(outer, failing, inner, self.quiet("a", trace), watch)
        arguments = self.arguments()
        for _ in range(4):
            assert run(self.call(hooks, arguments)) is None
        assert trace == ["outer in", "inner in", "a", "inner out", "outer out"] * 4
        assert [(one.plugin, one.distribution, one.hook) for one in reports] == [("bad", "pi-bad 1.2", self.hook)] * 3
        assert all(text in str(one.error) and not isinstance(one.error, HookError) for one in reports)
        assert [one.disabled for one in reports] == [False, False, True]

    def test_an_exception_inside_does_not_reach_the_wrappers(self) -> None:
        trace: list[str] = []

        def react(given: Arguments) -> None:
            raise ValueError("boom")

        run(self.call(hooks_of(self.spy("async def", "w", trace), plugin(self.hook, "a", react))))
        assert trace == ["w in", "w out"]


def refuses_wrappers(hook: str) -> None:
    """Check that a hook refuses wrappers of every kind."""

    def generator(self: Any) -> Any:
        yield

    async def late(self: Any, *, proceed: Proceed) -> None:
        await proceed()

    refused: list[Callable[..., Any]] = [hookimpl(wrapper=True)(generator)]
    if CORE_SPECS[hook].contract.is_async:
        refused.append(hookimpl(late))
    for function in refused:
        with pytest.raises(PluginLoadError, match=f"{hook} at .* may not be wrapped"):
            hooks_of(holding("a", **{hook: function}))
