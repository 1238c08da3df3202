"""pi-ai-python: its agent with a scripted stream that fills one message as its own adapters do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pi_ai
from pi_agent import Agent, AgentInitialState, AgentTool, AgentToolResult
from pi_ai.providers.faux import faux_provider
from pi_ai.utils.text import append_text

from ..work import DELTA, PARALLEL_SECONDS, Work

MODEL = faux_provider().get_model()
SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


class Counter:
    def __init__(self) -> None:
        self.events = self.deltas = 0

    def __call__(self, event: Any, signal: Any = None) -> None:
        self.events += 1
        if event.type == "message_update" and event.assistant_message_event.type == "text_delta":
            self.deltas += 1


def streamed(fill: Callable[[Any, Any], None], reason: str) -> Any:
    """Return a stream that is filled as soon as somebody waits for it."""
    stream = pi_ai.AssistantMessageEventStream()
    out = pi_ai.AssistantMessage([], api="scripted", provider="scripted", model="scripted", stop_reason=reason)

    async def drive() -> None:
        stream.push(pi_ai.StartEvent(out))
        fill(stream, out)
        stream.push(pi_ai.DoneEvent(reason, out))

    stream.start(drive())
    return stream


def add_block(stream: Any, out: Any, index: int, block: Any) -> None:
    out.content.append(block)
    if block.type == "text":
        stream.push(pi_ai.TextStartEvent(index, out))
        stream.push(pi_ai.TextDeltaEvent(index, block.text, out))
        stream.push(pi_ai.TextEndEvent(index, block.text, out))
    else:
        stream.push(pi_ai.ToolCallStartEvent(index, out))
        stream.push(pi_ai.ToolCallDeltaEvent(index, json.dumps(block.arguments), out))
        stream.push(pi_ai.ToolCallEndEvent(index, block, out))


def scripted(script: list[list[Any]]) -> Any:
    left = iter(script)

    def stream(model: Any, context: Any, options: Any = None, **_: Any) -> Any:
        blocks = next(left)

        def fill(stream: Any, out: Any) -> None:
            for index, block in enumerate(blocks):
                add_block(stream, out, index, block)

        return streamed(fill, "stop" if blocks[0].type == "text" else "toolUse")

    return stream


async def echo(call: Any, arguments: Any, signal: Any = None, on_update: Any = None) -> AgentToolResult:
    return AgentToolResult([pi_ai.TextContent("ok")], {})


async def slow(call: Any, arguments: Any, signal: Any = None, on_update: Any = None) -> AgentToolResult:
    await asyncio.sleep(PARALLEL_SECONDS)
    return AgentToolResult([pi_ai.TextContent("ok")], {})


def make(stream: Any, *functions: Any) -> tuple[Agent, Counter]:
    tools = [
        AgentTool(name=one.__name__, description=one.__name__, label=one.__name__, parameters=SCHEMA, execute=one)
        for one in functions
    ]
    agent = Agent(initial_state=AgentInitialState(system_prompt="", model=MODEL, tools=tools), stream_fn=stream)
    counter = Counter()
    agent.subscribe(counter)
    return agent, counter


def call(number: int, position: int, name: str) -> Any:
    return pi_ai.ToolCall(f"call_{number}_{position}", name, {"x": number})


def turns(n: int) -> Work:
    script = [*([call(number, 0, "echo")] for number in range(n)), [pi_ai.TextContent("done")]]
    agent, counter = make(scripted(script), echo)

    def check() -> None:
        assert sum(one.role == "toolResult" for one in agent.state.messages) == n
        assert counter.events > 10 * n, counter.events

    return Work(lambda: agent.prompt("hi"), check)


def deltas(n: int) -> Work:
    def fill(stream: Any, out: Any) -> None:
        block = pi_ai.TextContent("")
        out.content.append(block)
        stream.push(pi_ai.TextStartEvent(0, out))
        for _ in range(n):
            append_text(block, DELTA)
            stream.push(pi_ai.TextDeltaEvent(0, DELTA, out))
        stream.push(pi_ai.TextEndEvent(0, block.text, out))

    agent, counter = make(lambda model, context, options=None, **_: streamed(fill, "stop"))

    def check() -> None:
        assert counter.deltas == n
        assert agent.state.messages[-1].content[0].text == DELTA * n

    return Work(lambda: agent.prompt("hi"), check)


def parallel(n: int) -> Work:
    script = [[call(0, position, "slow") for position in range(n)], [pi_ai.TextContent("done")]]
    agent, _ = make(scripted(script), slow)

    def check() -> None:
        order = [one.tool_call_id for one in agent.state.messages if one.role == "toolResult"]
        assert order == [f"call_0_{position}" for position in range(n)]

    return Work(lambda: agent.prompt("hi"), check)


CASES = {"turns": turns, "deltas": deltas, "parallel": parallel}
