"""Many agents at once: what each turn costs beside one agent at a time, and what an agent at rest holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from typing import Any

from pi_core import Agent, Context, Model, StreamEvent, StreamFunction, StreamOptions

from .ours import ECHO, MODEL, Counter, calls, scripted, turns
from .work import CROWD_TURNS, Work


def _interleaved(stream: Any) -> StreamFunction:
    """Let the others go on before each response, as waiting for a network does."""

    async def wait_and_stream(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        await asyncio.sleep(0)
        async with aclosing(stream(model, context, options)) as events:
            async for event in events:
                yield event

    return wait_and_stream


def _agent(stream: StreamFunction | None = None) -> Agent:
    agent = Agent(model=MODEL, stream=stream or _script(), tools=[ECHO])
    agent.subscribe(Counter())
    return agent


def _script() -> StreamFunction:
    return _interleaved(scripted(calls(CROWD_TURNS)))


async def _work_off(agents: list[Agent]) -> None:
    while agents:
        agent = agents.pop()
        await agent.prompt("hi")
        assert len(agent.state.messages) == 2 * CROWD_TURNS + 2


def in_turn(n: int) -> Work:
    """Run ``n`` agents, one after the other."""
    agents = [_agent() for _ in range(n)]

    def check() -> None:
        assert not agents

    return Work(lambda: _work_off(agents), check)


async def _together(agents: list[Agent]) -> None:
    await asyncio.gather(*[agent.prompt("hi") for agent in agents])


def together(n: int) -> Work:
    """Run ``n`` agents at once."""
    agents = [_agent() for _ in range(n)]

    def check() -> None:
        assert all(len(agent.state.messages) == 2 * CROWD_TURNS + 2 for agent in agents)

    return Work(lambda: _together(agents), check)


def _kept(n: int, use: Callable[[list[Agent]], Coroutine[Any, Any, None]] | None) -> Work:
    scripts = [_script() for _ in range(n)]
    agents: list[Agent] = []

    async def run() -> None:
        agents.extend(map(_agent, scripts))
        if use is not None:
            await use(agents)

    def check() -> None:
        assert len(agents) == n

    return Work(run, check)


def idle(n: int) -> Work:
    """Make ``n`` agents."""
    return _kept(n, None)


def rested(n: int) -> Work:
    """Make ``n`` agents and let each make its turns; they keep their transcripts."""
    return _kept(n, _together)


CASES = {"in_turn": in_turn, "together": together, "idle": idle, "rested": rested}
FIRST = turns
