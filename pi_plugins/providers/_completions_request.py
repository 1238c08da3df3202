"""The request of the chat completions API."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pi_core import (
    AssistantMessage,
    Context,
    ImageContent,
    Message,
    Model,
    StreamOptions,
    TextContent,
    ThinkingContent,
    Tool,
    ToolCallContent,
    ToolResultMessage,
)

from ._completions_compat import Compat
from ._completions_decode import THINKING_FIELDS
from ._completions_thinking import thinking_fields
from ._grammar import free_text, grammar_arguments, grammar_of
from ._headers import cache_retention
from ._history import HistoryRules, has_tool_traffic, prepare_history
from ._strict_schema import strict_parameters
from ._text import clean, short_hash
from ._thinking import requested_level, sampling_params
from ._tokens import output_limit

TOOL_IMAGES: Final = "Attached image(s) from tool result:"
_SEE_IMAGE: Final = "(see attached image)"
_NO_OUTPUT: Final = "(no tool output)"
_RESULTS_READ: Final = "The tool results have been read."
_ID_LIMIT: Final = 40
_SESSION_LIMIT: Final = 64
_AFFINITY_HEADERS: Final[Mapping[str, tuple[str, ...]]] = {
    "openai": ("session_id", "x-client-request-id", "x-session-affinity"),
    "openai-nosession": ("x-client-request-id", "x-session-affinity"),
    "openrouter": ("x-session-id",),
}


def build_payload(model: Model, compat: Compat, context: Context, options: StreamOptions) -> dict[str, Any]:
    """Return the body of a request.

    :raises ValueError: a tool asks for what the server cannot do.
    """
    grammar_tools = grammar_arguments(context.tools, supported=compat.supports_openai_grammar_tools)
    history = prepare_history(context.messages, model, HistoryRules(_legal_id(model), _ID_LIMIT))
    level = requested_level(model, options.reasoning)
    max_tokens = output_limit(model, context, options)
    payload: dict[str, Any] = {
        "model": model.id,
        "messages": _messages(model, compat, context, history, grammar_tools),
        "stream": True,
    }
    if compat.supports_usage_in_streaming:
        payload["stream_options"] = {"include_usage": True}
    if compat.supports_store:
        payload["store"] = False
    if max_tokens is not None:
        payload[compat.max_tokens_field] = max_tokens
    if options.temperature is not None:
        payload["temperature"] = options.temperature
    if context.tools:
        payload["tools"] = [_tool(tool, compat, grammar_tools) for tool in context.tools]
        if options.tool_choice is not None:
            payload["tool_choice"] = _tool_choice(options.tool_choice)
    elif compat.requires_tools_with_tool_history and has_tool_traffic(history):
        payload["tools"] = []
    if compat.zai_tool_stream and context.tools:
        payload["tool_stream"] = True
    payload.update(_cache_fields(model, compat, options))
    payload.update(thinking_fields(model, compat, level, options, max_tokens))
    payload.update(_routing(compat))
    if compat.cache_control_format == "anthropic":
        _mark_cache(payload, compat, options)
    payload.update(sampling_params(model, level, options))
    return payload


def session_headers(compat: Compat, options: StreamOptions) -> dict[str, str | None]:
    """Return the headers by which a server keeps the requests of a session together."""
    style = compat.send_session_affinity_headers
    if not style or not options.session_id or cache_retention(options) == "none":
        return {}
    return dict.fromkeys(_AFFINITY_HEADERS.get("openai" if style is True else style, ()), options.session_id)


# --- messages -----------------------------------------------------------------------------------------------------


def _messages(
    model: Model, compat: Compat, context: Context, history: Sequence[Message], grammar_tools: Mapping[str, str]
) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    images: list[dict[str, Any]] = []
    after_result = False
    if context.system_prompt:
        role = "developer" if model.reasoning and compat.supports_developer_role else "system"
        messages.append({"role": role, "content": clean(context.system_prompt)})
    for message in history:
        if isinstance(message, ToolResultMessage):
            messages.append(_tool_result(message, compat))
            images += [_image(block) for block in message.content if isinstance(block, ImageContent)]
            after_result = True
            continue
        _flush_images(messages, images, compat)
        if isinstance(message, AssistantMessage):
            made = _assistant(message, compat, grammar_tools)
        else:
            made = _user(message.content)
            if made is not None and after_result and compat.requires_assistant_after_tool_result:
                messages.append({"role": "assistant", "content": _RESULTS_READ})
        if made is not None:
            messages.append(made)
            after_result = False
    _flush_images(messages, images, compat)
    return messages


def _flush_images(messages: list[dict[str, Any]], images: list[dict[str, Any]], compat: Compat) -> None:
    """The images of a run of tool results, which only a user message can carry."""
    if not images:
        return
    if compat.requires_assistant_after_tool_result:
        messages.append({"role": "assistant", "content": _RESULTS_READ})
    messages.append({"role": "user", "content": [{"type": "text", "text": TOOL_IMAGES}, *images]})
    images.clear()


def _user(content: Any) -> dict[str, Any] | None:
    if isinstance(content, str):
        return {"role": "user", "content": clean(content)}
    parts = []
    for block in content:
        if isinstance(block, ImageContent):
            parts.append(_image(block))
        elif isinstance(block, TextContent) and block.text:
            parts.append({"type": "text", "text": clean(block.text)})
    return {"role": "user", "content": parts} if parts else None


def _image(block: ImageContent) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{block.mime_type};base64,{block.data}"}}


def _tool_result(message: ToolResultMessage, compat: Compat) -> dict[str, Any]:
    texts = [clean(block.text) for block in message.content if isinstance(block, TextContent)]
    has_image = any(isinstance(block, ImageContent) for block in message.content)
    content = "\n".join(texts) or (_SEE_IMAGE if has_image else _NO_OUTPUT)
    result = {"role": "tool", "content": content, "tool_call_id": message.tool_call_id}
    if compat.requires_tool_result_name:
        result["name"] = message.tool_name
    return result


def _assistant(message: AssistantMessage, compat: Compat, grammar_tools: Mapping[str, str]) -> dict[str, Any] | None:
    text = "".join(
        clean(block.text) for block in message.content if isinstance(block, TextContent) and block.text.strip()
    )
    calls = [_call(block, grammar_tools) for block in message.content if isinstance(block, ToolCallContent)]
    if not text and not calls:
        return None
    filler = "" if compat.requires_non_null_assistant_content or compat.requires_assistant_after_tool_result else None
    made: dict[str, Any] = {"role": "assistant", "content": text or filler}
    _add_thinking(made, message, compat)
    if compat.requires_reasoning_content_on_assistant_messages:
        made.setdefault("reasoning_content", "")
    if calls:
        made["tool_calls"] = calls
    return made


def _add_thinking(made: dict[str, Any], message: AssistantMessage, compat: Compat) -> None:
    """Thinking goes back in the field it came in, which its signature names; OpenRouter's as the details they are."""
    by_field: dict[str, list[str]] = {}
    details: list[Any] = []
    texts: list[str] = []
    for block in message.content:
        if not isinstance(block, ThinkingContent):
            continue
        signature = block.thinking_signature or ""
        if block.thinking.strip():
            texts.append(clean(block.thinking))
        if signature in THINKING_FIELDS:
            by_field.setdefault(signature, []).append(clean(block.thinking))
        elif signature.startswith("["):
            details += _details(signature)
    if compat.requires_thinking_as_text:
        if texts:
            parts = [{"type": "text", "text": "\n\n".join(texts)}]
            made["content"] = parts + ([{"type": "text", "text": made["content"]}] if made["content"] else [])
        return
    for field, thoughts in by_field.items():
        made[field] = "\n".join(thoughts)
    if details:
        made["reasoning_details"] = details


def _details(signature: str) -> list[Any]:
    try:
        details = json.loads(signature)
    except ValueError:
        return []
    return details if isinstance(details, list) and all(isinstance(detail, dict) for detail in details) else []


def _call(call: ToolCallContent, grammar_tools: Mapping[str, str]) -> dict[str, Any]:
    if call.name in grammar_tools:
        text = free_text(call.arguments, grammar_tools[call.name])
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": clean(text)}}
    arguments = clean(json.dumps(call.arguments, ensure_ascii=False, separators=(",", ":")))
    made: dict[str, Any] = {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }
    if call.thought_signature is not None:
        made["extra_content"] = {"google": {"thought_signature": call.thought_signature}}
    return made


def _legal_id(model: Model) -> Any:
    def legal_id(call_id: str) -> str:
        call, bar, item = call_id.partition("|")
        if bar:
            whole = _safe(f"{call}_{item}")
            return whole if len(whole) <= _ID_LIMIT else f"{_safe(call)[: _ID_LIMIT - 9]}_{short_hash(call_id)[:8]}"
        return call_id[:_ID_LIMIT] if model.provider == "openai" else call_id

    return legal_id


def _safe(call_id: str) -> str:
    return "".join(char if char.isascii() and (char.isalnum() or char in "_-") else "_" for char in call_id)


# --- tools --------------------------------------------------------------------------------------------------------


def _tool(tool: Tool, compat: Compat, grammar_tools: Mapping[str, str]) -> dict[str, Any]:
    if tool.name in grammar_tools:
        format_ = {"type": "grammar", "grammar": grammar_of(tool)}
        custom = {"name": tool.name, "description": tool.description, "format": format_}
        return {"type": "custom", "custom": custom}
    parameters, strict = strict_parameters(tool, supported=compat.supports_strict_mode)
    function: dict[str, Any] = {"name": tool.name, "description": tool.description, "parameters": parameters}
    if compat.supports_strict_mode:
        function["strict"] = strict
    return {"type": "function", "function": function}


def _tool_choice(choice: Any) -> Any:
    if choice == "any":
        return "required"
    if isinstance(choice, Mapping) and choice.get("type") == "tool":
        return {"type": "function", "function": {"name": choice.get("name")}}
    return choice


# --- the other fields ---------------------------------------------------------------------------------------------


def _cache_fields(model: Model, compat: Compat, options: StreamOptions) -> dict[str, Any]:
    retention = cache_retention(options)
    long = retention == "long" and compat.supports_long_cache_retention
    fields: dict[str, Any] = {}
    mode = compat.prompt_cache_key_mode
    wanted = mode == "enabled" or (mode == "auto" and ("api.openai.com" in model.base_url or long))
    if options.session_id and retention != "none" and wanted:
        fields["prompt_cache_key"] = options.session_id[:_SESSION_LIMIT]
    if long:
        fields["prompt_cache_retention"] = "24h"
    return fields


def _routing(compat: Compat) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if compat.open_router_routing:
        fields["provider"] = compat.open_router_routing
    gateway = compat.vercel_gateway_routing or {}
    order = {name: gateway[name] for name in ("only", "order") if gateway.get(name)}
    if order:
        fields["providerOptions"] = {"gateway": order}
    if compat.vllm_priority is not None:
        fields["priority"] = compat.vllm_priority
    return fields


def _mark_cache(payload: dict[str, Any], compat: Compat, options: StreamOptions) -> None:
    """Mark the ends of the parts that repeat: system prompt, tools, and the conversation so far."""
    retention = cache_retention(options)
    if retention == "none":
        return
    mark: dict[str, Any] = {"type": "ephemeral"}
    if retention == "long" and compat.supports_long_cache_retention:
        mark["ttl"] = "1h"
    messages = payload["messages"]
    if messages and messages[0]["role"] in ("system", "developer"):
        _mark_text(messages[0], mark)
    if payload.get("tools"):
        payload["tools"][-1]["cache_control"] = mark
    for message in reversed(messages):
        if message["role"] in ("user", "assistant", "tool") and _mark_text(message, mark):
            return


def _mark_text(message: dict[str, Any], mark: dict[str, Any]) -> bool:
    content = message["content"]
    if isinstance(content, str) and content:
        content = message["content"] = [{"type": "text", "text": content}]
    texts = [part for part in content or () if part["type"] == "text"]
    if texts:
        texts[-1]["cache_control"] = mark
    return bool(texts)
