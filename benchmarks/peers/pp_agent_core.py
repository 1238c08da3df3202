"""pp-agent-core: its agent with a scripted stream that fills one message as its own adapters do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from pi_agent import Agent, AgentTool, AgentToolResult
from pi_agent.agent import MutableAgentState
from pi_ai import types
from pi_ai.utils.event_stream import AssistantMessageEventStream

from ..work import DELTA, PARALLEL_SECONDS, Work

MODEL = types.Model(id="scripted", name="scripted", api="scripted", provider="scripted", base_url="")
SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


class Counter:
    def __init__(self) -> None:
        self.events = self.deltas = 0

    def __call__(self, event: Any, signal: Any = None) -> None:
        self.events += 1
        if event.type == "message_update" and event.assistant_message_event.type == "text_delta":
            self.deltas += 1


def message(reason: str) -> types.AssistantMessage:
    return types.AssistantMessage(
        role="assistant", content=[], api="scripted", provider="scripted", model="scripted", stop_reason=reason
    )


def streamed(fill: Callable[[Any, Any], None], reason: str) -> AssistantMessageEventStream:
    """Return a stream that is filled as soon as somebody waits for it."""
    stream, out = AssistantMessageEventStream(), message(reason)

    async def drive() -> None:
        stream.push(types.StartEvent(partial=out))
        fill(stream, out)
        stream.push(types.DoneEvent(reason=reason, message=out))

    stream.task = asyncio.ensure_future(drive())
    return stream


def add_block(stream: Any, out: Any, index: int, block: Any) -> None:
    out.content.append(block)
    at = {"content_index": index, "partial": out}
    if block.type == "text":
        stream.push(types.TextStartEvent(**at))
        stream.push(types.TextDeltaEvent(delta=block.text, **at))
        stream.push(types.TextEndEvent(content=block.text, **at))
    else:
        stream.push(types.ToolCallStartEvent(**at))
        stream.push(types.ToolCallDeltaEvent(delta=json.dumps(block.arguments), **at))
        stream.push(types.ToolCallEndEvent(tool_call=block, **at))


def scripted(script: list[list[Any]]) -> Any:
    left = iter(script)

    def stream(model: Any, context: Any, options: Any = None, **_: Any) -> AssistantMessageEventStream:
        blocks = next(left)

        def fill(stream: Any, out: Any) -> None:
            for index, block in enumerate(blocks):
                add_block(stream, out, index, block)

        return streamed(fill, "stop" if blocks[0].type == "text" else "toolUse")

    return stream


async def echo(call: Any, arguments: Any, signal: Any = None, on_update: Any = None) -> AgentToolResult:
    return AgentToolResult(content=[types.TextContent(text="ok")], details={})


async def slow(call: Any, arguments: Any, signal: Any = None, on_update: Any = None) -> AgentToolResult:
    await asyncio.sleep(PARALLEL_SECONDS)
    return AgentToolResult(content=[types.TextContent(text="ok")], details={})


def make(stream: Any, *functions: Any) -> tuple[Agent, Counter]:
    agent = Agent(stream, initial_state=MutableAgentState(system_prompt="", model=MODEL))
    agent.state.tools = [
        AgentTool(name=one.__name__, description=one.__name__, label=one.__name__, parameters=SCHEMA, execute=one)
        for one in functions
    ]
    counter = Counter()
    agent.subscribe(counter)
    return agent, counter


def call(number: int, position: int, name: str) -> types.ToolCall:
    return types.ToolCall(id=f"call_{number}_{position}", name=name, arguments={"x": number})


def done() -> list[Any]:
    return [types.TextContent(text="done")]


def turns(n: int) -> Work:
    agent, counter = make(scripted([*([call(number, 0, "echo")] for number in range(n)), done()]), echo)

    def check() -> None:
        assert sum(one.role == "toolResult" for one in agent.state.messages) == n
        assert counter.events > 10 * n, counter.events

    return Work(lambda: agent.prompt("hi"), check)


def deltas(n: int) -> Work:
    def fill(stream: Any, out: Any) -> None:
        block = types.TextContent(text="")
        out.content.append(block)
        stream.push(types.TextStartEvent(content_index=0, partial=out))
        for _ in range(n):
            block.text += DELTA
            stream.push(types.TextDeltaEvent(content_index=0, delta=DELTA, partial=out))
        stream.push(types.TextEndEvent(content_index=0, content=block.text, partial=out))

    agent, counter = make(lambda model, context, options=None, **_: streamed(fill, "stop"))

    def check() -> None:
        assert counter.deltas == n
        assert agent.state.messages[-1].content[0].text == DELTA * n

    return Work(lambda: agent.prompt("hi"), check)


def parallel(n: int) -> Work:
    agent, _ = make(scripted([[call(0, position, "slow") for position in range(n)], done()]), slow)

    def check() -> None:
        order = [one.tool_call_id for one in agent.state.messages if one.role == "toolResult"]
        assert order == [f"call_0_{position}" for position in range(n)]

    return Work(lambda: agent.prompt("hi"), check)


CASES = {"turns": turns, "deltas": deltas, "parallel": parallel}
