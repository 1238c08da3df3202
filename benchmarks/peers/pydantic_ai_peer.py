"""pydantic-ai: its agent on a scripted model, the events of a streamed run read by one consumer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta, ToolReturnPart
from pydantic_ai.models import Model, StreamedResponse
from pydantic_ai.usage import UsageLimits

from ..work import DELTA, PARALLEL_SECONDS, Work

NO_LIMITS = UsageLimits(request_limit=None)
Call = tuple[str, str, int]


@dataclass
class Response(StreamedResponse):
    script: Any = None

    async def _get_event_iterator(self) -> AsyncIterator[Any]:
        parts = self._parts_manager
        for position, item in enumerate(self.script):
            if isinstance(item, str):
                events = parts.handle_text_delta(vendor_part_id="text", content=item)
            else:
                call, name, x = item
                events = parts.handle_tool_call_delta_events(
                    vendor_part_id=position, tool_name=name, args=json.dumps({"x": x}), tool_call_id=call
                )
            for event in events:
                yield event

    async def close_stream(self) -> None:
        """Nothing is open."""

    @property
    def model_name(self) -> str:
        return "scripted"

    @property
    def provider_name(self) -> None:
        return None

    @property
    def provider_url(self) -> None:
        return None

    @property
    def timestamp(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)


class Scripted(Model):
    def __init__(self, script: list[list[str | Call]]) -> None:
        super().__init__()
        self.left = iter(script)

    @property
    def model_name(self) -> str:
        return "scripted"

    @property
    def system(self) -> str:
        return "scripted"

    async def request(self, *_: Any) -> Any:
        raise RuntimeError("only streamed runs are measured")

    @asynccontextmanager
    async def request_stream(
        self, messages: Any, model_settings: Any, parameters: Any, run_context: Any = None
    ) -> AsyncIterator[StreamedResponse]:
        _, prepared = self.prepare_request(model_settings, parameters)
        yield Response(model_request_parameters=prepared, script=next(self.left))


async def echo(x: int) -> str:
    return "ok"


async def slow(x: int) -> str:
    await asyncio.sleep(PARALLEL_SECONDS)
    return "ok"


class Run:
    """A streamed run whose consumer counts."""

    def __init__(self, script: list[list[str | Call]], *tools: Any) -> None:
        self.agent = Agent(Scripted(script), tools=list(tools))
        self.events = self.deltas = 0
        self.result: Any = None

    async def __call__(self) -> None:
        async with self.agent.run_stream_events("hi", usage_limits=NO_LIMITS) as events:
            async for event in events:
                self.events += 1
                begun = isinstance(event, PartStartEvent) and isinstance(event.part, TextPart) and event.part.content
                if begun or (isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta)):
                    self.deltas += 1
                if type(event).__name__ == "AgentRunResultEvent":
                    self.result = event.result

    def returned(self) -> list[str]:
        parts = [part for message in self.result.all_messages() for part in message.parts]
        return [part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)]


def turns(n: int) -> Work:
    run = Run([*([(f"call_{number}_0", "echo", number)] for number in range(n)), ["done"]], echo)

    def check() -> None:
        assert len(run.returned()) == n

    return Work(run, check)


def deltas(n: int) -> Work:
    run = Run([[DELTA] * n])

    def check() -> None:
        assert run.deltas == n
        assert run.result.output == DELTA * n

    return Work(run, check)


def parallel(n: int) -> Work:
    run = Run([[(f"call_0_{position}", "slow", position) for position in range(n)], ["done"]], slow)

    def check() -> None:
        assert run.returned() == [f"call_0_{position}" for position in range(n)]

    return Work(run, check)


CASES = {"turns": turns, "deltas": deltas, "parallel": parallel}
