from __future__ import annotations

from pi_core import MessageStartEvent

from . import samples
from .observing import EventHook


class TestOnMessageStart(EventHook):
    hook = "on_message_start"
    times = 4

    def event(self) -> MessageStartEvent:
        return MessageStartEvent(samples.user(1))
