"""Many agents at once: what each turn costs beside one agent at a time, and what an agent at rest holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any, Final

from pi_core import Agent, Context, Model, StreamEvent, StreamFunction, StreamOptions, Tool

from .ours import ECHO, MODEL, Counter, calls, scripted, warm_up
from .work import Work

TURNS: Final = 20
"""How many turns each agent makes before its answer."""


def _interleaved(stream: Any) -> StreamFunction:
    """Let the others go on before each response, as waiting for a network does."""

    async def wait_and_stream(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        await asyncio.sleep(0)
        async for event in stream(model, context, options):
            yield event

    return wait_and_stream


def _agent(tools: Iterable[Tool] = (ECHO,)) -> Agent:
    agent = Agent(model=MODEL, stream=_interleaved(scripted(calls(TURNS))), tools=tools)
    agent.subscribe(Counter())
    return agent


async def _work_off(agents: list[Agent]) -> None:
    while agents:
        agent = agents.pop()
        await agent.prompt("hi")
        assert len(agent.state.messages) == 2 * TURNS + 2


def one(n: int) -> Work:
    """Run ``n`` agents, one after the other."""
    agents = [_agent() for _ in range(n)]

    def check() -> None:
        assert not agents

    return Work(lambda: _work_off(agents), check)


async def _together(agents: list[Agent]) -> None:
    await asyncio.gather(*[agent.prompt("hi") for agent in agents])


def many(n: int) -> Work:
    """Run ``n`` agents at once."""
    agents = [_agent() for _ in range(n)]

    def check() -> None:
        assert all(len(agent.state.messages) == 2 * TURNS + 2 for agent in agents)

    return Work(lambda: _together(agents), check)


def _kept(n: int, use: Callable[[list[Agent]], Coroutine[Any, Any, None]] | None) -> Work:
    agents: list[Agent] = []

    async def run() -> None:
        agents.extend(_agent() for _ in range(n))
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


CASES = {"one": one, "many": many, "idle": idle, "rested": rested}

__all__ = ["CASES", "warm_up"]
