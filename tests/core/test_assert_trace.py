"""The checker of runs: silent on good ones, and outspoken on each rule that is broken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pi_core import (
    AgentEndEvent,
    AgentEvent,
    AgentStartEvent,
    AssistantMessage,
    MessageEndEvent,
    MessageStartEvent,
    MessageUpdateEvent,
    TextDeltaEvent,
    TextEndEvent,
    TextStartEvent,
    ToolContext,
    ToolResult,
    TurnEndEvent,
    TurnStartEvent,
    UserMessage,
    tool,
)
from pi_core.testing import Call, Reply, Say, assert_trace, scripted_agent, trace_problems


@tool
async def echo(text: str, context: ToolContext) -> str:
    """Say it again."""
    context.update(text)
    return text


def events_of(*replies: Reply | str, prompts: int = 1, **options: Any) -> list[AgentEvent]:
    agent, _, log = scripted_agent(*replies, tools=[echo], **options)
    for _ in range(prompts):
        agent.run_sync("go")
    return log.events


TWO_CALLS = Reply(
    Say("so", chunks=["s", "o"]),
    Call("echo", {"text": "a"}, id="a"),
    Call("echo", {"text": "b"}, id="b"),
)


@pytest.fixture
def good() -> list[AgentEvent]:
    return events_of(TWO_CALLS, "done")


def place(events: list[AgentEvent], event_type: str, nth: int = 0) -> int:
    return [index for index, event in enumerate(events) if event.type == event_type][nth]


Change = Callable[[list[AgentEvent]], None]


def without(event_type: str, nth: int = 0) -> Change:
    def change(events: list[AgentEvent]) -> None:
        del events[place(events, event_type, nth)]

    return change


def twice(event_type: str, nth: int = 0) -> Change:
    def change(events: list[AgentEvent]) -> None:
        index = place(events, event_type, nth)
        events.insert(index, events[index])

    return change


def swapped(event_type: str, one: int, other: int) -> Change:
    def change(events: list[AgentEvent]) -> None:
        first, second = place(events, event_type, one), place(events, event_type, other)
        events[first], events[second] = events[second], events[first]

    return change


def put(event: AgentEvent, before: str, nth: int = 0) -> Change:
    return lambda events: events.insert(place(events, before, nth), event)


def other(event_type: str, nth: int = 0, /, **fields: Any) -> Change:
    def change(events: list[AgentEvent]) -> None:
        index = place(events, event_type, nth)
        found: Any = events[index]
        events[index] = replace(
            found, **{key: value(found) if callable(value) else value for key, value in fields.items()}
        )

    return change


def update(event: Any) -> Change:
    def change(events: list[AgentEvent]) -> None:
        frame: Any = events[place(events, "message_update")]
        made = replace(event, frame=frame.assistant_message_event.frame)
        events.insert(place(events, "message_end", 1), MessageUpdateEvent(made))

    return change


def answer(**fields: Any) -> AssistantMessage:
    return AssistantMessage(**{"content": [], "api": "x", "provider": "x", "model": "x", **fields})


FAILED = answer(content=[{"type": "text", "text": ""}], stop_reason="error", error_message="down")
WRONG: dict[str, tuple[Change, str]] = {
    "no-start": (without("agent_start"), "the run starts with turn_start"),
    "no-end": (without("agent_end"), "there is no agent_end"),
    "goes-on": (lambda events: events.append(TurnStartEvent()), "turn_start after agent_end"),
    "end-twice": (twice("agent_end"), "agent_end after agent_end"),
    "turn-in-turn": (put(TurnStartEvent(), "message_start"), "turn_start inside a turn"),
    "turn-not-begun": (without("turn_start", 1), "outside a turn"),
    "turn-not-ended": (without("turn_end", 1), "agent_end inside a turn"),
    "turn-ended-twice": (twice("turn_end"), "turn_end without turn_start"),
    "turn-in-message": (put(TurnStartEvent(), "message_end"), "turn_start inside a message"),
    "tool-in-message": (
        lambda events: events.insert(place(events, "message_end", 1), events[place(events, "tool_execution_start")]),
        "tool_execution_start inside a message",
    ),
    "message-in-message": (without("message_end"), "message_start of a assistant message inside another message"),
    "message-not-begun": (without("message_start"), "message_end of a user message without message_start"),
    "message-open-at-end": (without("message_end", -1), "turn_end inside a message"),
    "open-at-agent-end": (
        lambda events: events.insert(-1, MessageStartEvent(UserMessage(content="x"))),
        "agent_end inside a message",
    ),
    "other-role": (other("message_end", message=answer()), "is closed by one of a assistant message"),
    "other-user-message": (other("message_end", message=UserMessage(content="other")), "user message differ"),
    "update-of-nothing": (
        lambda events: events.insert(2, events[place(events, "message_update")]),
        "message_update without an open assistant message",
    ),
    "block-twice": (update(TextStartEvent(0)), "text_start of block 0 for the second time"),
    "block-after-its-end": (update(TextDeltaEvent(0, "x")), "text_delta of block 0 after its end"),
    "lost-delta": (without("message_update", 1), "the content is not the sum of the deltas"),
    "other-content": (
        lambda events: events.__setitem__(
            place(events, "message_update", 3), MessageUpdateEvent(TextEndEvent(0, "other"))
        ),
        "the content is not the sum of the deltas",
    ),
    "pending": (
        other("message_end", 1, message=lambda event: event.message.model_copy(update={"stop_reason": "pending"})),
        "a final response is still pending",
    ),
    "two-responses": (
        lambda events: events.insert(place(events, "turn_end", 1), MessageEndEvent(answer())),
        "a second response in one turn",
    ),
    "calls-swapped": (swapped("tool_execution_start", 0, 1), "call b is not the next one of the response"),
    "call-twice": (twice("tool_execution_start", 1), "call b is not the next one of the response"),
    "other-arguments": (other("tool_execution_start", args={"text": "c"}), "name or arguments are not those"),
    "other-tool": (other("tool_execution_start", tool_name="read"), "name or arguments are not those"),
    "progress-too-early": (
        lambda events: events.insert(
            place(events, "tool_execution_start"), events[place(events, "tool_execution_update")]
        ),
        "progress of call a, which does not run",
    ),
    "progress-too-late": (
        lambda events: events.insert(
            place(events, "tool_execution_end", 1) + 1, events[place(events, "tool_execution_update")]
        ),
        "progress of call a, which does not run",
    ),
    "end-without-start": (without("tool_execution_start", 1), "call b ends without a start"),
    "never-ends": (without("tool_execution_end", 1), "before its tool_execution_end"),
    "runs-on": (without("tool_execution_end", 1), "turn_end while b runs"),
    "result-swapped": (
        lambda events: [swapped(kind, 2, 3)(events) for kind in ("message_start", "message_end")].clear(),
        "the result of call b is not in source order",
    ),
    "result-lost": (
        lambda events: [without(kind, 3)(events) for kind in ("message_start", "message_end")].clear(),
        "2 calls have 1 results",
    ),
    "other-error": (other("tool_execution_end", is_error=True), "call a and its tool_execution_end differ in is_error"),
    "other-result": (
        other("tool_execution_end", result=ToolResult(content=[], details={"x": 1})),
        "call a and its tool_execution_end differ in content",
    ),
    "other-details": (
        other("tool_execution_end", result=lambda event: replace(event.result, details={"x": 1})),
        "call a and its tool_execution_end differ in details",
    ),
    "no-duration": (other("tool_execution_end", duration_ms=None), "differ in the presence of duration_ms"),
    "other-response": (other("turn_end", message=answer()), "the message of turn_end is not the response"),
    "other-results": (other("turn_end", tool_results=[]), "the results of turn_end are not the tool results"),
    "other-messages": (other("agent_end", messages=[]), "agent_end lists []"),
    "failure-in-between": (
        lambda events: events.insert(place(events, "turn_end") + 1, MessageEndEvent(FAILED)),
        "turn_start after the message of a failure",
    ),
    "failure-with-results": (
        other("turn_end", message=FAILED),
        "turn_end of the message of a failure has tool results",
    ),
    "failure-ends-two-turns": (
        lambda events: events.extend([TurnEndEvent(FAILED, []), TurnEndEvent(FAILED, [])]),
        "a second turn_end of the message of a failure",
    ),
    "turn-after-failure": (
        other("turn_end", message=answer(stop_reason="aborted")),
        "a turn after a response that failed or was aborted",
    ),
}


def test_a_good_run_has_no_problem(good: list[AgentEvent]) -> None:
    assert trace_problems(good) == []
    assert_trace(good)


@pytest.mark.parametrize("name", WRONG)
def test_a_broken_rule_is_named(good: list[AgentEvent], name: str) -> None:
    change, problem = WRONG[name]
    events = list(good)
    change(events)
    assert any(problem in found for found in trace_problems(events)), trace_problems(events)
    with pytest.raises(AssertionError, match="the run breaks the rules:\n  event"):
        assert_trace(events)


def test_a_problem_has_the_number_of_its_event(good: list[AgentEvent]) -> None:
    good.insert(1, AgentEndEvent([]))
    assert trace_problems(good)[0] == "event 2: turn_start after agent_end"


def test_several_runs_are_checked_one_by_one() -> None:
    events = events_of("one", TWO_CALLS, "two", prompts=2)
    assert trace_problems(events) == []
    assert sum(isinstance(event, AgentStartEvent) for event in events) == 2
    del events[place(events, "turn_end")]
    assert trace_problems(events)


@pytest.mark.parametrize(
    "reply",
    [
        Reply("half", error="overloaded"),
        Reply(raises=OSError("down")),
        Reply("half", ends=False),
        Reply(Call("nothing", {}), Call("echo", {"text": 3})),
        Reply(Call("echo", raw='{"text": ')),
        Reply("cut", Call("echo", {"text": "x"}), stop_reason="length"),
        Reply(),
    ],
    ids=["error", "raises", "no-end", "bad-calls", "bad-json", "length", "empty"],
)
def test_runs_that_fail_keep_the_rules(reply: Reply) -> None:
    assert trace_problems(events_of(reply, "after")) == []


def test_an_aborted_run_keeps_the_rules() -> None:
    for kind in ("message_update", "tool_execution_start", "tool_execution_end", "turn_end"):
        agent, _, log = scripted_agent(TWO_CALLS, "done", tools=[echo])
        agent.subscribe(lambda event, signal, kind=kind, agent=agent: agent.abort() if event.type == kind else None)
        agent.run_sync("go")
        assert trace_problems(log.events) == [], kind


def test_a_run_may_break_off_only_when_it_raised() -> None:
    def fail(event: AgentEvent, signal: Any) -> None:
        if event.type == "turn_end":
            raise ValueError("the application's own fault")

    agent, _, log = scripted_agent(TWO_CALLS, "done", tools=[echo])
    agent.subscribe(fail)
    try:
        asyncio.run(agent.prompt("go"))
    except ValueError:
        assert trace_problems(log.events, raised=True) == []
    cut = log.events[: place(log.events, "tool_execution_end")]
    assert trace_problems(cut, raised=True) == []
    assert "there is no agent_end" in str(trace_problems(cut))


def test_no_events_are_no_run() -> None:
    assert trace_problems([]) == ["there are no events"]
