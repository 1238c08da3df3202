from __future__ import annotations

from pi_core import ToolExecutionEndEvent

from . import samples
from .observing import EventHook


class TestOnToolExecutionEnd(EventHook):
    hook = "on_tool_execution_end"
    times = 1

    def event(self) -> ToolExecutionEndEvent:
        return ToolExecutionEndEvent("call_1", "read", samples.result(), False, 3)
