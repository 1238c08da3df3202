"""The scripted tools: what a call of each does, step by step."""

from __future__ import annotations

import asyncio
from typing import Any

from pi_core import Tool, ToolContext, ToolResult

from .scripted_model import first_of
from .specs import Json, ScriptError, tool_result
from .world import World, frozen


def build_tools(world: World) -> None:
    """Make the tools of the scenario; the world has them by key."""
    for spec in world.scenario.get("tools", ()):
        world.tools[spec.get("key", spec["name"])] = _tool(world, spec)


def initial_tools(world: World) -> list[Tool]:
    """The tools a run starts with."""
    return [world.tools[key] for key in world.scenario.get("initialTools", world.tools)]


def _tool(world: World, spec: Json) -> Tool:
    name = spec["name"]

    async def execute(arguments: Json, context: ToolContext) -> ToolResult:
        return await _execute(world, spec, arguments, context)

    def prepare(arguments: Any) -> Any:
        world.log(f"hook prepareArguments {name}")
        rule = spec["prepareArguments"]
        if "throw" in rule:
            raise ScriptError(rule["throw"])
        if rule.get("identity"):
            return arguments
        renamed = {rule.get("rename", {}).get(key, key): value for key, value in arguments.items()}
        return {**renamed, **rule.get("set", {})}

    return Tool(
        name=name,
        description=spec.get("description", f"{name} tool"),
        parameters=spec.get("parameters", {"type": "object", "properties": {}}),
        execute=execute,
        execution_mode=spec.get("executionMode"),
        prepare_arguments=prepare if "prepareArguments" in spec else None,
        constrained_sampling=spec.get("constrainedSampling"),
    )


async def _execute(world: World, spec: Json, arguments: Json, context: ToolContext) -> ToolResult:
    call, signal = context.tool_call_id, context.signal
    world.log(f"execute {call} {spec['name']}")
    aborted = None if signal is None else signal.aborted
    entry = {"toolCallId": call, "toolName": spec["name"], "args": frozen(arguments), "aborted": aborted}
    world.executions.append(entry)
    await world.ticks(1)
    behavior = spec.get("behavior", [{"return": {"text": "ok"}}])
    if isinstance(behavior, dict):
        behavior = behavior.get(call, behavior.get("default", []))
    for step in behavior:
        await world.delay()
        ((kind, value),) = step.items()
        match kind:
            case "wait":
                await world.barrier(value).wait()
            case "waitOrAbort":
                await first_of(world.barrier(value).wait(), *([] if signal is None else [signal.wait()]))
            case "ticks":
                await world.ticks(value)
            case "throwIfAborted":
                if signal is not None and signal.aborted:
                    raise ScriptError(value)
            case "update":
                world.log(f"update {call}")
                context.update(tool_result(value))
                await world.ticks(1)
            case "updateLater":
                world.background.append(asyncio.create_task(_update_later(world, value, context)))
            case "mutateArgs":
                arguments.update(value)
            case "do":
                await world.act(value)
            case "throw" | "throwValue":
                raise ScriptError(value)
            case "return":
                return tool_result(value)
            case _:
                raise ValueError(f"unknown tool step {kind}")
    return tool_result({"text": "ok"})


async def _update_later(world: World, update: Json, context: ToolContext) -> None:
    await world.barrier(update["barrier"]).wait()
    world.log(f"update-late {context.tool_call_id}")
    context.update(tool_result(update["result"]))
