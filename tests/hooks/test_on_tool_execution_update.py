from __future__ import annotations

from typing import Any

from pi_core import ToolContext, ToolExecutionUpdateEvent, hookimpl, tool
from pi_core.testing import Call, Reply, scripted_agent

from . import samples
from .making import holding
from .observing import EventHook


class TestOnToolExecutionUpdate(EventHook):
    hook = "on_tool_execution_update"
    times = 0

    def event(self) -> ToolExecutionUpdateEvent:
        return ToolExecutionUpdateEvent("call_1", "read", {"path": "a"}, samples.result())

    def test_every_report_of_a_tool_arrives(self) -> None:
        @tool
        async def count(context: ToolContext) -> str:
            """Count."""
            context.update("one")
            context.update("two")
            return "three"

        texts: list[str] = []

        def observe(self: Any, event: ToolExecutionUpdateEvent) -> None:
            texts.extend(block.text for block in event.partial_result.content or [])  # type: ignore[union-attr]

        agent, _, log = scripted_agent(
            Reply(Call("count")), "done", plugins=[holding("w", **{self.hook: hookimpl(observe)})], tools=[count]
        )
        agent.run_sync("go")
        assert texts == ["one", "two"]
        assert len(log.of("tool_execution_update")) == 2
