"""Events of the responses API, and what a provider makes of them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from pi_core import AssistantMessage, Context, StreamEvent, user_message


@dataclass
class Run:
    """Plays events to a provider and returns the stream events; the last one is the final event."""

    played: Any
    reply: Any
    calls: Any
    model: Any

    def __call__(self, *events: Any, tools: Any = (), body: bytes | None = None, **fields: Any) -> list[StreamEvent]:
        provider, _ = self.played(self.reply([sse(*events) if body is None else body]))
        context, options = Context(messages=[user_message("x")], tools=tools), self.calls.options({"maxRetries": 0})
        return asyncio.run(self.calls.collect(provider.stream(self.model(**fields), context, options)))


def event(kind: str, index: int | None = 0, **fields: Any) -> dict[str, Any]:
    place = {} if index is None else {"output_index": index}
    return {"type": f"response.{kind}", **place, **fields}


def added(index: int | None = 0, **item: Any) -> dict[str, Any]:
    return event("output_item.added", index, item=item)


def done(index: int | None = 0, **item: Any) -> dict[str, Any]:
    return event("output_item.done", index, item=item)


def delta(text: str, index: int | None = 0, **fields: Any) -> dict[str, Any]:
    return event("output_text.delta", index, delta=text, **fields)


def message(text: str | None = None, item_id: str = "m0") -> dict[str, Any]:
    content = [] if text is None else [{"type": "output_text", "text": text}]
    return {"type": "message", "id": item_id, "role": "assistant", "content": content}


def function(arguments: Any = "", **fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "id": "fc_0", "call_id": "c0", "name": "read", "arguments": arguments, **fields}


def custom(text: str = "") -> dict[str, Any]:
    return {"type": "custom_tool_call", "id": "ctc_0", "call_id": "c0", "name": "apply_patch", "input": text}


def last(kind: str = "completed", **response: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "response": {"id": "r", "status": kind, **response}}


def sse(*events: Any) -> bytes:
    lines = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in events]
    return b"".join(b"data: " + line + b"\n\n" for line in lines)


CREATED = {"type": "response.created", "response": {"id": "r", "status": "in_progress"}}
COMPLETED = last()


def final(events: list[StreamEvent]) -> AssistantMessage:
    assert [event.type for event in events if event.type in ("done", "error")] == [events[-1].type]
    return events[-1].message


def kinds(events: list[StreamEvent]) -> list[str]:
    return [event.type for event in events]
