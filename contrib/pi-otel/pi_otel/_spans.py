"""The spans and their attributes.

The names are those of the OpenTelemetry conventions for generative AI. They are written out here because the package
that has them as constants keeps them in a module it calls private.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from pi_core import (
    AssistantMessage,
    Context,
    Message,
    Model,
    StreamOptions,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolCallContent,
    ToolResult,
    ToolResultMessage,
    Usage,
)

_FINISH_REASONS = {"toolUse": "tool_calls", "aborted": "error"}
_PROVIDERS = {
    "anthropic": "anthropic",
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}


def within(span: Span) -> AbstractContextManager[Span]:
    """Make a span the current one for a while."""
    return trace.use_span(span, end_on_exit=False, record_exception=False, set_status_on_exception=False)


def begin_run(tracer: Tracer, agent_name: str | None, model: Model) -> Span:
    """Begin the span of a run, below the span that is current."""
    attributes = {"gen_ai.operation.name": "invoke_agent", **_model(model)}
    if agent_name:
        attributes["gen_ai.agent.name"] = agent_name
    name = f"invoke_agent {agent_name}" if agent_name else "invoke_agent"
    return tracer.start_span(name, kind=SpanKind.INTERNAL, attributes=attributes)


def begin_request(
    tracer: Tracer, run: Span | None, model: Model, context: Context, options: StreamOptions, *, content: bool
) -> Span:
    """Begin the span of a request."""
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.stream": True,
        "gen_ai.request.max_tokens": options.max_tokens,
        "gen_ai.request.temperature": options.temperature,
        "gen_ai.conversation.id": options.session_id,
        **_model(model),
        **_address(model),
    }
    if content:
        attributes["gen_ai.input.messages"] = _json([_message(message) for message in context.messages])
        if context.system_prompt:
            parts = [{"type": "text", "content": context.system_prompt}]
            attributes["gen_ai.system_instructions"] = _json(parts)
    return _begin(tracer, run, f"chat {model.id}", SpanKind.CLIENT, attributes)


def begin_call(tracer: Tracer, run: Span | None, call: ToolCall, *, content: bool) -> Span:
    """Begin the span of a tool call."""
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": call.tool.description or None,
    }
    if content:
        attributes["gen_ai.tool.call.arguments"] = _json(call.arguments)
    return _begin(tracer, run, f"execute_tool {call.name}", SpanKind.INTERNAL, attributes)


def describe_result(span: Span, result: ToolResult, *, content: bool) -> None:
    """Say in the span of a tool call what came of it."""
    if content:
        span.set_attribute("gen_ai.tool.call.result", _json(_parts(result.content or ())))
    if result.is_error:
        _set_failed(span, "tool_error", "")


def describe(span: Span, answers: Sequence[AssistantMessage], *, content: bool) -> None:
    """Say in a span what the answers in it say together."""
    for name, value in _usage(answer.usage for answer in answers).items():
        span.set_attribute(name, value)
    if answers:
        last = answers[-1]
        span.set_attribute("gen_ai.response.finish_reasons", [_finish_reason(last)])
        span.set_attribute("gen_ai.response.model", last.response_model or last.model)
        if last.response_id:
            span.set_attribute("gen_ai.response.id", last.response_id)
        if content:
            message = {**_message(last), "finish_reason": _finish_reason(last)}
            span.set_attribute("gen_ai.output.messages", _json([message]))
        if last.stop_reason in ("error", "aborted"):
            details = last.error_details
            kind = last.stop_reason if details is None else details.type or str(details.status or last.stop_reason)
            _set_failed(span, kind, last.error_message or "")


def failed(span: Span, error: BaseException) -> None:
    """Say in a span which exception ended it."""
    _set_failed(span, type(error).__qualname__, str(error))


def _begin(tracer: Tracer, run: Span | None, name: str, kind: SpanKind, attributes: Mapping[str, Any]) -> Span:
    parent = None if run is None else trace.set_span_in_context(run)
    known = {key: value for key, value in attributes.items() if value is not None}
    return tracer.start_span(name, context=parent, kind=kind, attributes=known)


def _set_failed(span: Span, kind: str, text: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, text))


def _model(model: Model) -> dict[str, Any]:
    known = next((name for start, name in _PROVIDERS.items() if model.provider.startswith(start)), model.provider)
    return {"gen_ai.provider.name": known, "gen_ai.request.model": model.id}


def _address(model: Model) -> dict[str, Any]:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(model.base_url)
        port = parts.port
    except ValueError:
        return {}
    return {"server.address": parts.hostname, "server.port": port or {"https": 443, "http": 80}.get(parts.scheme)}


def _usage(usages: Iterable[Usage]) -> dict[str, int]:
    """Token counts; those of the prompt contain what came from and went to the cache."""
    found = list(usages)
    cached = sum(usage.cache_read for usage in found)
    written = sum(usage.cache_write for usage in found)
    counts = {
        "gen_ai.usage.input_tokens": sum(usage.input for usage in found) + cached + written,
        "gen_ai.usage.output_tokens": sum(usage.output for usage in found),
        "gen_ai.usage.cache_read.input_tokens": cached,
        "gen_ai.usage.cache_creation.input_tokens": written,
        "gen_ai.usage.reasoning.output_tokens": sum(usage.reasoning or 0 for usage in found),
    }
    return {name: count for name, count in counts.items() if count}


def _finish_reason(message: AssistantMessage) -> str:
    return _FINISH_REASONS.get(message.stop_reason, message.stop_reason)


def _message(message: Message) -> dict[str, Any]:
    if isinstance(message, ToolResultMessage):
        response = _parts(message.content)
        return {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": message.tool_call_id, "response": response}],
        }
    blocks = [TextContent(text=message.content)] if isinstance(message.content, str) else message.content
    return {"role": message.role, "parts": _parts(blocks)}


def _parts(blocks: Iterable[Any]) -> list[dict[str, Any]]:
    """Content as the conventions write it; images are named, not copied."""
    parts: list[dict[str, Any]] = []
    for block in blocks:
        if isinstance(block, TextContent):
            parts.append({"type": "text", "content": block.text})
        elif isinstance(block, ThinkingContent):
            parts.append({"type": "reasoning", "content": block.thinking})
        elif isinstance(block, ToolCallContent):
            parts.append({"type": "tool_call", "id": block.id, "name": block.name, "arguments": block.arguments})
        else:
            parts.append({"type": block.type})
    return parts


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, default=str)
