"""openai-agents: its runner on a scripted model, the events of a streamed run read by one consumer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, RunConfig, Runner, function_tool, set_tracing_disabled
from openai.types import responses
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

from ..work import DELTA, PARALLEL_SECONDS, Work

set_tracing_disabled(True)
CONFIG = RunConfig(tracing_disabled=True)


@function_tool
async def echo(x: int) -> str:
    return "ok"


@function_tool
async def slow(x: int) -> str:
    await asyncio.sleep(PARALLEL_SECONDS)
    return "ok"


def _text(text: str, number: int) -> responses.ResponseOutputMessage:
    content = responses.ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])
    return responses.ResponseOutputMessage(
        id=f"message_{number}", type="message", role="assistant", status="completed", content=[content]
    )


def _call(call: str, name: str, x: int) -> responses.ResponseFunctionToolCall:
    return responses.ResponseFunctionToolCall(
        id=f"item_{call}", call_id=call, type="function_call", name=name, arguments=json.dumps({"x": x})
    )


def _response(output: list[Any], number: int) -> responses.Response:
    usage = responses.ResponseUsage.model_construct(
        input_tokens=0,
        output_tokens=0,
        total_tokens=0,
        input_tokens_details=InputTokensDetails.model_construct(cached_tokens=0),
        output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
    )
    return responses.Response(
        id=f"response_{number}",
        created_at=0,
        model="scripted",
        object="response",
        output=output,
        tool_choice="none",
        tools=[],
        parallel_tool_calls=False,
        usage=usage,
    )


class Scripted(Model):
    def __init__(self, script: list[list[Any]]) -> None:
        self.left = iter(enumerate(script))

    async def get_response(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("only streamed runs are measured")

    async def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        number, script = next(self.left)
        sequence = 0
        if isinstance(script[0], str):
            output: list[Any] = [_text("".join(script), number)]
            for sequence, text in enumerate(script):
                yield responses.ResponseTextDeltaEvent(
                    type="response.output_text.delta",
                    content_index=0,
                    delta=text,
                    item_id=output[0].id,
                    output_index=0,
                    sequence_number=sequence,
                    logprobs=[],
                )
        else:
            output = [_call(*call) for call in script]
            for sequence, item in enumerate(output):
                yield responses.ResponseFunctionCallArgumentsDeltaEvent(
                    type="response.function_call_arguments.delta",
                    delta=item.arguments,
                    item_id=item.id,
                    output_index=sequence,
                    sequence_number=sequence,
                )
        yield responses.ResponseCompletedEvent(
            type="response.completed", response=_response(output, number), sequence_number=sequence + 1
        )


class Run:
    """A streamed run whose consumer counts."""

    def __init__(self, script: list[list[Any]], *tools: Any) -> None:
        self.agent = Agent(name="scripted", model=Scripted(script), tools=list(tools))
        self.most = len(script) + 5
        self.deltas = 0
        self.result: Any = None

    async def __call__(self) -> None:
        self.result = Runner.run_streamed(self.agent, "hi", max_turns=self.most, run_config=CONFIG)
        async for event in self.result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                self.deltas += 1

    def returned(self) -> list[str]:
        items = self.result.to_input_list()
        return [item["call_id"] for item in items if item.get("type") == "function_call_output"]


def turns(n: int) -> Work:
    run = Run([*([(f"call_{number}_0", "echo", number)] for number in range(n)), ["done"]], echo)

    def check() -> None:
        assert len(run.returned()) == n
        assert run.result.final_output == "done"

    return Work(run, check)


def deltas(n: int) -> Work:
    run = Run([[DELTA] * n])

    def check() -> None:
        assert run.deltas == n
        assert run.result.final_output == DELTA * n

    return Work(run, check)


def parallel(n: int) -> Work:
    run = Run([[(f"call_0_{position}", "slow", position) for position in range(n)], ["done"]], slow)

    def check() -> None:
        assert run.returned() == [f"call_0_{position}" for position in range(n)]

    return Work(run, check)


CASES = {"turns": turns, "deltas": deltas, "parallel": parallel}
