from __future__ import annotations

from typing import Any

from pi_core import AgentMessage, hookimpl
from pi_core.testing import Call, Reply, scripted_agent

from . import samples
from .kinds import RecordHook
from .making import holding
from .wrapping import WrappedRaising


class TestRecordMessage(RecordHook, WrappedRaising):
    hook = "record_message"
    none_is_an_outcome = True

    def arguments(self) -> dict[str, Any]:
        return {"message": samples.user(1), "ctx": samples.ctx()}

    def outcome(self, number: int) -> Any:
        return None

    def test_every_final_message_is_recorded_before_it_is_announced(self) -> None:
        trace: list[tuple[str, Any]] = []

        def record(self: Any, message: AgentMessage) -> None:
            trace.append(("record", message))

        agent, _, _ = scripted_agent(
            Reply(Call("read", {"path": "x"})),
            "done",
            plugins=[holding("store", record_message=hookimpl(record))],
            tools=[samples.tool()],
        )
        agent.subscribe(
            lambda event, signal: trace.append(("end", event.message)) if event.type == "message_end" else None
        )
        messages = agent.run_sync("go")
        assert [message.role for message in messages] == ["user", "assistant", "toolResult", "assistant"]
        expected = [(step, message) for message in messages for step in ("record", "end")]
        assert [(step, id(message)) for step, message in trace] == [(step, id(message)) for step, message in expected]

    def test_a_failure_fails_the_run_and_the_message_is_still_announced(self) -> None:
        def fail(self: Any, message: AgentMessage) -> None:
            if message.role == "assistant" and not message.error_message:  # type: ignore[union-attr]
                raise OSError("disk full")

        agent, _, log = scripted_agent("hello", plugins=[holding("store", record_message=hookimpl(fail))])
        messages = agent.run_sync("go")
        assert messages[-1].error_message == "disk full (plugin 'store', hook record_message)"  # type: ignore[union-attr]
        assert [event.message.role for event in log.of("message_end")] == ["user", "assistant", "assistant"]
        assert log.types[-2:] == ["turn_end", "agent_end"]
