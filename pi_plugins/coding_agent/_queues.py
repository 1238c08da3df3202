"""Queues that tell when they change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pi_core import AgentMessage, MessageQueue

from .events import texts


class WatchedQueue(MessageQueue):
    """A queue of messages that calls ``changed`` after every change."""

    def __init__(self, mode: Literal["all", "one-at-a-time"], changed: Callable[[], None]) -> None:
        super().__init__(mode)
        self._changed = changed

    def add(self, *messages: AgentMessage) -> None:
        """Append messages."""
        super().add(*messages)
        self._changed()

    def drain(self) -> list[AgentMessage]:
        """Take what is due."""
        taken = super().drain()
        if taken:
            self._changed()
        return taken

    def clear(self) -> None:
        """Drop everything."""
        had = len(self) > 0
        super().clear()
        if had:
            self._changed()

    def take(self, position: int) -> AgentMessage:
        """Take one message out.

        :raises IndexError: there is none at the position.
        """
        taken = self._messages.pop(position)
        self._changed()
        return taken

    @property
    def texts(self) -> tuple[str, ...]:
        """What people read of the messages."""
        return texts(self._messages)
