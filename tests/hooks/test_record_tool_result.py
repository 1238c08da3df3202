from __future__ import annotations

import asyncio
from typing import Any

from pi_core import ToolCallContent, ToolResultMessage, hookimpl, tool
from pi_core.testing import Barrier, Call, Reply, scripted_agent

from . import samples
from .kinds import RecordHook
from .making import holding
from .wrapping import WrappedRaising


class TestRecordToolResult(RecordHook, WrappedRaising):
    hook = "record_tool_result"
    none_is_an_outcome = True

    def arguments(self) -> dict[str, Any]:
        return {"call": samples.content(), "result": samples.result_message(), "ctx": samples.ctx()}

    def outcome(self, number: int) -> Any:
        return None

    def test_results_are_recorded_as_they_finish_before_their_end_event(self) -> None:
        trace: list[str] = []

        def record(self: Any, call: ToolCallContent, result: ToolResultMessage) -> None:
            assert result.tool_call_id == call.id
            trace.append(f"record {call.id}")

        async def main() -> list[str]:
            slow = Barrier()

            @tool
            async def wait(first: bool) -> str:
                """Wait."""
                if first:
                    await slow.wait()
                else:
                    slow.release()
                return "ok"

            agent, _, _ = scripted_agent(
                Reply(Call("wait", {"first": True}, "one"), Call("wait", {"first": False}, "two")),
                "done",
                plugins=[holding("store", record_tool_result=hookimpl(record))],
                tools=[wait],
            )
            agent.subscribe(
                lambda event, signal: (
                    trace.append(f"end {event.tool_call_id}") if event.type == "tool_execution_end" else None
                )
            )
            messages = await agent.prompt("go")
            return [message.tool_call_id for message in messages if isinstance(message, ToolResultMessage)]

        assert asyncio.run(main()) == ["one", "two"]
        assert trace == ["record two", "end two", "record one", "end one"]

    def test_a_failure_fails_the_run_after_the_end_event(self) -> None:
        def fail(self: Any) -> None:
            raise OSError("disk full")

        agent, _, log = scripted_agent(
            Reply(Call("read", {"path": "x"})),
            plugins=[holding("store", record_tool_result=hookimpl(fail))],
            tools=[samples.tool()],
        )
        last = agent.run_sync("go")[-1]
        assert last.error_message == "disk full (plugin 'store', hook record_tool_result)"  # type: ignore[union-attr]
        assert log.types.index("tool_execution_end") < log.types.index("turn_end")
        assert log.types[-1] == "agent_end"
