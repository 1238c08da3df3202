"""Messages and session files for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pi_core import AssistantMessage, TextContent, ToolCallContent, ToolResultMessage, UserMessage

HEADER = {"type": "session", "version": 3, "id": "s1", "timestamp": "2026-01-02T03:04:05.678Z", "cwd": "/work"}


def user(text: str) -> UserMessage:
    return UserMessage(content=[TextContent(text=text)], timestamp=1)


def assistant(text: str = "", *calls: str, **fields: Any) -> AssistantMessage:
    """A response; each call is named by its id."""
    content: list[Any] = [TextContent(text=text)] if text else []
    content += [ToolCallContent(id=call, name="t", arguments={"n": 1}) for call in calls]
    fields = {"api": "a", "provider": "p", "model": "m", "stop_reason": "toolUse" if calls else "stop", **fields}
    return AssistantMessage(content=content, timestamp=2, **fields)


def result(call: str, text: str = "done") -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=call, tool_name="t", content=[TextContent(text=text)], timestamp=3)


def texts(messages: Iterable[Any]) -> list[str]:
    """What each message says, results with the id of their call."""
    said = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            said.append(f"{message.tool_call_id}={''.join(getattr(block, 'text', '') for block in message.content)}")
        elif isinstance(message, AssistantMessage):
            said.append(message.text or "+".join(call.id for call in message.tool_calls))
        elif isinstance(message, UserMessage):
            said.append("".join(getattr(block, "text", "") for block in message.content))
        else:
            said.append(message.to_text())
    return said


def entry(number: int, parent: int | None, **fields: Any) -> dict[str, Any]:
    """The record of an entry; a message of the user that says its number, if no type is given."""
    fields = fields or {"type": "message", "message": user(f"m{number}").to_json()}
    parent_id = None if parent is None else f"{parent:08x}"
    envelope = {"id": f"{number:08x}", "parentId": parent_id, "timestamp": "2026-01-02T03:04:06.000Z"}
    return {"type": fields["type"], **envelope, **fields}


def written(path: Path, *records: Any, header: dict[str, Any] | None = None) -> Path:
    """Write a session file; bytes are lines as they are."""
    lines = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in (header or HEADER, *records)]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path
