"""Events and their JSON form."""

from __future__ import annotations

from typing import Any

import pytest

from pi_core import (
    Agent,
    AgentEndEvent,
    AgentEvent,
    AgentStartEvent,
    DoneEvent,
    ErrorEvent,
    MessageAssembler,
    MessageEndEvent,
    MessageStartEvent,
    MessageUpdateEvent,
    StartEvent,
    TextContent,
    TextDeltaEvent,
    TextEndEvent,
    TextStartEvent,
    ToolExecutionEndEvent,
    ToolExecutionStartEvent,
    ToolExecutionUpdateEvent,
    ToolResult,
    ToolResultMessage,
    TurnEndEvent,
    TurnStartEvent,
    Usage,
    user_message,
)

USER = user_message("hi").model_copy(update={"timestamp": 1})
USER_JSON = {"role": "user", "content": [{"type": "text", "text": "hi"}], "timestamp": 1}
ASSEMBLER = MessageAssembler("a", "p", "m", timestamp=1)
ANSWER = ASSEMBLER.message("stop")
ANSWER_JSON = ANSWER.to_json()
RESULT = ToolResultMessage(tool_call_id="c", tool_name="t", content=[], timestamp=1)
RESULT_JSON = RESULT.to_json()


@pytest.mark.parametrize(
    ("event", "data"),
    [
        (AgentStartEvent(), {"type": "agent_start"}),
        (AgentEndEvent([USER]), {"type": "agent_end", "messages": [USER_JSON]}),
        (TurnStartEvent(), {"type": "turn_start"}),
        (TurnEndEvent(ANSWER, [RESULT]), {"type": "turn_end", "message": ANSWER_JSON, "toolResults": [RESULT_JSON]}),
        (MessageStartEvent(USER), {"type": "message_start", "message": USER_JSON}),
        (MessageEndEvent(USER), {"type": "message_end", "message": USER_JSON}),
        (
            ToolExecutionStartEvent("c", "t", {"a": None}),
            {"type": "tool_execution_start", "toolCallId": "c", "toolName": "t", "args": {"a": None}},
        ),
        (
            ToolExecutionUpdateEvent("c", "t", {}, ToolResult.text("half")),
            {
                "type": "tool_execution_update",
                "toolCallId": "c",
                "toolName": "t",
                "args": {},
                "partialResult": {"content": [{"type": "text", "text": "half"}]},
            },
        ),
        (
            ToolExecutionEndEvent("c", "t", ToolResult(), True),
            {"type": "tool_execution_end", "toolCallId": "c", "toolName": "t", "result": {}, "isError": True},
        ),
        (
            ToolExecutionEndEvent(
                "c",
                "t",
                ToolResult(
                    content=[TextContent(text="x")],
                    details={"d": None},
                    structured_content=None,
                    usage=Usage(input=1),
                    is_error=False,
                    terminate=True,
                ),
                False,
                0,
            ),
            {
                "type": "tool_execution_end",
                "toolCallId": "c",
                "toolName": "t",
                "result": {
                    "content": [{"type": "text", "text": "x"}],
                    "details": {"d": None},
                    "structuredContent": None,
                    "usage": Usage(input=1).to_json(),
                    "isError": False,
                    "terminate": True,
                },
                "isError": False,
                "durationMs": 0,
            },
        ),
        (DoneEvent(ANSWER), {"type": "done", "reason": "stop", "message": ANSWER_JSON}),
        (StartEvent(ANSWER), {"type": "start"}),
    ],
)
def test_json_forms(event: AgentEvent, data: dict[str, Any]) -> None:
    assert event.to_json() == data


def test_json_forms_of_a_streamed_response() -> None:
    assembler = MessageAssembler("a", "p", "m", timestamp=1)
    made = [
        assembler.text_start(0),
        assembler.text_delta(0, "Hi"),
        assembler.text_end(0, signature="s"),
        assembler.thinking_start(1),
        assembler.thinking_delta(1, "hm"),
        assembler.thinking_end(1),
        assembler.toolcall_start(2, "c", "t"),
        assembler.toolcall_delta(2, '{"a":1}'),
        assembler.toolcall_end(2),
    ]
    assert [event.to_json() for event in made] == [
        {"type": "text_start", "contentIndex": 0},
        {"type": "text_delta", "contentIndex": 0, "delta": "Hi"},
        {"type": "text_end", "contentIndex": 0, "content": "Hi"},
        {"type": "thinking_start", "contentIndex": 1},
        {"type": "thinking_delta", "contentIndex": 1, "delta": "hm"},
        {"type": "thinking_end", "contentIndex": 1, "content": "hm"},
        {"type": "toolcall_start", "contentIndex": 2},
        {"type": "toolcall_delta", "contentIndex": 2, "delta": '{"a":1}'},
        {
            "type": "toolcall_end",
            "contentIndex": 2,
            "toolCall": {"type": "toolCall", "id": "c", "name": "t", "arguments": {"a": 1}},
        },
    ]
    update = MessageUpdateEvent(made[1]).to_json()
    assert update["message"]["content"] == [{"type": "text", "text": "Hi"}]
    assert update["message"]["stopReason"] == "pending"
    error = assembler.error("gone", aborted=True)
    assert isinstance(error, ErrorEvent)
    data = error.to_json()
    assert (data["reason"], data["error"]["errorMessage"]) == ("aborted", "gone")


def test_an_update_tells_the_usage_that_was_reported_so_far() -> None:
    assembler = MessageAssembler("a", "p", "m", timestamp=1)
    begun = assembler.text_start(0)
    assert begun.usage == Usage()
    used = Usage(input=5, total_tokens=5)
    assembler.update(usage=used)
    assert assembler.text_delta(0, "Hi").usage is used


def test_an_update_made_by_hand_tells_the_usage_of_the_start() -> None:
    used = Usage(input=5, total_tokens=5)
    start = ASSEMBLER.message("pending").model_copy(update={"usage": used})
    told: list[Usage] = []

    async def stream(*_: Any) -> Any:
        for event in (StartEvent(start), TextStartEvent(0), TextDeltaEvent(0, "Hi"), TextEndEvent(0, "Hi")):
            yield event
        yield DoneEvent(start.model_copy(update={"stop_reason": "stop", "content": [TextContent(text="Hi")]}))

    agent = Agent(stream=stream)
    agent.subscribe(
        lambda event, signal: (
            told.append(event.assistant_message_event.usage) if event.type == "message_update" else None
        )
    )
    agent.run_sync("go")
    assert told == [used, used, used]


def test_an_update_made_by_hand_has_no_usage_before_it_is_taken_in() -> None:
    with pytest.raises(ValueError, match="without a frame"):
        _ = TextDeltaEvent(0, "Hi").usage
