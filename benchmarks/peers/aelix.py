"""aelix-agent-core: its agent with a scripted stream that makes messages anew for each event, as its adapter does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from aelix_agent_core import Agent, AgentOptions
from aelix_agent_core.types import AgentState, AgentTool
from aelix_ai import streaming
from aelix_ai.messages import AssistantMessage, TextContent, ToolCallContent
from aelix_ai.tools import ToolResult

from ..work import DELTA, PARALLEL_SECONDS, Work

SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


class Counter:
    def __init__(self) -> None:
        self.events = self.deltas = 0

    def __call__(self, event: Any) -> None:
        self.events += 1
        if event.type == "message_update" and event.assistant_message_event.type == "text_delta":
            self.deltas += 1


def block_events(index: int, block: Any, partial: AssistantMessage) -> list[Any]:
    at = {"content_index": index, "partial": partial}
    if block.type == "text":
        return [
            streaming.TextStartEvent(**at),
            streaming.TextDeltaEvent(delta=block.text, **at),
            streaming.TextEndEvent(content=block.text, **at),
        ]
    return [
        streaming.ToolCallStartEvent(**at),
        streaming.ToolCallDeltaEvent(delta=json.dumps(block.input), **at),
        streaming.ToolCallEndEvent(tool_call=block, **at),
    ]


def scripted(script: list[list[Any]]) -> Any:
    left = iter(script)

    async def stream(model: Any, context: Any, options: Any = None) -> AsyncIterator[Any]:
        blocks = next(left)
        reason = "stop" if blocks[0].type == "text" else "toolUse"
        yield streaming.AssistantStartEvent(partial=AssistantMessage(content=[]))
        for index, block in enumerate(blocks):
            for event in block_events(index, block, AssistantMessage(content=blocks[: index + 1])):
                yield event
        message = AssistantMessage(content=blocks, stop_reason=reason)
        yield streaming.AssistantDoneEvent(reason=reason, message=message)

    return stream


async def echo(arguments: Any, context: Any) -> ToolResult:
    return ToolResult(content=[TextContent(text="ok")])


async def slow(arguments: Any, context: Any) -> ToolResult:
    await asyncio.sleep(PARALLEL_SECONDS)
    return ToolResult(content=[TextContent(text="ok")])


def make(stream: Any, *functions: Any) -> tuple[Agent, Counter]:
    tools = [
        AgentTool(name=one.__name__, description=one.__name__, parameters=SCHEMA, execute=one) for one in functions
    ]
    agent = Agent(AgentOptions(initial_state=AgentState(tools=tools), stream_fn=stream))
    counter = Counter()
    agent.subscribe(counter)
    return agent, counter


def call(number: int, position: int, name: str) -> ToolCallContent:
    return ToolCallContent(tool_call_id=f"call_{number}_{position}", tool_name=name, input={"x": number})


def turns(n: int) -> Work:
    script = [*([call(number, 0, "echo")] for number in range(n)), [TextContent(text="done")]]
    agent, counter = make(scripted(script), echo)

    def check() -> None:
        assert len(agent.state.messages) == 2 * n + 2
        assert counter.events > 10 * n, counter.events

    return Work(lambda: agent.prompt("hi"), check)


def deltas(n: int) -> Work:
    async def stream(model: Any, context: Any, options: Any = None) -> AsyncIterator[Any]:
        block = TextContent(text="")
        yield streaming.AssistantStartEvent(partial=AssistantMessage(content=[]))
        yield streaming.TextStartEvent(content_index=0, partial=AssistantMessage(content=[block]))
        for _ in range(n):
            block = replace(block, text=block.text + DELTA)
            partial = AssistantMessage(content=[block])
            yield streaming.TextDeltaEvent(delta=DELTA, content_index=0, partial=partial)
        message = AssistantMessage(content=[block], stop_reason="stop")
        yield streaming.TextEndEvent(content_index=0, content=block.text, partial=message)
        yield streaming.AssistantDoneEvent(reason="stop", message=message)

    agent, counter = make(stream)

    def check() -> None:
        assert counter.deltas == n
        assert agent.state.messages[-1].content[0].text == DELTA * n

    return Work(lambda: agent.prompt("hi"), check)


def parallel(n: int) -> Work:
    script = [[call(0, position, "slow") for position in range(n)], [TextContent(text="done")]]
    agent, _ = make(scripted(script), slow)

    def check() -> None:
        order = [one.tool_call_id for one in agent.state.messages if one.role == "toolResult"]
        assert order == [f"call_0_{position}" for position in range(n)]

    return Work(lambda: agent.prompt("hi"), check)


CASES = {"turns": turns, "deltas": deltas, "parallel": parallel}
