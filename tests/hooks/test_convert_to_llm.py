from __future__ import annotations

from typing import Any

from pi_core import CustomMessage, UserMessage, hookimpl
from pi_core.testing import scripted_agent

from . import samples
from .kinds import FirstHook
from .making import async_wrapper, holding, hooks_of, run
from .wrapping import WrappedRaising


class TestConvertToLlm(FirstHook, WrappedRaising):
    hook = "convert_to_llm"
    wrong = (
        "text",
        3,
        [CustomMessage(role="note")],
        ["text"],
    )
    none_is_an_outcome = True

    def arguments(self) -> dict[str, Any]:
        return {"messages": [*samples.users(1), CustomMessage(role="note", timestamp=1)], "ctx": samples.ctx()}

    def answer(self, number: int) -> Any:
        return samples.users(number)

    def test_what_a_plugin_keeps_of_its_answer_does_not_count(self) -> None:
        kept = samples.users(5)
        hooks = hooks_of(holding("a", convert_to_llm=hookimpl(lambda self: kept)))
        came = run(self.call(hooks))
        kept.clear()
        assert came == samples.users(5)

    def test_a_wrapper_sees_that_nobody_converted(self) -> None:
        seen: list[Any] = []

        async def body(given: dict[str, Any], proceed: Any) -> Any:
            seen.append(await proceed())
            return seen[0]

        assert run(self.call(hooks_of(async_wrapper(self.hook, "w", body)))) is None
        assert seen == [None]

    def test_the_model_reads_what_the_plugin_made(self) -> None:
        def convert(self: Any, messages: list[Any]) -> list[Any]:
            return [UserMessage(content=f"{len(messages)} messages")]

        agent, provider, _ = scripted_agent("ok", plugins=[holding("p", convert_to_llm=hookimpl(convert))])
        agent.run_sync([UserMessage(content="a"), CustomMessage(role="note")])
        assert [message.content for message in provider.requests[0].messages] == ["2 messages"]
        assert [message.role for message in agent.state.messages] == ["user", "note", "assistant"]
