"""The request: the history as this API takes it, tools, and options."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pi_core import (
    AssistantMessage,
    Context,
    ImageContent,
    Message,
    Model,
    StreamOptions,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultMessage,
    UserMessage,
)

NO_RESULT = "No result provided"


def build_payload(model: Model, context: Context, options: StreamOptions) -> dict[str, Any]:
    """Return the JSON body of a request."""
    messages = list(_messages(context.messages, model))
    if context.system_prompt:
        messages.insert(0, {"role": "system", "content": context.system_prompt})
    payload: dict[str, Any] = {"model": model.id, "stream": True, "messages": messages}
    if context.tools:
        payload["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.schema,
                    "strict": False,
                },
            }
            for tool in context.tools
        ]
    if options.temperature is not None:
        payload["temperature"] = options.temperature
    longest = options.max_tokens or model.max_tokens
    if longest:
        payload["max_tokens"] = longest
    if options.session_id and options.cache_retention != "none":
        payload["prompt_cache_key"] = options.session_id
    return {**payload, **_thinking(model, options), **(options.sampling_params or {})}


def build_headers(model: Model, options: StreamOptions) -> dict[str, str | None]:
    """Return the headers of a request; a later one replaces an earlier one of its name, ``None`` removes it."""
    headers: dict[str, str | None] = {"accept": "text/event-stream", "user-agent": "pi-example-provider"}
    if options.session_id and options.cache_retention != "none":
        headers["x-affinity"] = options.session_id
    for further in (model.headers, options.headers):
        headers.update({name.lower(): value for name, value in (further or {}).items()})
    return headers


def _thinking(model: Model, options: StreamOptions) -> dict[str, Any]:
    if not model.reasoning:
        return {}
    levels = model.thinking_level_map
    if levels:
        effort = levels.get(options.reasoning, "high") if options.reasoning else levels.get("off")
        return {"reasoning_effort": effort} if effort else {}
    return {"prompt_mode": "reasoning"} if options.reasoning else {}


def _messages(messages: Sequence[Message], model: Model) -> Iterator[dict[str, Any]]:
    """Every call is followed by its result; what a failed response left behind is not sent."""
    for position, message in enumerate(messages):
        if isinstance(message, UserMessage):
            content = _user_content(message, model)
            if content:
                yield {"role": "user", "content": content}
        elif isinstance(message, AssistantMessage) and message.stop_reason not in ("error", "aborted"):
            own = (message.api, message.provider, message.model) == (model.api, model.provider, model.id)
            made = _assistant(message, own)
            if made is not None:
                yield made
            results = _results_after(messages, position)
            for call in message.tool_calls:
                yield _result(
                    call, next((found for found in results if found.tool_call_id == call.id), None), model, own
                )


def _results_after(messages: Sequence[Message], position: int) -> list[ToolResultMessage]:
    results = []
    for message in messages[position + 1 :]:
        if isinstance(message, AssistantMessage):
            break
        if isinstance(message, ToolResultMessage):
            results.append(message)
    return results


def _user_content(message: UserMessage, model: Model) -> Any:
    if isinstance(message.content, str):
        return message.content
    return list(_parts(message.content, model, "(image omitted: the model does not see images)"))


def _assistant(message: AssistantMessage, own: bool) -> dict[str, Any] | None:
    parts: list[dict[str, Any]] = []
    for block in message.content:
        if isinstance(block, ThinkingContent) and own and block.thinking.strip():
            parts.append({"type": "thinking", "thinking": [{"type": "text", "text": block.thinking}]})
        elif isinstance(block, TextContent) and block.text.strip():
            parts.append({"type": "text", "text": block.text})
    made: dict[str, Any] = {"role": "assistant", "prefix": False}
    if parts:
        made["content"] = parts
    if message.tool_calls:
        made["tool_calls"] = [
            {
                "id": call_id(call.id, own),
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": json.dumps(call.arguments, separators=(",", ":"), ensure_ascii=False),
                },
                "index": 0,
            }
            for call in message.tool_calls
        ]
    return made if len(made) > 2 else None


def _result(call: ToolCallContent, result: ToolResultMessage | None, model: Model, own: bool) -> dict[str, Any]:
    failed = result is None or result.is_error
    blocks = [TextContent(text=NO_RESULT)] if result is None else result.content
    parts = list(_parts(blocks, model, "(image omitted: the model does not see images)"))
    if not parts:
        parts = [{"type": "text", "text": "(no output)"}]
    elif parts[0]["type"] != "text":
        parts.insert(0, {"type": "text", "text": "(see the image)"})
    if failed:
        parts[0]["text"] = f"[tool error] {parts[0]['text']}"
    return {"role": "tool", "name": call.name, "content": parts, "tool_call_id": call_id(call.id, own)}


def _parts(blocks: Iterable[Any], model: Model, omitted: str) -> Iterator[dict[str, Any]]:
    for block in blocks:
        if isinstance(block, TextContent) and block.text:
            yield {"type": "text", "text": block.text}
        elif isinstance(block, ImageContent):
            if "image" in model.input:
                yield {"type": "image_url", "image_url": f"data:{block.mime_type};base64,{block.data}"}
            else:
                yield {"type": "text", "text": omitted}


def call_id(given: str, own: bool) -> str:
    """Return the id of a call as the API takes it: its own as they are, others as nine letters and digits."""
    if own or (len(given) == 9 and given.isalnum() and given.isascii()):
        return given
    return hashlib.sha256(given.encode()).hexdigest()[:9]
