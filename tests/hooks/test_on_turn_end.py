from __future__ import annotations

from pi_core import TurnEndEvent

from . import samples
from .observing import EventHook


class TestOnTurnEnd(EventHook):
    hook = "on_turn_end"
    times = 2

    def event(self) -> TurnEndEvent:
        return TurnEndEvent(samples.say(1), [samples.result_message()])
