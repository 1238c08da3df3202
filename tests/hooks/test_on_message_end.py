from __future__ import annotations

from pi_core import MessageEndEvent

from . import samples
from .observing import EventHook


class TestOnMessageEnd(EventHook):
    hook = "on_message_end"
    times = 4

    def event(self) -> MessageEndEvent:
        return MessageEndEvent(samples.user(1))
