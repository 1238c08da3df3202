from __future__ import annotations

from pi_core import TurnStartEvent

from .observing import EventHook


class TestOnTurnStart(EventHook):
    hook = "on_turn_start"
    times = 2

    def event(self) -> TurnStartEvent:
        return TurnStartEvent()
