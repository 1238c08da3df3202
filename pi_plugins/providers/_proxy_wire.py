"""What travels between client and proxy: the body of a request, and the events of a response."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from pi_core import (
    AssistantMessage,
    Context,
    DoneEvent,
    ErrorEvent,
    MessageAssembler,
    Model,
    StartEvent,
    StreamEvent,
    StreamOptions,
    TextContent,
    TextDeltaEvent,
    TextEndEvent,
    TextStartEvent,
    ThinkingContent,
    ThinkingDeltaEvent,
    ThinkingEndEvent,
    ThinkingStartEvent,
    ToolCallContent,
    ToolCallDeltaEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)

from ._proxy_decode import EXTRAS

API: Final = "proxy"
OPTIONS: Final[Mapping[str, str]] = {
    "temperature": "temperature",
    "samplingParams": "sampling_params",
    "maxTokens": "max_tokens",
    "reasoning": "reasoning",
    "cacheRetention": "cache_retention",
    "sessionId": "session_id",
    "headers": "headers",
    "metadata": "metadata",
    "transport": "transport",
    "thinkingBudgets": "thinking_budgets",
    "maxRetryDelayMs": "max_retry_delay_ms",
}
"""The options that travel, by their names on the wire. Keys, time limits and callbacks stay on their side."""


def request_body(model: Model, context: Context, options: StreamOptions) -> dict[str, Any]:
    """Return the body of a request: the model, the context, and the options that travel."""
    if options.tool_choice is not None:
        logging.getLogger("pi.proxy").warning("the option tool_choice does not travel through a proxy")
    shown = model.to_json()
    if model.api == API:
        # They belong to requests to the model's base URL, which is the proxy.
        shown.pop("headers", None)
    said: dict[str, Any] = {"systemPrompt": context.system_prompt} if context.system_prompt else {}
    said["messages"] = [message.to_json() for message in context.messages]
    if context.tools:
        said["tools"] = [tool.declaration() for tool in context.tools]
    chosen = {}
    for key, name in OPTIONS.items():
        value = getattr(options, name)
        if value is not None:
            chosen[key] = dict(value) if isinstance(value, Mapping) else value
    return {"model": shown, "context": said, "options": chosen}


def sse(event: Mapping[str, Any]) -> bytes:
    """Return an event as it goes over the wire."""
    text = json.dumps(event, ensure_ascii=False, separators=(",", ":"), default=str)
    try:
        return f"data: {text}\n\n".encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair: escaped, it waits for the other half on the other side.
        return f"data: {json.dumps(event, separators=(',', ':'), default=str)}\n\n".encode()


class WireEncoder:
    """Turns the stream events of one response into those of the wire.

    It keeps the message that a client puts together from them. Where that is not the whole message (a block was hidden,
    changed at its end, or of an unknown type), the final event brings the content along.

    :param model: who answers.
    """

    def __init__(self, model: Model) -> None:
        self._mirror = MessageAssembler(model.api, model.provider, model.id)

    def encode(self, event: StreamEvent) -> list[dict[str, Any]]:
        """Return the events of the wire for a stream event."""
        mirror = self._mirror
        match event:
            case TextDeltaEvent(content_index=index, delta=delta):
                mirror.text_delta(index, delta)
                return [event.to_json()]
            case ThinkingDeltaEvent(content_index=index, delta=delta):
                mirror.thinking_delta(index, delta)
                return [event.to_json()]
            case ToolCallDeltaEvent(content_index=index, delta=delta):
                mirror.toolcall_delta(index, delta)
                return [event.to_json()]
            case StartEvent():
                return [{"type": "start"}, *self._begun(event.partial)]
            case TextStartEvent(content_index=index, text=text):
                return self._text_start(index, text)
            case ThinkingStartEvent(content_index=index, thinking=thinking):
                return self._thinking_start(index, thinking, event.redacted)
            case ToolCallStartEvent(content_index=index, id=call_id, name=name):
                return self._call_start(index, call_id, name)
            case TextEndEvent(content_index=index, signature=signature):
                mirror.text_end(index, signature=signature)
                return [_end("text_end", index, signature)]
            case ThinkingEndEvent(content_index=index, signature=signature):
                mirror.thinking_end(index, signature=signature)
                return [_end("thinking_end", index, signature)]
            case ToolCallEndEvent(content_index=index, tool_call=call):
                return [self._call_end(index, call)]
            case DoneEvent(message=message):
                return [{"type": "done", "reason": message.stop_reason, **self._final(message)}]
            case ErrorEvent(message=message):
                said = {} if message.error_message is None else {"errorMessage": message.error_message}
                return [{"type": "error", "reason": message.stop_reason, **said, **self._final(message)}]
        raise TypeError(f"a provider yields stream events, got {event!r}")

    def _begun(self, partial: AssistantMessage) -> list[dict[str, Any]]:
        """The blocks of a message that does not begin empty; they may go on."""
        events: list[dict[str, Any]] = []
        for index, block in enumerate(partial.content):
            if isinstance(block, TextContent):
                events += self._text_start(index, block.text)
            elif isinstance(block, ThinkingContent):
                events += self._thinking_start(index, block.thinking, block.redacted)
            elif isinstance(block, ToolCallContent):
                events += self._call_start(index, block.id, block.name)
                events.append(self._call_end(index, block))
        return events

    def _text_start(self, index: int, text: str) -> list[dict[str, Any]]:
        self._mirror.text_start(index, text)
        begun: dict[str, Any] = {"type": "text_start", "contentIndex": index}
        return [begun, {"type": "text_delta", "contentIndex": index, "delta": text}] if text else [begun]

    def _thinking_start(self, index: int, thinking: str, redacted: bool | None) -> list[dict[str, Any]]:
        self._mirror.thinking_start(index, thinking, redacted=redacted)
        begun: dict[str, Any] = {"type": "thinking_start", "contentIndex": index}
        if redacted:
            begun["redacted"] = True
        return [begun, {"type": "thinking_delta", "contentIndex": index, "delta": thinking}] if thinking else [begun]

    def _call_start(self, index: int, call_id: str, name: str) -> list[dict[str, Any]]:
        self._mirror.toolcall_start(index, call_id, name)
        return [{"type": "toolcall_start", "contentIndex": index, "id": call_id, "toolName": name}]

    def _call_end(self, index: int, call: ToolCallContent) -> dict[str, Any]:
        self._mirror.apply(ToolCallEndEvent(index, call))
        return {"type": "toolcall_end", "contentIndex": index, "toolCall": call.to_json()}

    def _final(self, message: AssistantMessage) -> dict[str, Any]:
        data = message.to_json()
        fields = {"usage": data["usage"]}
        for key in ("providerThinkingLevel", *EXTRAS[1:]):
            if key in data:
                fields[key] = data[key]
        seen = [block.to_json() for block in self._mirror.message().content]
        if data["content"] != seen:
            fields["content"] = data["content"]
        return fields


def _end(kind: str, index: int, signature: str | None) -> dict[str, Any]:
    event: dict[str, Any] = {"type": kind, "contentIndex": index}
    if signature is not None:
        event["contentSignature"] = signature
    return event
