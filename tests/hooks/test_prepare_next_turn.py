from __future__ import annotations

from typing import Any

from pi_core import AgentContext, Turn, TurnUpdate, UserMessage, hookimpl
from pi_core.testing import Call, Reply, scripted_agent

from . import samples
from .kinds import ChainHook
from .making import holding, hooks_of, plugin, run
from .wrapping import WrappedRaising


class TestPrepareNextTurn(ChainHook, WrappedRaising):
    hook = "prepare_next_turn"
    wrong = (
        "text",
        samples.model(1),
        {"model": None},
        TurnUpdate(model="gpt"),  # type: ignore[arg-type]
        TurnUpdate(thinking_level="huge"),  # type: ignore[arg-type]
        TurnUpdate(messages=["go on"]),  # type: ignore[list-item]
        TurnUpdate(context={}),  # type: ignore[arg-type]
        TurnUpdate(context=AgentContext(messages=["go on"])),  # type: ignore[list-item]
        TurnUpdate(context=AgentContext(tools=[print])),  # type: ignore[list-item]
        TurnUpdate(context=AgentContext(system_prompt=5)),  # type: ignore[arg-type]
    )
    none_is_an_outcome = True

    def arguments(self) -> dict[str, Any]:
        return {"turn": samples.turn(), "ctx": samples.ctx()}

    def answer(self, number: int) -> Any:
        return TurnUpdate(model=samples.model(number), messages=samples.users(number))

    def nothing(self, arguments: dict[str, Any]) -> Any:
        return TurnUpdate()

    def combined(self, answers: list[Any], arguments: dict[str, Any]) -> Any:
        messages = [message for answer in answers for message in answer.messages]
        return TurnUpdate(model=answers[-1].model, messages=messages)

    def test_nobody_implements_it(self) -> None:
        assert run(self.call(hooks_of(plugin("on_turn_end", "x", lambda given: None)))) is None

    def test_each_sees_what_the_previous_one_returned(self) -> None:
        seen: list[str] = []

        def react(given: dict[str, Any]) -> TurnUpdate:
            turn: Turn = given["turn"]
            seen.append(turn.context.system_prompt)
            return TurnUpdate(context=AgentContext(f"prompt {len(seen)}"))

        update = run(self.call(hooks_of(*(plugin(self.hook, name, react) for name in "abc"))))
        assert seen == ["Be brief.", "prompt 1", "prompt 2"]
        assert update.context.system_prompt == "prompt 3"

    def test_what_does_not_change_stays_as_an_earlier_plugin_set_it(self) -> None:
        hooks = hooks_of(
            plugin(self.hook, "a", lambda given: TurnUpdate(model=samples.model(1), thinking_level="high")),
            plugin(self.hook, "b", lambda given: TurnUpdate(thinking_level="off")),
        )
        assert run(self.call(hooks)) == TurnUpdate(model=samples.model(1), thinking_level="off")

    def test_the_next_request_is_made_with_what_it_set(self) -> None:
        def prepare(self: Any) -> TurnUpdate:
            return TurnUpdate(
                model=samples.model(8), thinking_level="low", messages=[UserMessage(content="one more thing")]
            )

        agent, provider, _ = scripted_agent(
            Reply(Call("read", {"path": "x"})),
            "done",
            plugins=[holding("p", prepare_next_turn=hookimpl(prepare))],
            tools=[samples.tool()],
        )
        agent.run_sync("go")
        second = provider.requests[1]
        assert (second.model.id, second.options.reasoning) == ("model-8", "low")
        assert second.messages[-1].content == "one more thing"
