"""The floor: what the same work costs in a bare asyncio loop on plain dicts, with the events of the framework.

Nothing is imported but the standard library, so that the process holds nothing else.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias

from .work import CROWD_TURNS, DELTA, PARALLEL_SECONDS, Work, argument_deltas

Event: TypeAlias = dict[str, Any]
Emit: TypeAlias = Callable[[Event], Awaitable[None]]
Model: TypeAlias = Callable[[list[Event]], AsyncIterator[Event]]
Function: TypeAlias = Callable[..., Awaitable[str]]


async def loop(model: Model, tools: Mapping[str, Function], messages: list[Event], emit: Emit) -> list[Event]:
    """Ask the model, run the tools it names, until it names none; returns the messages."""
    await emit({"type": "agent_start"})
    while True:
        await emit({"type": "turn_start"})
        response = await _response(model, messages, emit)
        calls = [block for block in response["content"] if block["type"] == "toolCall"]
        if len(calls) == 1:
            results = [await _execute(calls[0], tools, emit)]
        else:
            results = list(await asyncio.gather(*[_execute(call, tools, emit) for call in calls]))
        for result in results:
            await emit({"type": "message_start", "message": result})
            await emit({"type": "message_end", "message": result})
            messages.append(result)
        await emit({"type": "turn_end", "message": response, "toolResults": results})
        if not calls:
            break
    await emit({"type": "agent_end", "messages": messages})
    return messages


async def _response(model: Model, messages: list[Event], emit: Emit) -> Event:
    response: Event = {}
    async for event in model(messages):
        kind = event["type"]
        if kind == "start":
            response = event["message"]
            messages.append(response)
            await emit({"type": "message_start", "message": response})
        elif kind == "done":
            response = event["message"]
            messages[-1] = response
            await emit({"type": "message_end", "message": response})
        else:
            await emit({"type": "message_update", "message": response, "assistantMessageEvent": event})
    return response


async def _execute(call: Event, tools: Mapping[str, Function], emit: Emit) -> Event:
    name, arguments = call["name"], call["arguments"]
    await emit({"type": "tool_execution_start", "toolCallId": call["id"], "toolName": name, "args": arguments})
    try:
        text, failed = await tools[name](**arguments), False
    except Exception as error:
        text, failed = str(error), True
    await emit({"type": "tool_execution_end", "toolCallId": call["id"], "result": text, "isError": failed})
    content = [{"type": "text", "text": text}]
    return {"role": "toolResult", "toolCallId": call["id"], "content": content, "isError": failed}


class Counter:
    """The subscriber: counts events, and text deltas."""

    def __init__(self) -> None:
        self.events = 0
        self.deltas = 0

    async def __call__(self, event: Event) -> None:
        self.events += 1
        if event["type"] == "message_update" and event["assistantMessageEvent"]["type"] == "text_delta":
            self.deltas += 1


def _call(number: int, position: int, name: str) -> Event:
    return {"type": "toolCall", "id": f"call_{number}_{position}", "name": name, "arguments": {"x": number}}


def _message(*content: Event) -> Event:
    reason = "toolUse" if content[0]["type"] == "toolCall" else "stop"
    return {"role": "assistant", "content": list(content), "stopReason": reason}


def _scripted(script: Iterable[Event]) -> Model:
    left = iter(script)

    async def model(messages: list[Event]) -> AsyncIterator[Event]:
        message = next(left)
        yield {"type": "start", "message": message}
        for index, block in enumerate(message["content"]):
            if block["type"] == "text":
                yield {"type": "text_start", "contentIndex": index}
                yield {"type": "text_delta", "contentIndex": index, "delta": block["text"]}
                yield {"type": "text_end", "contentIndex": index}
            else:
                yield {"type": "toolcall_start", "contentIndex": index}
                yield {"type": "toolcall_delta", "contentIndex": index, "delta": json.dumps(block["arguments"])}
                yield {"type": "toolcall_end", "contentIndex": index}
        yield {"type": "done", "message": message}

    return model


DONE = {"type": "text", "text": "done"}


async def _echo(x: int) -> str:
    return "ok"


async def _slow(x: int) -> str:
    await asyncio.sleep(PARALLEL_SECONDS)
    return "ok"


async def _write(path: str, content: str) -> str:
    return "ok"


def _user() -> list[Event]:
    return [{"role": "user", "content": "hi"}]


def turns(n: int) -> Work:
    """Make ``n`` turns of one call each, then an answer."""
    counter, messages = Counter(), _user()
    model = _scripted([*(_message(_call(number, 0, "echo")) for number in range(n)), _message(DONE)])

    def check() -> None:
        assert len(messages) == 2 * n + 2
        assert counter.events == 11 * n + 9, counter.events

    return Work(lambda: loop(model, {"echo": _echo}, messages, counter), check)


def deltas(n: int) -> Work:
    """Stream one answer of ``n`` text deltas."""
    counter, messages = Counter(), _user()

    async def model(messages: list[Event]) -> AsyncIterator[Event]:
        parts = []
        block = {"type": "text", "text": ""}
        message = _message(block)
        yield {"type": "start", "message": message}
        for _ in range(n):
            parts.append(DELTA)
            yield {"type": "text_delta", "contentIndex": 0, "delta": DELTA}
        block["text"] = "".join(parts)
        yield {"type": "done", "message": message}

    def check() -> None:
        assert counter.deltas == n
        assert messages[-1]["content"][0]["text"] == DELTA * n

    return Work(lambda: loop(model, {}, messages, counter), check)


def arguments(n: int) -> Work:
    """Stream one call whose arguments arrive in ``n`` deltas, run it, and answer."""
    counter, messages = Counter(), _user()
    pieces = argument_deltas(n)
    answers = iter([None, _message(DONE)])
    answer = _scripted([_message(DONE)])

    async def model(messages: list[Event]) -> AsyncIterator[Event]:
        if next(answers) is not None:
            async for event in answer(messages):
                yield event
            return
        parts = []
        block = {"type": "toolCall", "id": "call_0_0", "name": "write", "arguments": {}}
        message = _message(block)
        yield {"type": "start", "message": message}
        for piece in pieces:
            parts.append(piece)
            yield {"type": "toolcall_delta", "contentIndex": 0, "delta": piece}
        block["arguments"] = json.loads("".join(parts))
        yield {"type": "done", "message": message}

    def check() -> None:
        assert counter.events == n + 17, counter.events
        assert messages[1]["content"][0]["arguments"] == json.loads("".join(pieces))

    return Work(lambda: loop(model, {"write": _write}, messages, counter), check)


def parallel(n: int) -> Work:
    """Run ``n`` calls of one response side by side."""
    counter, messages = Counter(), _user()
    model = _scripted([_message(*(_call(0, position, "slow") for position in range(n))), _message(DONE)])

    def check() -> None:
        order = [message["toolCallId"] for message in messages if message["role"] == "toolResult"]
        assert order == [f"call_0_{position}" for position in range(n)]

    return Work(lambda: loop(model, {"slow": _slow}, messages, counter), check)


def _crowd(n: int) -> list[Callable[[], Awaitable[list[Event]]]]:
    def one() -> Callable[[], Awaitable[list[Event]]]:
        play = _scripted([*(_message(_call(number, 0, "echo")) for number in range(CROWD_TURNS)), _message(DONE)])

        async def model(messages: list[Event]) -> AsyncIterator[Event]:
            await asyncio.sleep(0)
            async for event in play(messages):
                yield event

        return lambda: loop(model, {"echo": _echo}, _user(), Counter())

    return [one() for _ in range(n)]


def in_turn(n: int) -> Work:
    """Run ``n`` loops of some turns, one after the other."""
    waiting, made = _crowd(n), []

    async def run() -> None:
        while waiting:
            made.append(len(await waiting.pop()()))

    def check() -> None:
        assert made == [2 * CROWD_TURNS + 2] * n

    return Work(run, check)


def together(n: int) -> Work:
    """Run ``n`` loops of some turns at once."""
    waiting, made = _crowd(n), []

    async def run() -> None:
        made.extend(await asyncio.gather(*[start() for start in waiting]))

    def check() -> None:
        assert [len(messages) for messages in made] == [2 * CROWD_TURNS + 2] * n

    return Work(run, check)


CASES = {
    "turns": turns,
    "deltas": deltas,
    "arguments": arguments,
    "parallel": parallel,
    "in_turn": in_turn,
    "together": together,
}
