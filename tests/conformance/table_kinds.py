"""Scenarios that are tables of cases: single tool calls, argument validation, streamed arguments, event streams."""

from __future__ import annotations

import asyncio
from typing import Any

from pi_core import (
    AbortController,
    AgentContext,
    ArgumentsParser,
    EventStream,
    Hooks,
    Tool,
    ToolArgumentsError,
    ToolCallContent,
    run_tool_call,
)

from .scripted_hooks import plugin
from .scripted_tools import initial_tools
from .specs import Json, message
from .world import World, frozen


async def play_run_tool_call(world: World) -> Json:
    """Play single calls."""
    controller = AbortController()
    rules = plugin(world)
    given = {} if rules is None else {"hooks": Hooks.over(rules)}
    results = []
    for case in world.scenario["cases"]:
        if case.get("aborted"):
            controller.abort()
        updates: list[Json] = []
        outcome = await run_tool_call(
            ToolCallContent.model_validate(case["toolCall"]),
            tools=initial_tools(world),
            assistant_message=message({"role": "assistant", "content": [case["toolCall"]]}),
            context=AgentContext(),
            signal=controller.signal,
            on_update=None if case.get("noUpdates") else lambda result, into=updates: into.append(result.to_json()),
            **given,
        )
        value = outcome.to_json()
        if "durationMs" in value:
            value["durationMs"] = "<ms>"
        results.append({"name": case["name"], "ok": True, "value": value, "updates": updates})
    return {"results": results}


async def play_validate(world: World) -> Json:
    """Validate arguments."""
    results = []
    for case in world.scenario["cases"]:
        schema = case.get("schema", world.scenario.get("schema"))
        tool = Tool(name=case.get("tool", "t"), description="", parameters=schema, execute=_not_executed)
        try:
            value = tool.validate(frozen(case["arguments"]), case.get("argumentsError"))
            results.append({"name": case["name"], "ok": True, "value": value})
        except ToolArgumentsError as error:
            results.append({"name": case["name"], "ok": False, "paths": sorted(set(error.paths))})
    return {"results": results}


async def _not_executed(arguments: Json, context: Any) -> None:
    raise AssertionError("only validated")


async def play_streaming_json(world: World) -> Json:
    """Parse arguments that arrive in pieces."""
    results = []
    for case in world.scenario["cases"]:
        parser = ArgumentsParser()
        snapshots = []
        for chunk in case["chunks"]:
            parser.feed(chunk)
            snapshots.append(frozen(parser.value))
        arguments, error = parser.finish()
        final = {"arguments": arguments, **({} if error is None else {"argumentsError": error})}
        results.append({"name": case["name"], "snapshots": snapshots, "final": final})
    return {"results": results}


async def play_event_stream(world: World) -> Json:
    """Push into, end, read and await event streams."""
    return {"results": [await _stream_case(world, case) for case in world.scenario["cases"]]}


async def _stream_case(world: World, case: Json) -> Json:
    stream: EventStream[Json, Any] = EventStream(
        lambda event: (event.get("result"),) if event.get("complete") is True else None
    )
    reads: list[tuple[str, asyncio.Task[Any]]] = []
    for step in case["steps"]:
        if "push" in step:
            stream.push(step["push"])
        elif "end" in step:
            stream.end(*([] if step["end"] is None else [step["end"]]))
        elif "next" in step:
            reads.append(("next", asyncio.create_task(_next(stream))))
        else:
            reads.append(("result", asyncio.create_task(stream.result())))
        await world.ticks(1)
    out = [{kind: task.result() if task.done() else "pending"} for kind, task in reads]
    world.background += [task for _, task in reads]
    return {"name": case["name"], "out": out}


async def _next(stream: EventStream[Json, Any]) -> Json:
    try:
        return {"value": await anext(stream)}
    except StopAsyncIteration:
        return {"done": True}
