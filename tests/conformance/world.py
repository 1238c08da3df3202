"""What everything scripted shares: the trace being recorded, barriers, triggers, and the actions of a scenario."""

from __future__ import annotations

import asyncio
import copy
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pi_core import AgentEvent, AgentMessage, MessageQueue, MessageUpdateEvent

from .specs import Json, ScriptError, messages, normalized

TICK = 60
"""Passes of the event loop in one tick: more than any chain of callbacks needs, delays included."""
DELAYS = (0, 0, 0, 1, 2, 5)


@dataclass(frozen=True)
class Variant:
    """How a scenario is played; the trace must be the same.

    :param late: read what an event carries after the run, not when it arrives.
    :param pushed: the model pushes its events into a stream instead of yielding them.
    :param seed: of random delays at every point that the harness controls; ``None`` for no delays.
    """

    late: bool = False
    pushed: bool = False
    seed: int | None = None


class World:
    """One play of one scenario."""

    def __init__(self, scenario: Json, variant: Variant) -> None:
        self.scenario = scenario
        self.variant = variant
        self.actions: dict[str, Callable[[Json], Any]] = {}
        self.trace: list[str] = []
        self.requests: list[Json] = []
        self.hooks: list[Json] = []
        self.executions: list[Json] = []
        self.expected_errors: list[Json] = []
        self.snapshots: list[Json] = []
        self.tools: dict[str, Any] = {}
        self.background: list[asyncio.Task[Any]] = []
        self.kept: list[Any] = []
        self._events: list[Any] = []
        self._barriers: dict[str, asyncio.Event] = {}
        self._matches: Counter[int] = Counter()
        self._random = None if variant.seed is None else random.Random(variant.seed)

    # --- time ---

    def barrier(self, name: str) -> asyncio.Event:
        """The latch of a name."""
        return self._barriers.setdefault(name, asyncio.Event())

    async def ticks(self, count: int) -> None:
        """Let run whatever can run, ``count`` times."""
        for _ in range(count * TICK):
            await asyncio.sleep(0)

    async def delay(self) -> None:
        """Wait for a few passes of the event loop if this play has delays."""
        if self._random is not None:
            for _ in range(self._random.choice(DELAYS)):
                await asyncio.sleep(0)

    # --- recording ---

    def log(self, line: str) -> None:
        """Append a line to the trace."""
        self.trace.append(line)

    def record(self, event: AgentEvent) -> None:
        """Record an event and its line."""
        self._events.append(event if self.variant.late else event.to_json())
        line = f"event {event.type}"
        if isinstance(event, MessageUpdateEvent):
            line += f" {event.assistant_message_event.type}"
        elif event.type in ("message_start", "message_end"):
            line += f" {event.message.role}"
            if event.message.role == "toolResult":
                line += f" {event.message.tool_call_id}"
        elif event.type.startswith("tool_execution_"):
            line += f" {event.tool_call_id}"
        self.log(line)

    def events(self) -> list[Json]:
        """The recorded events."""
        return [normalized(event if isinstance(event, dict) else event.to_json()) for event in self._events]

    def observed_queue(self, name: str, mode: str | None) -> MessageQueue:
        """A queue whose drains leave a line in the trace."""
        return _ObservedQueue(self, name, mode or "one-at-a-time")

    # --- triggers and actions ---

    async def fire(self, event: AgentEvent) -> None:
        """Run the triggers of an event."""
        for position, trigger in enumerate(self.scenario.get("triggers", ())):
            condition = trigger["on"]
            if matches(event, condition):
                self._matches[position] += 1
                if condition.get("nth", 1) in ("every", self._matches[position]):
                    await self.act(trigger["do"])

    async def act(self, actions: Iterable[Json]) -> None:
        """Run actions one after another."""
        for action in actions:
            await self.delay()
            op = action["op"]
            if op == "throw":
                raise ScriptError(action["message"])
            self.log(f"action {op} {action['barrier']}" if op == "release" else f"action {op}")
            if op == "release":
                self.barrier(action["barrier"]).set()
                await self.ticks(1)
            elif op == "ticks":
                await self.ticks(action["n"])
            else:
                pending = self.actions[op](action)
                if pending is not None:
                    await pending

    async def finish(self) -> None:
        """End what the script left running."""
        for task in self.background:
            task.cancel()
        for outcome in await asyncio.gather(*self.background, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome


class _ObservedQueue(MessageQueue):
    def __init__(self, world: World, name: str, mode: Any) -> None:
        super().__init__(mode)
        self._world = world
        self._name = name

    def drain(self) -> list[AgentMessage]:
        taken = super().drain()
        self._world.log(f"drain {self._name} {len(taken)}")
        return taken


def queue_actions(steering: MessageQueue, follow_up: MessageQueue) -> dict[str, Callable[[Json], Any]]:
    """The actions on the two queues."""

    def set_mode(queue: MessageQueue, action: Json) -> None:
        queue.mode = action["mode"]

    return {
        "steer": lambda action: steering.add(*messages(action["message"])),
        "followUp": lambda action: follow_up.add(*messages(action["message"])),
        "clearSteeringQueue": lambda action: steering.clear(),
        "clearFollowUpQueue": lambda action: follow_up.clear(),
        "setSteeringMode": lambda action: set_mode(steering, action),
        "setFollowUpMode": lambda action: set_mode(follow_up, action),
    }


def call_id(event: AgentEvent) -> str | None:
    """The call an event is about: its own, or that of its tool result message."""
    own = getattr(event, "tool_call_id", None)
    if own is None and event.type in ("message_start", "message_end"):
        own = getattr(event.message, "tool_call_id", None)
    return own


def matches(event: AgentEvent, condition: Json) -> bool:
    """Whether an event is what the condition of a trigger asks for."""
    if event.type != condition["event"]:
        return False
    found: Json = {}
    if "toolCallId" in condition:
        found["toolCallId"] = call_id(event)
    if "toolName" in condition:
        found["toolName"] = getattr(event, "tool_name", None)
    if "update" in condition and isinstance(event, MessageUpdateEvent):
        found["update"] = event.assistant_message_event.type
    if "role" in condition or "stopReason" in condition:
        message = getattr(event, "message", None)
        found["role"], found["stopReason"] = getattr(message, "role", None), getattr(message, "stop_reason", None)
    return all(found.get(key) == condition[key] for key in condition if key not in ("event", "nth"))


def frozen(value: Any) -> Any:
    """A copy of recorded data that later changes do not reach."""
    return copy.deepcopy(value)
