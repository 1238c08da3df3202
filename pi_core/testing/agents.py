"""An agent under test and a log of its events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..agent import Agent
from ..context import AbortSignal
from ..events import AgentEvent
from .scripted import SCRIPTED_MODEL, Reply, ScriptedProvider


class EventLog:
    """A subscriber that keeps every event.

    :param agent: subscribe to it at once.
    """

    def __init__(self, agent: Agent | None = None) -> None:
        self.events: list[AgentEvent] = []
        if agent is not None:
            agent.subscribe(self)

    def __call__(self, event: AgentEvent, signal: AbortSignal | None = None) -> None:
        """Keep the event."""
        self.events.append(event)

    @property
    def types(self) -> list[str]:
        """The types of the events, in order."""
        return [event.type for event in self.events]

    def of(self, event_type: str) -> list[Any]:
        """The events of one type."""
        return [event for event in self.events if event.type == event_type]


def scripted_agent(
    *replies: Reply | str, plugins: Sequence[object] = (), **options: Any
) -> tuple[Agent, ScriptedProvider, EventLog]:
    """Return an agent on a scripted provider, the provider, and a log of the agent's events.

    :param options: further arguments of :class:`~pi_core.Agent`.
    """
    provider = ScriptedProvider(*replies)
    agent = Agent(model=SCRIPTED_MODEL, stream=provider.stream, plugins=plugins, **options)
    return agent, provider, EventLog(agent)
