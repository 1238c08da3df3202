"""The scripted hooks: the rules of a scenario as one plugin object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from pi_core import (
    AgentMessage,
    Block,
    Model,
    RunContext,
    ToolCall,
    ToolResult,
    ToolResultPatch,
    Turn,
    TurnUpdate,
    hookimpl,
)

from .specs import Json, ScriptError, edited, message, messages, model, result_fields, roles
from .world import World, frozen


class Rules:
    """Finds and plays the rule of an invocation; the plugin's methods call it."""

    def __init__(self, world: World, agent_roles: Callable[[], list[str]] | None = None) -> None:
        self.world = world
        self.agent_roles = agent_roles
        self._invocations: Counter[str] = Counter()

    async def play(
        self,
        hook: str,
        facts: Json,
        *,
        received: list[Any] | None = None,
        call: ToolCall | None = None,
    ) -> Json:
        """Record an invocation, do what its rule says, and return the rule; its result is up to the caller.

        :param received: the message list the hook got, which the rule may edit in place.
        """
        self._invocations[hook] += 1
        nth = self._invocations[hook]
        about = {} if call is None else {"toolCallId": call.id, "toolName": call.name}
        self.world.log(f"hook {hook}" if call is None else f"hook {hook} {call.id}")
        self.world.hooks.append(frozen({"hook": hook, "nth": nth, **about, **facts}))
        conditions = {"nth": nth, **about}
        rule: Json = {}
        for candidate in self.world.scenario["hooks"][hook]:
            if all(candidate[key] == value for key, value in conditions.items() if key in candidate):
                rule = candidate
                break
        if call is not None and "mutateArgs" in rule:
            call.arguments.update(rule["mutateArgs"])
        await self.world.delay()
        await self.world.act(rule.get("do", ()))
        if "wait" in rule:
            await self.world.barrier(rule["wait"]).wait()
        if "throw" in rule:
            raise ScriptError(rule["throw"])
        if received is not None:
            received += messages(rule.get("pushInPlace"))
            if rule.get("clearInPlace"):
                received.clear()
        await self.world.delay()
        return rule


def plugin(world: World, agent_roles: Callable[[], list[str]] | None = None) -> Rules | None:
    """The plugin object with the hooks the scenario lists; ``None`` when it lists none that a plugin implements.

    :param agent_roles: returns the roles of the agent's messages.
    """
    listed = [_METHODS[hook] for hook in world.scenario.get("hooks", ()) if hook in _METHODS]
    if not listed:
        return None
    made = type("ScenarioPlugin", (Rules,), {method.__name__: method for method in listed})
    return made(world, agent_roles)


def _aborted(ctx: RunContext) -> bool | None:
    return None if ctx.signal is None else ctx.signal.aborted


@hookimpl
async def transform_context(self: Rules, messages: list[AgentMessage], ctx: RunContext) -> list[AgentMessage]:
    facts = {"roles": roles(messages), "aborted": _aborted(ctx)}
    rule = await self.play("transformContext", facts, received=messages)
    return edited(messages, rule["edit"]) if "edit" in rule else messages


@hookimpl
async def convert_to_llm(self: Rules, messages: list[AgentMessage]) -> list[Any]:
    rule = await self.play("convertToLlm", {"roles": roles(messages)}, received=messages)
    if rule.get("identity"):
        return messages
    mapped = rule.get("mapRoles", {})
    kept = [each for each in messages if each.role not in rule.get("dropRoles", ())]
    return [message({**each.to_json(), "role": mapped[each.role]}) if each.role in mapped else each for each in kept]


@hookimpl
async def get_api_key(self: Rules, provider: str) -> str | None:
    rule = await self.play("getApiKey", {"provider": provider})
    return rule.get("return")


@hookimpl
async def before_tool_call(self: Rules, call: ToolCall, ctx: RunContext) -> Block | None:
    facts = {
        "rawArguments": call.raw_arguments,
        "args": call.arguments,
        "assistantStopReason": call.message.stop_reason,
        "contextRoles": roles(ctx.messages),
        "aborted": _aborted(ctx),
    }
    if self.agent_roles is not None:
        facts["stateRoles"] = self.agent_roles()
    answer = (await self.play("beforeToolCall", facts, call=call)).get("return") or {}
    return Block(answer.get("reason", ""), terminate=answer.get("terminate")) if answer.get("block") else None


@hookimpl
async def after_tool_call(
    self: Rules, call: ToolCall, result: ToolResult, is_error: bool, ctx: RunContext
) -> ToolResultPatch | None:
    facts = {
        "args": call.arguments,
        "result": result.to_json(),
        "isError": is_error,
        "contextRoles": roles(ctx.messages),
        "aborted": _aborted(ctx),
    }
    answer = (await self.play("afterToolCall", facts, call=call)).get("return")
    if answer is None:
        return None
    fields = result_fields(answer)
    if fields.get("structured_content", ...) is None:
        del fields["structured_content"]
    return ToolResultPatch(**fields)


def _turn_facts(turn: Turn) -> Json:
    return {
        "stopReason": turn.message.stop_reason,
        "toolResults": [result.tool_call_id for result in turn.tool_results],
        "contextRoles": roles(turn.context.messages),
        "newMessageRoles": roles(turn.new_messages),
    }


@hookimpl
async def should_stop_after_turn(self: Rules, turn: Turn) -> bool | None:
    rule = await self.play("shouldStopAfterTurn", _turn_facts(turn), received=turn.context.messages)
    return rule.get("return")


@hookimpl
async def prepare_next_turn(self: Rules, turn: Turn) -> TurnUpdate | None:
    rule = await self.play("prepareNextTurn", _turn_facts(turn), received=turn.context.messages)
    answer = rule.get("return")
    if answer is None:
        return None
    update = TurnUpdate(
        model=model(answer["model"]) if "model" in answer else None,
        thinking_level=answer.get("thinkingLevel"),
        messages=messages(answer["messages"]) if "messages" in answer else None,
    )
    if "context" in answer:
        edit = answer["context"]
        tools = turn.context.tools if "tools" not in edit else [self.world.tools[key] for key in edit["tools"]]
        update.context = turn.context.copy(
            messages=edited(turn.context.messages, edit),
            tools=[] if edit.get("omitTools") else tools,
            system_prompt=edit.get("systemPrompt", turn.context.system_prompt),
        )
    return update


@hookimpl
async def provider_payload(self: Rules, payload: Any, model: Model) -> Any:
    rule = await self.play("onPayload", {"payload": payload, "model": model.id})
    return rule.get("return")


@hookimpl
async def provider_response(self: Rules, status: int, headers: Mapping[str, str], model: Model) -> None:
    response = {"status": status, "headers": dict(headers)}
    await self.play("onResponse", {"response": response, "model": model.id})


@hookimpl
async def provider_headers(self: Rules, headers: dict[str, str | None]) -> dict[str, str | None]:
    rule = await self.play("transformHeaders", {"headers": headers})
    return {**headers, **rule.get("return", {})}


_METHODS = {
    "transformContext": transform_context,
    "convertToLlm": convert_to_llm,
    "getApiKey": get_api_key,
    "beforeToolCall": before_tool_call,
    "afterToolCall": after_tool_call,
    "shouldStopAfterTurn": should_stop_after_turn,
    "prepareNextTurn": prepare_next_turn,
    "onPayload": provider_payload,
    "onResponse": provider_response,
    "transformHeaders": provider_headers,
}
