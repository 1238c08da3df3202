from __future__ import annotations

from pi_core import AgentStartEvent

from .observing import EventHook


class TestOnAgentStart(EventHook):
    hook = "on_agent_start"
    times = 1

    def event(self) -> AgentStartEvent:
        return AgentStartEvent()
