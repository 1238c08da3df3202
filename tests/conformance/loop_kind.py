"""Scenarios that drive the loop functions."""

from __future__ import annotations

import asyncio
from typing import Any

from pi_core import (
    AbortController,
    AgentContext,
    AgentEvent,
    AgentLoopConfig,
    AgentMessage,
    Hooks,
    StreamOptions,
    agent_loop,
    agent_loop_continue,
    run_agent_loop,
    run_agent_loop_continue,
    set_default_stream,
)

from .agent_kind import WATCHDOG_SECONDS
from .scripted_hooks import Rules, plugin
from .scripted_model import ScriptedModel, stream_options
from .scripted_tools import initial_tools
from .specs import Json, messages, model, normalized, roles
from .world import World, queue_actions


async def play_loop(world: World) -> Json:
    """Play the scenario and return its trace."""
    session = _Session(world)
    driver = world.scenario["driver"]
    step: Json = {"op": driver, "ok": True}
    produced: list[AgentMessage] | None = None
    try:
        produced = await asyncio.wait_for(session.drive(driver), WATCHDOG_SECONDS)
    except TimeoutError:
        step = {"op": driver, "ok": False, "error": "did not settle", "timeout": True}
    except Exception as error:
        step = {"op": driver, "ok": False, "error": str(error)}
    finally:
        set_default_stream(None)
    return {
        "steps": [step],
        "events": world.events(),
        "newMessages": None if produced is None else normalized([each.to_json() for each in produced]),
        "callerContextRolesAfter": roles(session.context.messages),
    }


class _Session:
    """A context and a configuration under test."""

    def __init__(self, world: World) -> None:
        scenario = world.scenario
        options = scenario.get("options", {})
        self.world = world
        self.context = AgentContext(
            scenario.get("systemPrompt", ""), messages(scenario.get("messages")), initial_tools(world)
        )
        controller = AbortController()
        if options.get("abortBefore"):
            controller.abort()
        self._signal = None if options.get("noSignal") else controller.signal
        steering = world.observed_queue("steering", options.get("steeringMode"))
        follow_up = world.observed_queue("followUp", options.get("followUpMode"))
        steering.add(*messages(scenario.get("queuedSteering")))
        follow_up.add(*messages(scenario.get("queuedFollowUps")))

        def clear_all(action: Json) -> None:
            steering.clear()
            follow_up.clear()

        world.actions = {
            **queue_actions(steering, follow_up),
            "clearAllQueues": clear_all,
            "abort": lambda action: controller.abort(),
        }
        scripted = ScriptedModel(world)
        set_default_stream(scripted if options.get("defaultStreamFn") else None)
        given: Json = {}
        if not options.get("noQueues"):
            given["steering"] = self._poll("getSteeringMessages", steering)
            given["follow_up"] = self._poll("getFollowUpMessages", follow_up)
        if "toolExecution" in options:
            given["tool_execution"] = options["toolExecution"]
        if not options.get("noStreamFn") and not options.get("defaultStreamFn"):
            given["stream"] = scripted
        rules = plugin(world)
        if rules is not None:
            given["hooks"] = Hooks.over(rules)
        self._config = AgentLoopConfig(
            model=model(scenario.get("model", "test-model")),
            thinking_level=scenario.get("thinkingLevel", "off"),
            options=StreamOptions(api_key=options.get("apiKey"), **stream_options(options)),
            **given,
        )

    def _poll(self, hook: str, queue: Any) -> Any:
        rules = Rules(self.world)

        async def poll() -> list[AgentMessage]:
            if hook in self.world.scenario.get("hooks", ()):
                await rules.play(hook, {})
            drained: list[AgentMessage] = queue.drain()
            return drained

        return poll

    async def drive(self, driver: str) -> list[AgentMessage]:
        """Run the scenario's driver and return what it returns."""
        prompts = messages(self.world.scenario.get("prompts"))
        match driver:
            case "runAgentLoop":
                return await run_agent_loop(prompts, self.context, self._config, self._emit, self._signal)
            case "runAgentLoopContinue":
                return await run_agent_loop_continue(self.context, self._config, self._emit, self._signal)
            case "agentLoop":
                stream = agent_loop(prompts, self.context, self._config, self._signal)
            case "agentLoopContinue":
                stream = agent_loop_continue(self.context, self._config, self._signal)
            case _:
                raise ValueError(f"unknown driver {driver}")
        async for event in stream:
            self.world.record(event)
            await self.world.delay()
        return await stream.result()

    async def _emit(self, event: AgentEvent) -> None:
        self.world.record(event)
        await self.world.delay()
        await self.world.fire(event)
        await self.world.delay()
