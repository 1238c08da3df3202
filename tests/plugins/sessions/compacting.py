"""Transcripts to compact, and a scripted model that summarises them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pi_core import (
    AgentMessage,
    AssistantMessage,
    Context,
    DoneEvent,
    ErrorEvent,
    Model,
    StreamOptions,
    TextContent,
    ToolCallContent,
    ToolResultMessage,
    Usage,
    UserMessage,
    WireModel,
)
from pi_core.testing import SCRIPTED_MODEL, Reply, ScriptedProvider
from pi_plugins.sessions.compaction import Complete
from pi_plugins.sessions.entries import Entry

SUMMARY = "## Goal\nship it\n\n## Progress\n### Done\n- [x] a.txt read\n\n## Next Steps\n1. write b.txt"


def model(window: int = 0, max_tokens: int = 0) -> Model:
    return SCRIPTED_MODEL.model_copy(update={"context_window": window, "max_tokens": max_tokens})


def user(text: str, timestamp: int = 1) -> UserMessage:
    return UserMessage(content=[TextContent(text=text)], timestamp=timestamp)


def assistant(
    text: str = "", *calls: tuple[str, str, Mapping[str, Any]], tokens: int = 0, timestamp: int = 2, stop: Any = None
) -> AssistantMessage:
    """A response. Each call is id, name and arguments; ``tokens`` is what the server reported."""
    content: list[Any] = [TextContent(text=text)] if text else []
    content += [ToolCallContent(id=id_, name=name, arguments=dict(arguments)) for id_, name, arguments in calls]
    return AssistantMessage(
        content=content,
        api="scripted",
        provider="scripted",
        model="scripted",
        usage=Usage(input=tokens, total_tokens=tokens),
        stop_reason=stop or ("toolUse" if calls else "stop"),
        timestamp=timestamp,
    )


def result(call_id: str, text: str = "done", name: str = "read", is_error: bool = False) -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id=call_id, tool_name=name, content=[TextContent(text=text)], is_error=is_error, timestamp=3
    )


def path_of(*bodies: AgentMessage | tuple[str, WireModel]) -> list[Entry]:
    """The entries of a session without branches: messages, and other bodies with their type. Ids are ``e0``, ``e1``."""
    entries: list[Entry] = []
    for number, body in enumerate(bodies):
        kind, held = body if isinstance(body, tuple) else ("message", body)
        parent = entries[-1].id if entries else None
        entries.append(Entry(kind, f"e{number}", parent, f"2026-11-29T10:00:{number:02}.000Z", held))
    return entries


def completing(provider: ScriptedProvider, asked: Model = SCRIPTED_MODEL) -> Complete:
    """What makes the requests of a summary with a scripted model."""

    async def complete(context: Context, options: StreamOptions) -> AssistantMessage:
        async for event in provider.stream(asked, context, options):
            if isinstance(event, DoneEvent | ErrorEvent):
                return event.message
        raise AssertionError("the script always ends")

    return complete


def scripted(*replies: Reply | str) -> tuple[ScriptedProvider, Complete]:
    provider = ScriptedProvider(*replies)
    return provider, completing(provider)


def asked_text(provider: ScriptedProvider, number: int = 0) -> str:
    """The user's message of a request for a summary."""
    message = provider.requests[number].messages[0]
    assert isinstance(message, UserMessage)
    assert isinstance(message.content, list)
    return "".join(block.text for block in message.content if isinstance(block, TextContent))


def roles(messages: Iterable[AgentMessage]) -> list[str]:
    return [message.role for message in messages]
