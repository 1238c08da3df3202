from __future__ import annotations

from pi_core import AgentEndEvent

from . import samples
from .observing import EventHook


class TestOnAgentEnd(EventHook):
    hook = "on_agent_end"
    times = 1

    def event(self) -> AgentEndEvent:
        return AgentEndEvent(samples.users(1, 2))
