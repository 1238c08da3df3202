from __future__ import annotations

from typing import Any, ClassVar

import pytest

from pi_core import HookError, hookimpl
from pi_core.testing import scripted_agent

from . import samples
from .kinds import ChainHook
from .making import async_wrapper, holding, hooks_of, plugin, run
from .wrapping import WrappedRaising


class TestTransformContext(ChainHook, WrappedRaising):
    hook = "transform_context"
    wrong: ClassVar[tuple[Any, ...]] = ("text", 3, [1], ["text"], iter("ab"))

    def arguments(self) -> dict[str, Any]:
        return {"messages": samples.users(1, 2), "ctx": samples.ctx()}

    def answer(self, number: int) -> Any:
        return samples.users(number)

    def test_the_plugin_whose_answer_the_next_one_fails_on_is_blamed(self) -> None:
        def fail(given: dict[str, Any]) -> Any:
            return [message.role for message in given["messages"]]

        hooks = hooks_of(plugin(self.hook, "bad", lambda given: ["text"]), plugin(self.hook, "b", fail))
        with pytest.raises(HookError, match="got one that holds str") as caught:
            run(self.call(hooks))
        assert caught.value.plugin == "bad"

    def test_what_a_plugin_keeps_of_its_answer_does_not_count(self) -> None:
        kept = samples.users(5)
        hooks = hooks_of(plugin(self.hook, "a", lambda given: kept))
        came = run(self.call(hooks))
        kept.clear()
        assert came == samples.users(5)

    def test_a_wrapper_may_proceed_with_other_messages(self) -> None:
        async def body(given: dict[str, Any], proceed: Any) -> Any:
            return await proceed(messages=samples.users(7))

        assert run(self.call(hooks_of(async_wrapper(self.hook, "w", body)))) == samples.users(7)

    def test_the_transcript_stays_as_it_is(self) -> None:
        keep_last = holding("keep", transform_context=hookimpl(lambda self, messages: messages[-1:]))
        agent, provider, _ = scripted_agent("one", "two", plugins=[keep_last])
        agent.run_sync("first")
        agent.run_sync("second")
        assert [len(request.messages) for request in provider.requests] == [1, 1]
        assert len(agent.state.messages) == 4
