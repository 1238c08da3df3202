"""The framework doing the work of the floor: a scripted stream, an agent, one subscriber."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any, TypeAlias

from pi_core import (
    AbortSignal,
    Agent,
    AgentEvent,
    AssistantMessage,
    Context,
    DoneEvent,
    MessageAssembler,
    Model,
    StartEvent,
    StopReason,
    StreamEvent,
    StreamFunction,
    StreamOptions,
    TextContent,
    TextDeltaEvent,
    TextEndEvent,
    TextStartEvent,
    Tool,
    ToolCallContent,
    ToolCallDeltaEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
    ToolContext,
    ToolResult,
    ToolResultMessage,
)

from .work import DELTA, PARALLEL_SECONDS, Work, argument_deltas

Block: TypeAlias = str | tuple[str, str, dict[str, Any]]
"""A text, or id, name and arguments of a call."""

MODEL = Model(id="scripted", api="scripted", provider="scripted")
SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
WRITE_SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["path", "content"],
}


class Counter:
    """The subscriber: counts events, and text deltas."""

    def __init__(self) -> None:
        self.events = 0
        self.deltas = 0

    async def __call__(self, event: AgentEvent, signal: AbortSignal) -> None:
        self.events += 1
        if event.type == "message_update" and event.assistant_message_event.type == "text_delta":
            self.deltas += 1


class PlainCounter(Counter):
    """The same as a plain function, which is called without ``await``."""

    def __call__(self, event: AgentEvent, signal: AbortSignal) -> None:  # type: ignore[override]
        self.events += 1
        if event.type == "message_update" and event.assistant_message_event.type == "text_delta":
            self.deltas += 1


def scripted(script: Iterable[list[Block]]) -> StreamFunction:
    """Return a stream function that plays one list of blocks for each request.

    As the floor's model it yields messages that were made before the clock starts.
    """
    left = iter([_message(blocks) for blocks in script])
    empty = _message([], "pending")

    async def stream(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        message = next(left)
        yield StartEvent(empty)
        for index, block in enumerate(message.content):
            if isinstance(block, ToolCallContent):
                yield ToolCallStartEvent(index, block.id, block.name)
                yield ToolCallDeltaEvent(index, json.dumps(block.arguments))
                yield ToolCallEndEvent(index, block)
            elif isinstance(block, TextContent):
                yield TextStartEvent(index)
                yield TextDeltaEvent(index, block.text)
                yield TextEndEvent(index, block.text)
        yield DoneEvent(message)

    return stream


def _message(blocks: list[Block], stop_reason: StopReason | None = None) -> AssistantMessage:
    content: list[Any] = [
        TextContent(text=block)
        if isinstance(block, str)
        else ToolCallContent(id=block[0], name=block[1], arguments=block[2])
        for block in blocks
    ]
    calls = any(isinstance(block, ToolCallContent) for block in content)
    return AssistantMessage(
        content=content,
        api=MODEL.api,
        provider=MODEL.provider,
        model=MODEL.id,
        stop_reason=stop_reason or ("toolUse" if calls else "stop"),
    )


async def _echo(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    return ToolResult.text("ok")


async def _slow(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    await asyncio.sleep(PARALLEL_SECONDS)
    return ToolResult.text("ok")


ECHO = Tool("echo", "Echo.", SCHEMA, _echo)
SLOW = Tool("slow", "Sleep.", SCHEMA, _slow)
WRITE = Tool("write", "Write a file.", WRITE_SCHEMA, _echo)


def calls(n: int, name: str = "echo") -> list[list[Block]]:
    """Return the script of ``n`` turns of one call each, and an answer."""
    turns: list[list[Block]] = [[(f"call_{number}_0", name, {"x": number})] for number in range(n)]
    return [*turns, ["done"]]


def turns(n: int, plugins: Iterable[object] = (), counter: Counter | None = None) -> Work:
    """Make ``n`` turns of one call each, then an answer."""
    agent = Agent(model=MODEL, stream=scripted(calls(n)), tools=[ECHO], plugins=list(plugins))
    count = counter or Counter()
    agent.subscribe(count)

    def check() -> None:
        assert len(agent.state.messages) == 2 * n + 2
        assert count.events == 11 * n + 11, count.events

    return Work(lambda: agent.prompt("hi"), check)


def turns_plain(n: int) -> Work:
    """The same with a subscriber that is a plain function."""
    return turns(n, counter=PlainCounter())


def _deltas(n: int, counter: Counter) -> Work:
    async def stream(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        assembler = MessageAssembler(model.api, model.provider, model.id)
        yield assembler.start()
        yield assembler.text_start(0)
        for _ in range(n):
            yield assembler.text_delta(0, DELTA)
        yield assembler.text_end(0)
        yield assembler.done("stop")

    agent = Agent(model=MODEL, stream=stream)
    agent.subscribe(counter)

    def check() -> None:
        message = agent.state.messages[-1]
        assert isinstance(message, AssistantMessage)
        assert counter.deltas == n
        assert message.text == DELTA * n

    return Work(lambda: agent.prompt("hi"), check)


def deltas(n: int) -> Work:
    """Stream one answer of ``n`` text deltas."""
    return _deltas(n, Counter())


def deltas_plain(n: int) -> Work:
    """The same with a subscriber that is a plain function."""
    return _deltas(n, PlainCounter())


def arguments(n: int) -> Work:
    """Stream one call whose arguments arrive in ``n`` deltas, run it, and answer."""
    pieces = argument_deltas(n)
    answer = scripted([["done"]])
    requests = 0

    async def call(model: Model) -> AsyncIterator[StreamEvent]:
        assembler = MessageAssembler(model.api, model.provider, model.id)
        yield assembler.start()
        yield assembler.toolcall_start(0, "call_0_0", "write")
        for piece in pieces:
            yield assembler.toolcall_delta(0, piece)
        yield assembler.toolcall_end(0)
        yield assembler.done("toolUse")

    def stream(model: Model, context: Context, options: StreamOptions) -> Any:
        nonlocal requests
        requests += 1
        return call(model) if requests == 1 else answer(model, context, options)

    counter = Counter()
    agent = Agent(model=MODEL, stream=stream, tools=[WRITE])
    agent.subscribe(counter)

    def check() -> None:
        message = agent.state.messages[1]
        assert isinstance(message, AssistantMessage)
        assert counter.events == n + 21, counter.events
        assert message.tool_calls[0].arguments == json.loads("".join(pieces))

    return Work(lambda: agent.prompt("hi"), check)


def parallel(n: int) -> Work:
    """Run ``n`` calls of one response side by side."""
    blocks: list[Block] = [(f"call_0_{position}", "slow", {"x": position}) for position in range(n)]
    counter = Counter()
    agent = Agent(model=MODEL, stream=scripted([blocks, ["done"]]), tools=[SLOW])
    agent.subscribe(counter)

    def check() -> None:
        results = [message for message in agent.state.messages if isinstance(message, ToolResultMessage)]
        assert [result.tool_call_id for result in results] == [f"call_0_{position}" for position in range(n)]

    return Work(lambda: agent.prompt("hi"), check)


CASES = {
    "turns": turns,
    "turns_plain": turns_plain,
    "deltas": deltas,
    "deltas_plain": deltas_plain,
    "arguments": arguments,
    "parallel": parallel,
}
