from __future__ import annotations

from pi_core import ToolExecutionStartEvent

from .observing import EventHook


class TestOnToolExecutionStart(EventHook):
    hook = "on_tool_execution_start"
    times = 1

    def event(self) -> ToolExecutionStartEvent:
        return ToolExecutionStartEvent("call_1", "read", {"path": "a"})
