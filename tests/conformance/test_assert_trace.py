"""What the test kit says of the events of every scenario that runs an agent: nothing."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from pi_core import AgentEvent
from pi_core.testing import trace_problems

from .agent_kind import play_agent
from .runner import kind_of
from .scripted_tools import build_tools
from .specs import Json
from .world import Variant, World


def events_of(scenario: Json) -> tuple[list[AgentEvent], bool]:
    """Play a scenario; its events, and whether one of its calls raised."""

    async def main() -> tuple[list[AgentEvent], bool]:
        world = World(scenario, Variant(late=True))
        build_tools(world)
        try:
            trace = await play_agent(world)
        finally:
            await world.finish()
        return world._events, any(step.get("ok") is False for step in trace["steps"])

    return asyncio.run(main())


def test_the_kit_finds_nothing_wrong_with_any_run(scenario_paths: list[Path]) -> None:
    found = {}
    runs = 0
    for path in scenario_paths:
        scenario = json.loads(path.read_text(encoding="utf-8"))
        if kind_of(scenario) != "agent":
            continue
        events, raised = events_of(scenario)
        if events:
            runs += 1
            problems = trace_problems(events, raised=raised)
            if problems:
                found[path.stem] = problems
    assert found == {}
    assert runs
