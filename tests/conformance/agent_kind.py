"""Scenarios that drive an Agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from pi_core import AbortSignal, Agent, AgentEvent, ImageContent, StreamOptions, set_default_stream

from .scripted_hooks import plugin
from .scripted_model import ScriptedModel, stream_options
from .scripted_tools import initial_tools
from .specs import Json, ScriptError, message, messages, model, normalized, roles
from .world import World, call_id, queue_actions

WATCHDOG_SECONDS = 20.0


async def play_agent(world: World) -> Json:
    """Play the scenario and return its trace."""
    scenario = world.scenario
    options = scenario.get("options", {})
    scripted = ScriptedModel(world)
    set_default_stream(scripted if options.get("defaultStreamFn") else None)
    try:
        try:
            session = _Session(world, scripted)
        except Exception as error:
            return {"steps": [{"op": "construct", "error": str(error)}]}
        steps = [await session.step(step) for step in scenario["steps"]]
    finally:
        set_default_stream(None)
    state = session.snapshot()
    events = world.events()
    ends = [event for event in events if event["type"] == "agent_end"]
    return {
        "steps": steps,
        "events": events,
        "finalMessages": normalized([each.to_json() for each in session.agent.state.messages]),
        "newMessages": ends[-1]["messages"] if ends else None,
        "expectedErrors": world.expected_errors,
        "snapshots": world.snapshots,
        "state": state,
    }


class _Session:
    """An agent under test, with its observers and the actions on it."""

    def __init__(self, world: World, scripted: ScriptedModel) -> None:
        scenario = world.scenario
        options = scenario.get("options", {})
        self.world = world
        self._started: asyncio.Task[Any] | None = None
        steering = world.observed_queue("steering", options.get("steeringMode"))
        follow_up = world.observed_queue("followUp", options.get("followUpMode"))
        given: Json = {}
        if "systemPrompt" in scenario:
            given["system_prompt"] = scenario["systemPrompt"]
        if "thinkingLevel" in scenario:
            given["thinking_level"] = scenario["thinkingLevel"]
        if "messages" in scenario:
            given["messages"] = messages(scenario["messages"])
        if "tools" in scenario:
            given["tools"] = initial_tools(world)
        if "toolExecution" in options:
            given["tool_execution"] = options["toolExecution"]
        if stream_options(options):
            given["options"] = StreamOptions(**stream_options(options))
        hooks = plugin(world, lambda: roles(self.agent.state.messages))
        unset = options.get("noStreamFn") or options.get("defaultStreamFn")
        self.agent = Agent(
            model=model(scenario.get("model", "test-model")),
            stream=None if unset else scripted,
            plugins=[] if hooks is None else [hooks],
            steering_queue=steering,
            follow_up_queue=follow_up,
            abort_grace_seconds=None,
            **given,
        )
        self.agent.subscribe(self._on_event)
        for listener in scenario.get("listeners", ()):
            self._listen(listener)
        world.actions = {**queue_actions(steering, follow_up), **self._actions()}

    # --- observers ---

    def _on_event(self, event: AgentEvent, signal: AbortSignal) -> Awaitable[None] | None:
        self.world.record(event)
        watched = any(trigger["on"]["event"] == event.type for trigger in self.world.scenario.get("triggers", ()))
        return self._handle(event) if watched or self.world.variant.seed is not None else None

    async def _handle(self, event: AgentEvent) -> None:
        await self.world.delay()
        await self.world.fire(event)
        await self.world.delay()

    def _listen(self, spec: Json) -> None:
        world = self.world

        async def listener(event: AgentEvent, signal: AbortSignal) -> None:
            if event.type not in spec.get("events", (event.type,)):
                return
            if "toolCallId" in spec and call_id(event) != spec["toolCallId"]:
                return
            line = f"listener {spec['id']} {event.type}"
            world.log(f"{line} begin")
            if spec.get("unsubscribe"):
                unsubscribe()
            await world.act(spec.get("before", ()))
            await world.ticks(spec.get("ticks", 0))
            await world.delay()
            if "wait" in spec:
                await world.barrier(spec["wait"]).wait()
            await world.act(spec.get("do", ()))
            if "throw" in spec:
                raise ScriptError(spec["throw"])
            world.log(f"{line} end aborted" if signal.aborted else f"{line} end")

        unsubscribe = self.agent.subscribe(listener)

    # --- actions ---

    def _actions(self) -> Json:
        agent, state, world = self.agent, self.agent.state, self.world
        return {
            "abort": lambda action: agent.abort(),
            "clearAllQueues": lambda action: agent.clear_queues(),
            "setModel": lambda action: setattr(state, "model", model(action["model"])),
            "setThinkingLevel": lambda action: setattr(state, "thinking_level", action["level"]),
            "setSystemPrompt": lambda action: setattr(state, "system_prompt", action["value"]),
            "setTools": lambda action: setattr(state, "tools", [world.tools[key] for key in action["tools"]]),
            "setMessages": lambda action: setattr(state, "messages", messages(action["messages"])),
            "pushMessage": lambda action: state.messages.extend(messages(action["message"])),
            "setToolExecution": lambda action: setattr(agent, "tool_execution", action["mode"]),
            "snapshot": lambda action: world.snapshots.append({"name": action["name"], **self.snapshot()}),
            "tryPrompt": lambda action: self._expect_error(action["op"], agent.prompt(_prompt(action["input"]))),
            "tryContinue": lambda action: self._expect_error(action["op"], agent.continue_()),
            "tryReset": lambda action: self._expect_error(action["op"], _calling(agent.reset)),
        }

    async def _expect_error(self, op: str, attempt: Awaitable[Any]) -> None:
        error: str | None = None
        try:
            await attempt
        except Exception as raised:
            error = str(raised)
        self.world.expected_errors.append({"op": op, "error": error})

    def snapshot(self) -> Json:
        """What the agent is at the moment."""
        agent, state = self.agent, self.agent.state
        streaming = state.streaming_message
        return {
            "isStreaming": state.is_streaming,
            "streamingMessage": None if streaming is None else normalized(streaming.to_json()),
            "pendingToolCalls": sorted(state.pending_tool_calls),
            "errorMessage": state.error_message,
            "messageRoles": roles(state.messages),
            "systemPrompt": state.system_prompt,
            "toolNames": [tool.name for tool in state.tools],
            "model": state.model.id,
            "thinkingLevel": state.thinking_level,
            "hasQueuedMessages": agent.has_queued_messages,
            "signal": None if agent.signal is None else {"aborted": agent.signal.aborted},
        }

    # --- steps ---

    async def step(self, step: Json) -> Json:
        """Do one step of the scenario."""
        op = step["op"]
        if op == "start":
            self._started = asyncio.create_task(self._do(step["step"]))
            await asyncio.sleep(0)
            return {"op": op}
        await self.world.delay()
        try:
            await asyncio.wait_for(self._do(step), WATCHDOG_SECONDS)
            outcome: Json = {"op": op, "ok": True}
        except TimeoutError:
            outcome = {"op": op, "ok": False, "error": "did not settle", "timeout": True}
        except Exception as error:
            outcome = {"op": op, "ok": False, "error": str(error)}
        if op in ("prompt", "continue"):
            self.world.log(f"settled {op}")
        return outcome

    async def _do(self, step: Json) -> None:
        match step["op"]:
            case "prompt":
                images = [ImageContent.model_validate(image) for image in step.get("images", ())]
                await self.agent.prompt(_prompt(step["input"]), images)
            case "continue":
                await self.agent.continue_()
            case "reset":
                self.agent.reset()
            case "waitForIdle":
                await self.agent.wait_for_idle()
            case "join":
                assert self._started is not None
                await self._started
            case _:
                await self.world.act([step])


def _prompt(spec: Any) -> Any:
    if isinstance(spec, str):
        return spec
    return message(spec) if isinstance(spec, dict) else messages(spec)


async def _calling(function: Any) -> None:
    function()
