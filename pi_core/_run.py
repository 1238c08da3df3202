"""What the functions of one run share, and how they announce what happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .context import AbortSignal, AgentContext, RunContext
from .errors import HookError
from .events import AgentEvent, MessageEndEvent, MessageStartEvent
from .hooks import Hooks
from .messages import AgentMessage

ToolExecution: TypeAlias = Literal["parallel", "sequential"]
Emit: TypeAlias = Callable[[AgentEvent], Awaitable[None] | None]
"""Announces an event; what it returns is awaited when it is not ``None``."""


@dataclass(slots=True)
class Run:
    """What the functions of one run share.

    :param hooked: the hooks that somebody implements; what is registered later takes part in the next run.
    :param sink: takes the events in, after the hooks of those that are ``watched``.
    :param watched: the types of the events whose hooks somebody implements.
    :param cancel: called once when the run fails, before calls that still run are cancelled.
    :param failed: whether the run has failed, so that nothing more may be announced.
    """

    context: AgentContext
    hooks: Hooks
    ctx: RunContext
    hooked: frozenset[str]
    sink: Emit
    signal: AbortSignal | None
    new_messages: list[AgentMessage]
    watched: frozenset[type[AgentEvent]] = frozenset()
    tool_execution: ToolExecution = "parallel"
    abort_grace_seconds: float | None = None
    cancel: Callable[[], None] | None = None
    failed: bool = False

    @property
    def aborted(self) -> bool:
        """Whether the run's signal is aborted."""
        return self.signal is not None and self.signal.aborted

    async def say(self, event: AgentEvent) -> None:
        """Announce an event and wait until it was handled."""
        if self.failed:
            self.check()
        pending = self._watch(event) if type(event) in self.watched else self.sink(event)
        if pending is not None:
            await pending

    def announcer(self, kind: type[AgentEvent]) -> Emit:
        """Return what announces the events of a type where :meth:`say` is too much, as once per delta."""
        return self._watch if kind in self.watched else self.sink

    async def _watch(self, event: AgentEvent) -> None:
        """Call the ``on_*`` hook of an event, then let it be taken in."""
        await self.hooks.notify_event(event, self.ctx)
        pending = self.sink(event)
        if pending is not None:
            await pending

    def check(self) -> None:
        """End a call that goes on although the run has failed.

        :raises asyncio.CancelledError: it has.
        """
        if self.failed:
            raise asyncio.CancelledError("the run has failed")

    async def close_message(self, message: AgentMessage) -> None:
        """Let the message be recorded, then announce its end; it is announced even when recording fails the run."""
        try:
            if "record_message" in self.hooked:
                await self.hooks.record_message(message, self.ctx)
        except HookError:
            await self.say(MessageEndEvent(message))
            raise
        await self.say(MessageEndEvent(message))

    async def add_message(self, message: AgentMessage) -> None:
        """Announce a complete message."""
        await self.say(MessageStartEvent(message))
        await self.close_message(message)
