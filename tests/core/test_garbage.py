"""What a run is done with is freed at once: nothing of a turn, a delta or a call waits for the garbage collector."""

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from pi_core import (
    Agent,
    AssistantMessage,
    Context,
    DoneEvent,
    Model,
    StartEvent,
    StreamEvent,
    StreamOptions,
    TextContent,
    TextDeltaEvent,
    TextEndEvent,
    TextStartEvent,
    tool,
)
from pi_core.testing import SCRIPTED_MODEL, Call, Reply, Say, ScriptedProvider


@tool
async def echo(x: int) -> str:
    """Say it again."""
    await asyncio.sleep(0)
    return str(x)


def unreachable_after(agent: Agent) -> int:
    async def run() -> int:
        await agent.prompt("go")
        return gc.collect()

    gc.collect()
    gc.disable()
    try:
        return asyncio.run(run())
    finally:
        gc.enable()


def scripted(*replies: Reply | str) -> Agent:
    provider = ScriptedProvider(*replies, keep_messages=False)
    agent = Agent(model=SCRIPTED_MODEL, stream=provider.stream, tools=[echo])
    agent.subscribe(lambda event, signal: None)
    return agent


@pytest.mark.parametrize("turns", [1, 40])
def test_turns(turns: int) -> None:
    unreachable_after(scripted("warm up"))
    assert unreachable_after(scripted(*[Reply(Call("echo", {"x": turn})) for turn in range(turns)], "done")) == 0


def test_a_turn_keeps_its_messages_and_no_set_beside_them() -> None:
    def kept(turns: int) -> Counter[str]:
        agent = scripted(*[Reply(Call("echo", {"x": turn})) for turn in range(turns)], "done")
        agent.run_sync("go")
        gc.collect()
        return Counter(type(thing).__name__ for thing in gc.get_objects())

    kept(1)
    more = kept(30) - kept(10)
    assert more["ToolResultMessage"] == more["AssistantMessage"] == 20
    assert more["set"] < 20


def test_parallel_calls() -> None:
    unreachable_after(scripted("warm up"))
    assert unreachable_after(scripted(Reply(*[Call("echo", {"x": number}) for number in range(20)]), "done")) == 0


def test_deltas() -> None:
    unreachable_after(scripted("warm up"))
    assert unreachable_after(scripted(Reply(Say("ab" * 50, chunks=["ab"] * 50)))) == 0


def test_events_made_by_hand() -> None:
    message = AssistantMessage(content=[TextContent(text="ab" * 50)], api="a", provider="p", model="m")

    async def stream(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        yield StartEvent(message.model_copy(update={"content": [], "stop_reason": "pending"}))
        yield TextStartEvent(0)
        for _ in range(50):
            yield TextDeltaEvent(0, "ab")
        yield TextEndEvent(0, "ab" * 50)
        yield DoneEvent(message)

    agent = Agent(model=SCRIPTED_MODEL, stream=stream)
    read: list[str] = []
    agent.subscribe(lambda event, signal: read.append(event.message.text) if event.type == "message_update" else None)
    unreachable_after(scripted("warm up"))
    assert unreachable_after(agent) == 0
    assert read[-2] == "ab" * 50
