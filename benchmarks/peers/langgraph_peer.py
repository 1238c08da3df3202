"""langgraph: the agent of langchain on a scripted chat model, messages and states read by one consumer."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from typing import Any

os.environ["LANGSMITH_TRACING"] = "false"

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool

from ..work import DELTA, PARALLEL_SECONDS, Work


@tool
async def echo(x: int) -> str:
    """Echo."""
    return "ok"


@tool
async def slow(x: int) -> str:
    """Sleep."""
    await asyncio.sleep(PARALLEL_SECONDS)
    return "ok"


class Scripted(BaseChatModel):
    left: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Scripted:
        return self

    def _generate(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("only streamed runs are measured")

    async def _astream(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> AsyncIterator[Any]:
        script = next(self.left)
        if isinstance(script[0], str):
            for text in script:
                yield ChatGenerationChunk(message=AIMessageChunk(text))
            return
        chunks = [
            {"name": name, "args": json.dumps({"x": x}), "id": call, "index": index, "type": "tool_call_chunk"}
            for index, (call, name, x) in enumerate(script)
        ]
        yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=chunks))


class Run:
    """A streamed run whose consumer counts."""

    def __init__(self, script: list[list[Any]], *tools: Any) -> None:
        self.graph = create_agent(Scripted(left=iter(script)), list(tools))
        self.limit = 2 * len(script) + 20
        self.deltas = 0
        self.messages: list[Any] = []

    async def __call__(self) -> None:
        given = {"messages": [{"role": "user", "content": "hi"}]}
        events = self.graph.astream(given, {"recursion_limit": self.limit}, stream_mode=["messages", "values"])
        async for mode, event in events:
            if mode == "values":
                self.messages = event["messages"]
            elif isinstance(event[0], AIMessageChunk) and event[0].content:
                self.deltas += 1

    def returned(self) -> list[str]:
        return [message.tool_call_id for message in self.messages if isinstance(message, ToolMessage)]


def turns(n: int) -> Work:
    run = Run([*([(f"call_{number}_0", "echo", number)] for number in range(n)), ["done"]], echo)

    def check() -> None:
        assert len(run.returned()) == n

    return Work(run, check)


def deltas(n: int) -> Work:
    run = Run([[DELTA] * n])

    def check() -> None:
        assert run.deltas == n
        assert run.messages[-1].content == DELTA * n

    return Work(run, check)


def parallel(n: int) -> Work:
    run = Run([[(f"call_0_{position}", "slow", position) for position in range(n)], ["done"]], slow)

    def check() -> None:
        assert run.returned() == [f"call_0_{position}" for position in range(n)]

    return Work(run, check)


CASES = {"turns": turns, "deltas": deltas, "parallel": parallel}
