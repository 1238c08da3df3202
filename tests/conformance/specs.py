"""What scenarios write down and what they mean: messages, models, tool results, edits; and the form traces have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pi_core import (
    AgentMessage,
    ImageContent,
    Model,
    OpaqueContent,
    TextContent,
    ToolResult,
    Usage,
    now_ms,
    parse_message,
)

Json = dict[str, Any]

_RESULT_FIELDS = {"structuredContent": "structured_content", "isError": "is_error", "terminate": "terminate"}


class ScriptError(Exception):
    """What a scenario raises."""


def message(spec: str | Json) -> AgentMessage:
    """The message of a message spec."""
    if isinstance(spec, str):
        spec = {"role": "user", "content": [{"type": "text", "text": spec}]}
    data = {"timestamp": now_ms(), **spec}
    content = data.get("content")
    if data["role"] in ("assistant", "toolResult") and isinstance(content, str):
        content = data["content"] = [{"type": "text", "text": content}]
    if data["role"] == "assistant":
        calls = any(block["type"] == "toolCall" for block in content or ())
        defaults = {"api": "test-api", "provider": "test-provider", "model": "test-model"}
        data = {**defaults, "stopReason": "toolUse" if calls else "stop", **data}
    elif data["role"] == "toolResult":
        data = {"isError": False, **data}
    return parse_message(data)


def messages(specs: str | Json | Sequence[str | Json] | None) -> list[AgentMessage]:
    """The messages of a list of specs; a single spec is a list of one."""
    if specs is None:
        return []
    return [message(spec) for spec in ([specs] if isinstance(specs, str | dict) else specs)]


def model(ref: str = "test-model") -> Model:
    """The model of a reference ``id`` or ``provider/id``."""
    provider, _, id_ = ref.partition("/") if "/" in ref else ("test-provider", "", ref)
    return Model(
        id=id_,
        name=id_,
        api="test-api",
        provider=provider,
        base_url="http://localhost:0",
        reasoning=True,
        input=["text", "image"],
        context_window=100_000,
        max_tokens=1000,
    )


def blocks(specs: Iterable[Json]) -> list[Any]:
    """Text and image blocks of a result."""
    kinds = {"text": TextContent, "image": ImageContent}
    return [kinds.get(spec["type"], OpaqueContent).model_validate(spec) for spec in specs]


def result_fields(spec: Mapping[str, Any]) -> Json:
    """The fields of a result or of an override; a field that is absent is not among them."""
    fields: Json = {}
    for key, value in spec.items():
        if key == "content":
            fields["content"] = None if value is None else blocks(value)
        elif key == "usage":
            fields["usage"] = None if value is None else Usage.model_validate(value)
        elif key == "details":
            fields["details"] = value
        else:
            fields[_RESULT_FIELDS[key]] = value
    return fields


def tool_result(spec: Json) -> ToolResult:
    """The result of a result spec."""
    if "text" in spec:
        spec = dict(spec)
        spec = {"content": [{"type": "text", "text": spec.pop("text")}], "details": {}, **spec}
    return ToolResult(**result_fields(spec))


def edited(given: Sequence[AgentMessage], edit: Json) -> list[AgentMessage]:
    """The messages after an edit of a list."""
    found = messages(edit["messages"]) if "messages" in edit else list(given)
    found = [each for each in found if each.role not in edit.get("dropRoles", ())]
    if "keepLast" in edit:
        found = found[-edit["keepLast"] :]
    return messages(edit.get("prepend")) + found + messages(edit.get("append"))


def roles(given: Iterable[AgentMessage]) -> list[str]:
    """The roles of messages."""
    return [each.role for each in given]


def normalized(value: Any) -> Any:
    """Trace form: no timestamps, no zero usage of assistant messages, no measured durations of tool results."""
    if isinstance(value, list | tuple):
        return [normalized(item) for item in value]
    if not isinstance(value, dict):
        return value
    data = {key: normalized(item) for key, item in value.items()}
    if "role" in data:
        data.pop("timestamp", None)
    if data.get("role") == "assistant" and "usage" in data and not any(_numbers(data["usage"])):
        del data["usage"]
    if "durationMs" in data and (data.get("role") == "toolResult" or data.get("type") == "tool_execution_end"):
        data["durationMs"] = "<ms>"
    return data


def _numbers(value: Any) -> Iterable[float]:
    for item in value.values() if isinstance(value, dict) else ():
        if isinstance(item, dict):
            yield from _numbers(item)
        elif isinstance(item, int | float):
            yield item
