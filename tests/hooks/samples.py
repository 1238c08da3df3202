"""Arguments to call hooks with; everything is made anew, so that a test may spoil it."""

from __future__ import annotations

from typing import Any

from pi_core import (
    AgentContext,
    AssistantMessage,
    Context,
    Model,
    RunContext,
    StreamOptions,
    TextContent,
    Tool,
    ToolCall,
    ToolCallContent,
    ToolContext,
    ToolResult,
    ToolResultMessage,
    Turn,
    UserMessage,
)
from pi_core.testing import SCRIPTED_MODEL, scripted_message


def ctx() -> RunContext:
    return RunContext(model=SCRIPTED_MODEL)


def model(number: int) -> Model:
    return SCRIPTED_MODEL.model_copy(update={"id": f"model-{number}"})


def user(number: int) -> UserMessage:
    return UserMessage(content=[TextContent(text=f"message {number}")], timestamp=number)


def users(*numbers: int) -> list[Any]:
    return [user(number) for number in numbers]


def say(number: int) -> AssistantMessage:
    return scripted_message(text=f"answer {number}").model_copy(update={"timestamp": number})


def context() -> Context:
    return Context("Be brief.", users(1, 2), [tool()])


def options() -> StreamOptions:
    return StreamOptions(headers={"x-one": "1"}, metadata={"user": {"id": "u"}})


def tool() -> Tool:
    parameters = {
        "type": "object",
        "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["path"],
    }
    return Tool("read", "Read a file.", parameters, lambda arguments, context: f"contents of {arguments['path']}")


def content(number: int = 1) -> ToolCallContent:
    return ToolCallContent(id=f"call_{number}", name="read", arguments={"path": f"file{number}"})


def call(number: int = 1) -> ToolCall:
    made = content(number)
    return ToolCall(made, dict(made.arguments), tool(), scripted_message(made), ToolContext(made.id))


def result(number: int = 1) -> ToolResult:
    return ToolResult(
        content=[TextContent(text=f"result {number}")],
        details={"lines": [number]},
        structured_content={"parts": [number]},
    )


def result_message(number: int = 1) -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id=f"call_{number}",
        tool_name="read",
        content=[TextContent(text=f"result {number}")],
        timestamp=number,
    )


def turn() -> Turn:
    messages = [*users(1), say(2), result_message()]
    return Turn(
        message=say(2),
        tool_results=[result_message()],
        context=AgentContext("Be brief.", list(messages), [tool()]),
        new_messages=list(messages),
    )
