"""Plays a scenario and returns the trace of what happened."""

from __future__ import annotations

import asyncio
from typing import Any

from .agent_kind import play_agent
from .loop_kind import play_loop
from .proxy_kind import play_proxy
from .scripted_tools import build_tools
from .specs import Json
from .table_kinds import play_event_stream, play_run_tool_call, play_streaming_json, play_validate
from .world import Variant, World

KINDS = {
    "agent": play_agent,
    "loop": play_loop,
    "runToolCall": play_run_tool_call,
    "validate": play_validate,
    "streamingJson": play_streaming_json,
    "eventStream": play_event_stream,
    "proxy": play_proxy,
}
_TRACED = ("agent", "loop", "runToolCall")


def kind_of(scenario: Json) -> str:
    """The kind of a scenario."""
    kind: str = scenario.get("kind", "agent")
    return kind


def play(scenario: Json, variant: Variant) -> Json:
    """Play a scenario in an event loop of its own and return its trace."""
    return asyncio.run(_play(scenario, variant))


async def _play(scenario: Json, variant: Variant) -> Json:
    world = World(scenario, variant)
    build_tools(world)
    try:
        trace: dict[str, Any] = await KINDS[kind_of(scenario)](world)
    finally:
        await world.finish()
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not left, f"tasks are left running: {left}"
    trace = {"scenario": scenario["name"], **trace}
    if "events" in trace or kind_of(scenario) in _TRACED:
        trace.update(trace=world.trace, requests=world.requests, hooks=world.hooks, executions=world.executions)
    return trace
