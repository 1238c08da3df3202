"""The invariants of a run: what holds of the events of every agent, whatever its plugins do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ..events import (
    AgentEndEvent,
    AgentEvent,
    AgentStartEvent,
    MessageEndEvent,
    MessageStartEvent,
    MessageUpdateEvent,
    ToolExecutionEndEvent,
    ToolExecutionStartEvent,
    ToolExecutionUpdateEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from ..messages import AgentMessage, AssistantMessage, TextContent, ToolCallContent, ToolResultMessage

_BROKEN_OFF: Final = ("error", "aborted")


def assert_trace(events: Iterable[AgentEvent], *, raised: bool = False) -> None:
    """Check the invariants of one or several runs.

    Each run has one start and one end; turns and messages are opened and closed in pairs; deltas add up to their block;
    every call of a response gets one result, taken up and given back in source order; the end lists what was produced.

    :param events: those of an agent, in the order a subscriber got them; ``EventLog.events`` for one.
    :param raised: the call that ran the agent raised, so that a run may break off anywhere.
    :raises AssertionError: some do not hold; names each with the number of its event.
    """
    found = trace_problems(events, raised=raised)
    if found:
        raise AssertionError("the run breaks the rules:\n  " + "\n  ".join(found))


def trace_problems(events: Iterable[AgentEvent], *, raised: bool = False) -> list[str]:
    """Return which invariants of :func:`assert_trace` do not hold, one line each; nothing when all do."""
    runs: list[list[tuple[int, AgentEvent]]] = []
    for numbered in enumerate(events):
        if isinstance(numbered[1], AgentStartEvent) or not runs:
            runs.append([])
        runs[-1].append(numbered)
    if not runs:
        return ["there are no events"]
    return [problem for run in runs for problem in _Run(run, raised).problems]


def _is_failure(message: object) -> bool:
    """Whether a message is the one that an agent adds when its run fails."""
    return (
        isinstance(message, AssistantMessage)
        and message.stop_reason in _BROKEN_OFF
        and message.error_message is not None
        and message.content == [TextContent(text="")]
    )


class _Run:
    """Goes through the events of one run."""

    def __init__(self, events: Sequence[tuple[int, AgentEvent]], raised: bool) -> None:
        self.problems: list[str] = []
        self.number = 0
        self.over = False
        self.in_turn = False
        self.no_more_turns = False
        self.opened: AgentMessage | None = None
        self.blocks: dict[int, str | None] = {}
        self.produced: list[AgentMessage] = []
        self.failure_seen = False
        self.failure_turn_ended = False
        self.turns: Counter[str] = Counter()
        self.raised = raised
        self.failed = raised or any(
            isinstance(event, MessageEndEvent) and _is_failure(event.message) for _, event in events
        )
        self.new_turn()
        if not isinstance(events[0][1], AgentStartEvent):
            self.say(f"the run starts with {events[0][1].type}")
        for self.number, event in events:
            self.look_at(event)
        if not self.over and not raised:
            self.say("there is no agent_end")
        self.count_turns()

    def new_turn(self) -> None:
        self.response: AssistantMessage | None = None
        self.calls: list[ToolCallContent] = []
        self.started = 0
        self.running: list[str] = []
        self.ended: dict[str, list[ToolExecutionEndEvent]] = {}
        self.results: list[ToolResultMessage] = []

    def say(self, text: str) -> None:
        self.problems.append(f"event {self.number}: {text}")

    def look_at(self, event: AgentEvent) -> None:
        if self.over:
            self.say(f"{event.type} after agent_end")
        if self.opened is not None and event.type.startswith(("tool_", "turn_")):
            self.say(f"{event.type} inside a message")
        if self.failure_seen and not isinstance(event, TurnEndEvent | AgentEndEvent):
            self.say(f"{event.type} after the message of a failure")
        match event:
            case TurnStartEvent():
                self.turn_start()
            case TurnEndEvent():
                self.turn_end(event)
            case MessageStartEvent():
                self.message_start(event.message)
            case MessageUpdateEvent():
                self.message_update(event)
            case MessageEndEvent():
                self.message_end(event.message)
            case ToolExecutionStartEvent():
                self.tool_start(event)
            case ToolExecutionUpdateEvent():
                if event.tool_call_id not in self.running:
                    self.say(f"progress of call {event.tool_call_id}, which does not run")
            case ToolExecutionEndEvent():
                self.tool_end(event)
            case AgentEndEvent():
                self.agent_end(event)

    # --- turns ---

    def turn_start(self) -> None:
        self.turns["start"] += 1
        if self.in_turn:
            self.say("turn_start inside a turn")
        if self.no_more_turns:
            self.say("a turn after a response that failed or was aborted")
        self.in_turn = True
        self.new_turn()

    def turn_end(self, event: TurnEndEvent) -> None:
        self.turns["end"] += 1
        failure = _is_failure(event.message)
        if not self.in_turn and not failure:
            self.say("turn_end without turn_start")
        if failure and self.failure_turn_ended:
            self.say("a second turn_end of the message of a failure")
        if event.message != self.response:
            self.say("the message of turn_end is not the response of the turn")
        if failure:
            self.failure_turn_ended = True
            if event.tool_results:
                self.say("turn_end of the message of a failure has tool results")
        else:
            if list(event.tool_results) != self.results:
                self.say("the results of turn_end are not the tool results of the turn")
            if len(self.results) != len(self.calls):
                self.say(f"{len(self.calls)} calls have {len(self.results)} results")
            if self.running:
                self.say(f"turn_end while {', '.join(self.running)} runs")
        self.no_more_turns = event.message.stop_reason in _BROKEN_OFF
        self.in_turn = False

    def count_turns(self) -> None:
        starts, ends = self.turns["start"], self.turns["end"]
        if (not self.failed and starts != ends) or (not self.raised and not starts <= ends <= starts + 1):
            self.say(f"{starts} turn_start, {ends} turn_end")

    def agent_end(self, event: AgentEndEvent) -> None:
        if self.in_turn:
            self.say("agent_end inside a turn")
        if self.opened is not None:
            self.say("agent_end inside a message")
        if list(event.messages) != self.produced:
            told, made = ([message.role for message in list_] for list_ in (event.messages, self.produced))
            self.say(f"agent_end lists {told}, the run produced {made}")
        self.over = True

    # --- messages ---

    def message_start(self, message: AgentMessage) -> None:
        failure = _is_failure(message)
        if self.opened is not None and not (failure and not _is_failure(self.opened)):
            self.say(f"message_start of a {message.role} message inside another message")
        if not self.in_turn and not failure:
            self.say(f"message_start of a {message.role} message outside a turn")
        self.opened, self.blocks = message, {}

    def message_update(self, event: MessageUpdateEvent) -> None:
        if not isinstance(self.opened, AssistantMessage):
            self.say("message_update without an open assistant message")
        update: Any = event.assistant_message_event
        index, phase = update.content_index, update.type.partition("_")[2]
        if phase == "start":
            if index in self.blocks:
                self.say(f"{update.type} of block {index} for the second time")
            self.blocks[index] = ""
            return
        if index not in self.blocks:
            return
        text = self.blocks[index]
        if text is None:
            self.say(f"{update.type} of block {index} after its end")
        elif phase == "delta":
            self.blocks[index] = text + update.delta
        else:
            if getattr(update, "content", text) != text:
                self.say(f"{update.type} of block {index}: the content is not the sum of the deltas")
            self.blocks[index] = None

    def message_end(self, message: AgentMessage) -> None:
        opened = self.opened
        if opened is None:
            self.say(f"message_end of a {message.role} message without message_start")
        elif opened.role != message.role:
            self.say(f"message_start of a {opened.role} message is closed by one of a {message.role} message")
        elif not isinstance(message, AssistantMessage) and opened != message:
            self.say(f"message_start and message_end of a {message.role} message differ")
        self.opened = None
        self.produced.append(message)
        if isinstance(message, AssistantMessage):
            self.response_end(message)
        elif isinstance(message, ToolResultMessage):
            self.result_end(message)

    def response_end(self, message: AssistantMessage) -> None:
        failure = _is_failure(message)
        if message.stop_reason == "pending":
            self.say("a final response is still pending")
        if self.response is not None and not failure:
            self.say("a second response in one turn")
        self.failure_seen = self.failure_seen or failure
        self.response = message
        self.calls = [] if message.stop_reason in _BROKEN_OFF else message.tool_calls

    def result_end(self, message: ToolResultMessage) -> None:
        call = message.tool_call_id
        position = len(self.results)
        self.results.append(message)
        if position >= len(self.calls) or self.calls[position].id != call:
            self.say(f"the result of call {call} is not in source order")
        ends = self.ended.get(call)
        if not ends:
            self.say(f"the result of call {call} comes before its tool_execution_end")
            return
        end = ends.pop(0)
        for name, told, kept in (
            ("is_error", end.is_error, message.is_error),
            ("content", list(end.result.content or ()), message.content),
            ("details", end.result.details, message.details),
            ("the presence of duration_ms", end.duration_ms is None, message.duration_ms is None),
        ):
            if told != kept:
                self.say(f"the result of call {call} and its tool_execution_end differ in {name}")

    # --- tools ---

    def tool_start(self, event: ToolExecutionStartEvent) -> None:
        position = self.started
        self.started += 1
        self.running.append(event.tool_call_id)
        if position >= len(self.calls) or self.calls[position].id != event.tool_call_id:
            self.say(f"call {event.tool_call_id} is not the next one of the response")
            return
        call = self.calls[position]
        if (event.tool_name, event.args) != (call.name, call.arguments):
            self.say(f"call {event.tool_call_id}: name or arguments are not those of the response")

    def tool_end(self, event: ToolExecutionEndEvent) -> None:
        if event.tool_call_id in self.running:
            self.running.remove(event.tool_call_id)
        else:
            self.say(f"call {event.tool_call_id} ends without a start")
        self.ended.setdefault(event.tool_call_id, []).append(event)
