"""What a run costs: each message converted once, the same work for every turn and every delta."""

from __future__ import annotations

import gc
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Literal

import pytest

from pi_core import (
    AbortSignal,
    Agent,
    AgentContext,
    AgentEvent,
    AgentLoopConfig,
    AgentMessage,
    Context,
    CustomMessage,
    Message,
    MessageAssembler,
    Model,
    RunContext,
    StreamEvent,
    StreamOptions,
    Tool,
    ToolContext,
    Turn,
    TurnUpdate,
    UserMessage,
    hookimpl,
    run_agent_loop,
    user_message,
)
from pi_core.testing import SCRIPTED_MODEL, Call, Reply, ScriptedProvider, scripted_agent

from .running import quick, run

QUICK = Tool("quick", "", {"type": "object", "properties": {}}, quick)


def config(stream: Any, **options: Any) -> AgentLoopConfig:
    return AgentLoopConfig(model=SCRIPTED_MODEL, stream=stream, **options)


def ignore(event: AgentEvent) -> None:
    pass


def said(messages: Iterable[AgentMessage]) -> list[str]:
    """The texts of the user messages."""
    return [message.content[0].text for message in messages if isinstance(message, UserMessage)]  # type: ignore[union-attr]


# --- conversion ---------------------------------------------------------------------------------------------------


class Note(CustomMessage):
    role: Literal["note"] = "note"
    text: str

    def to_llm(self) -> Iterable[Message]:
        converted.append(self.text)
        return [user_message(f"note: {self.text}")]


converted: list[str] = []


def test_each_custom_message_is_converted_once_in_a_run() -> None:
    converted.clear()
    replies = [Reply(Call("quick")) for _ in range(5)]
    agent, provider, _ = scripted_agent(*replies, "done", tools=[QUICK], messages=[user_message("x"), Note(text="a")])
    agent.steer(Note(text="b"))
    run(agent.prompt([user_message("go"), Note(text="c")]))
    assert converted == ["a", "c", "b"]
    assert len(provider.requests) == 6
    assert said(provider.requests[-1].messages) == ["x", "note: a", "go", "note: c", "note: b"]
    assert [len(request.messages) for request in provider.requests] == [5, 7, 9, 11, 13, 15]


def test_a_replaced_context_is_converted_from_its_start() -> None:
    class Plugin:
        @hookimpl
        def prepare_next_turn(self, turn: Turn, ctx: RunContext) -> TurnUpdate | None:
            if ctx.turn_index == 1:
                context = turn.context.copy(messages=[Note(text="summary"), *turn.context.messages[-2:]])
                return TurnUpdate(context=context)
            return None

    converted.clear()
    agent, provider, _ = scripted_agent(
        *[Reply(Call("quick")) for _ in range(3)], "done", tools=[QUICK], plugins=[Plugin()]
    )
    run(agent.prompt(Note(text="old")))
    assert converted == ["old", "summary"]
    roles = [[message.role for message in request.messages] for request in provider.requests]
    assert roles[1:] == [
        ["user", "assistant", "toolResult"],
        ["user", "assistant", "toolResult"],
        ["user", "assistant", "toolResult", "assistant", "toolResult"],
    ]


def test_the_messages_of_a_request_do_not_change_while_it_streams() -> None:
    contexts: list[Context] = []
    provider = ScriptedProvider(Reply(Call("quick")), "done")

    def stream(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        contexts.append(context)
        return provider.stream(model, context, options)

    run(run_agent_loop([user_message("go")], AgentContext(tools=[QUICK]), config(stream), ignore))
    assert [len(context.messages) for context in contexts] == [1, 3]


# --- cost ---------------------------------------------------------------------------------------------------------


def calls_made(action: Callable[[], Any]) -> int:
    """How many Python and C functions an action calls: a cost that does not depend on the machine."""
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def turns(number: int, *plugins: object) -> Agent:
    async def stream(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        assembler = MessageAssembler(model.api, model.provider, model.id)
        yield assembler.start()
        if len(agent.state.messages) < 2 * number:
            yield assembler.toolcall_start(0, "c", "quick")
            yield assembler.toolcall_end(0)
            yield assembler.done("toolUse")
        else:
            yield assembler.done("stop")

    agent = Agent(model=SCRIPTED_MODEL, stream=stream, tools=[QUICK], plugins=plugins)
    agent.subscribe(lambda event, signal: None)
    return agent


def calls_per_turn(*plugins: object) -> float:
    def cost(number: int) -> int:
        agent = turns(number, *plugins)
        return calls_made(lambda: run(agent.prompt("go")))

    return (cost(60) - cost(20)) / 40


class Watcher:
    """Watches the ends of turns."""

    @hookimpl
    def on_turn_end(self) -> None:
        """Look."""


class Named(Watcher):
    """One of several."""

    def __init__(self, number: int) -> None:
        self.name = f"watcher{number}"


def test_the_hook_of_one_event_costs_nothing_at_the_others() -> None:
    calls_per_turn(Watcher())
    assert calls_per_turn(Watcher()) - calls_per_turn() < 15


def test_the_first_run_of_an_agent_costs_what_the_others_do() -> None:
    def cost(agent: Agent) -> int:
        agent.reset()
        return calls_made(lambda: run(agent.prompt("go")))

    cost(turns(5, Watcher()))
    agent = turns(5, *[Named(number) for number in range(20)])
    assert cost(agent) == pytest.approx(cost(agent), rel=0.02)


def test_a_turn_costs_the_same_however_long_the_history_is() -> None:
    run(turns(5).prompt("warm up"))
    cost = {number: calls_made(lambda number=number: run(turns(number).prompt("go"))) for number in (50, 100, 200)}
    first, second = cost[100] - cost[50], cost[200] - cost[100]
    assert second == pytest.approx(2 * first, rel=0.02)


def deltas(number: int) -> Agent:
    async def stream(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        assembler = MessageAssembler(model.api, model.provider, model.id)
        yield assembler.start()
        yield assembler.text_start(0)
        for _ in range(number):
            yield assembler.text_delta(0, "word ")
        yield assembler.text_end(0)
        yield assembler.done("stop")

    agent = Agent(model=SCRIPTED_MODEL, stream=stream)
    agent.subscribe(lambda event, signal: None)
    return agent


def test_a_delta_costs_the_same_however_long_the_message_is() -> None:
    run(deltas(5).prompt("warm up"))
    cost = {number: calls_made(lambda number=number: run(deltas(number).prompt("go"))) for number in (200, 400, 800)}
    assert cost[800] - cost[400] == pytest.approx(2 * (cost[400] - cost[200]), rel=0.02)


def test_ten_thousand_turns_in_one_run() -> None:
    messages = run(turns(10_000).prompt("go"))
    assert len(messages) == 20_002
    assert messages[-1].stop_reason == "stop"


def test_a_run_keeps_nothing_of_the_calls_that_are_over() -> None:
    alive: list[int] = []

    def contexts() -> int:
        gc.collect()
        return sum(isinstance(thing, ToolContext) for thing in gc.get_objects())

    def count(event: AgentEvent, signal: AbortSignal) -> None:
        if event.type == "agent_end":
            alive.append(contexts() - before)

    before = contexts()

    replies = [Reply(*[Call("slow", id=str(number)) for number in range(size)]) for size in (1, 5) for _ in range(10)]
    slow = Tool("slow", "", {"type": "object", "properties": {}}, quick, timeout=3600)
    agent, _, _ = scripted_agent(*replies, "done", tools=[slow])
    agent.subscribe(count)
    run(agent.prompt("go"))
    assert alive[0] <= 5
