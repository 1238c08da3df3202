from __future__ import annotations

from typing import Any

from pi_core import UserMessage, hookimpl
from pi_core.testing import Call, Reply, scripted_agent

from . import samples
from .kinds import FirstHook
from .making import holding
from .wrapping import WrappedRaising


class TestShouldStopAfterTurn(FirstHook, WrappedRaising):
    hook = "should_stop_after_turn"
    wrong = ()
    none_is_an_outcome = True

    def arguments(self) -> dict[str, Any]:
        return {"turn": samples.turn(), "ctx": samples.ctx()}

    def answer(self, number: int) -> Any:
        return number != 1

    def nothing(self, arguments: dict[str, Any]) -> Any:
        return False

    def combined(self, answers: list[Any], arguments: dict[str, Any]) -> Any:
        return any(answers)

    def asked(self, answers: list[Any]) -> int:
        return 1 + answers.index(True)

    def test_the_first_true_ends_the_run_and_leaves_the_queues(self) -> None:
        agent, provider, _ = scripted_agent(
            Reply(Call("read", {"path": "x"})),
            "never said",
            plugins=[holding("p", should_stop_after_turn=hookimpl(lambda self, turn: bool(turn.tool_results)))],
            tools=[samples.tool()],
        )
        agent.follow_up(UserMessage(content="later"))
        messages = agent.run_sync("go")
        assert [message.role for message in messages] == ["user", "assistant", "toolResult"]
        assert len(provider.requests) == 1
        assert agent.has_queued_messages
