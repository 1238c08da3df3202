"""The request of the messages API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pi_core import Context, Model, StreamOptions, ThinkingLevel, Tool

from ._anthropic_compat import Compat
from ._anthropic_content import build_messages
from ._headers import cache_retention
from ._strict_schema import strict_parameters
from ._text import clean
from ._thinking import ANSWER_TOKENS, requested_level, thinking_budget, with_thinking_budget
from ._tokens import cap_output, estimate_context, output_limit

DEFAULT_MAX_TOKENS: Final = 8192
"""Tokens of an answer when nobody says: the API has no default of its own."""

THREADS_BETA: Final = "message-threads-2026-08-12"
_TOOL_STREAMING_BETA: Final = "fine-grained-tool-streaming-2025-05-14"
_INTERLEAVED_BETA: Final = "interleaved-thinking-2025-05-14"
_FALLBACK_BETA: Final = "server-side-fallback-2026-07-01"
_EFFORT_BETAS: Final = ("mid-conversation-output-config-2026-07-01", "thinking-binding-controls-2026-08-01")
_INLINE_TOOLS_BETA: Final = "inline-tools-2026-09-15"

_LEAST_BUDGET: Final = 1024
_EFFORTS: Final[Mapping[str, str]] = {"minimal": "low", "low": "low", "medium": "medium", "high": "high"}
_PLACEHOLDER_TOOL: Final = {
    "name": "__pi_deferred_placeholder__",
    "description": "Reserved placeholder. Never available. Never call this.",
    "input_schema": {"type": "object", "properties": {}, "required": []},
    "defer_loading": True,
}


@dataclass(slots=True)
class BuiltRequest:
    """A request body and what goes with it.

    :param betas: features to switch on by header.
    :param effort: the thinking effort of this answer, where the conversation itself carries it.
    :param strict_tools: whether a tool is strict that would do without.
    """

    payload: dict[str, Any]
    betas: list[str]
    effort: str | None
    strict_tools: bool


def build_request(
    model: Model, compat: Compat, context: Context, options: StreamOptions, *, lenient: bool = False
) -> BuiltRequest:
    """Return the body of a request.

    :param lenient: leave tools that only prefer strict sampling without it.
    :raises ValueError: a tool asks for what the server cannot do.
    """
    thinking = _thinking(model, compat, context, options)
    mark = _cache_mark(compat, options)
    payload: dict[str, Any] = {
        "model": model.id,
        "messages": build_messages(context.messages, model, compat, thinking.effort),
        "max_tokens": thinking.max_tokens,
        "stream": True,
    }
    if context.system_prompt.strip():
        payload["system"] = [{"type": "text", "text": clean(context.system_prompt)}]
    tools = [_tool(tool, compat, lenient=lenient) for tool in context.tools]
    if tools:
        payload["tools"] = tools
        if options.tool_choice is not None:
            payload["tool_choice"] = _tool_choice(options.tool_choice)
    if mark is not None:
        _mark_cache(payload, mark, compat)
    if tools and compat.supports_mid_convo_tool_changes:
        tools.append(_PLACEHOLDER_TOOL)
    if options.temperature is not None and compat.supports_temperature and not thinking.on:
        payload["temperature"] = options.temperature
    user = (options.metadata or {}).get("user_id")
    if isinstance(user, str):
        payload["metadata"] = {"user_id": user}
    payload.update(thinking.fields)
    if compat.allowed_fallback_models:
        payload["fallbacks"] = [{"model": entry["model"]} for entry in compat.allowed_fallback_models]
    return BuiltRequest(
        payload,
        _betas(model, compat, thinking, bool(tools)),
        thinking.effort,
        any(
            made.get("strict") and (tool.constrained_sampling or {}).get("strict") != "require"
            for made, tool in zip(tools, context.tools, strict=False)
        ),
    )


def session_headers(compat: Compat, options: StreamOptions) -> dict[str, str | None]:
    """Return the header by which a server keeps the requests of a session together."""
    style = compat.send_session_affinity_headers
    if not style or not options.session_id or cache_retention(options) == "none":
        return {}
    return {"x-session-id" if style == "openrouter" else "x-session-affinity": options.session_id}


# --- thinking -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Thinking:
    max_tokens: int
    fields: dict[str, Any]
    on: bool = False
    adaptive: bool = False
    effort: str | None = None


def _thinking(model: Model, compat: Compat, context: Context, options: StreamOptions) -> _Thinking:
    level = requested_level(model, options.reasoning)
    plain = _Thinking(output_limit(model, context, options) or _fitting(DEFAULT_MAX_TOKENS, model, context), {})
    if not model.reasoning:
        return plain
    if level is not None and (compat.force_adaptive_thinking or compat.supports_mid_convo_effort):
        return _adaptive(plain.max_tokens, _effort(model, level), managed=compat.supports_mid_convo_effort)
    if level is not None:
        budgeted = _budgeted(model, context, options, level)
        if budgeted is not None:
            return budgeted
    if (model.thinking_level_map or {}).get("off", "") is not None:
        plain.fields["thinking"] = {"type": "disabled"}
    return plain


def _adaptive(max_tokens: int, effort: str, *, managed: bool) -> _Thinking:
    """The model decides how much it thinks. Managed: each answer carries its own effort, so the request's is fixed."""
    thinking: dict[str, Any] = {"type": "adaptive", "display": "summarized"}
    if managed:
        thinking["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
    fields = {"thinking": thinking, "output_config": {"effort": "low" if managed else effort}}
    return _Thinking(max_tokens, fields, on=True, adaptive=True, effort=effort if managed else None)


def _budgeted(model: Model, context: Context, options: StreamOptions, level: ThinkingLevel) -> _Thinking | None:
    """Thinking with a budget of tokens, which come on top of those of the answer; ``None`` when there is no room."""
    budgets = options.thinking_budgets
    most = model.max_tokens or DEFAULT_MAX_TOKENS + thinking_budget(level, budgets)
    ceiling, _ = with_thinking_budget(options.max_tokens, most, level, budgets)
    ceiling = _fitting(ceiling, model, context)
    if ceiling < _LEAST_BUDGET + ANSWER_TOKENS:
        return None
    budget = max(thinking_budget(level, budgets, ceiling), _LEAST_BUDGET)
    thinking = {"type": "enabled", "budget_tokens": budget, "display": "summarized"}
    return _Thinking(ceiling, {"thinking": thinking}, on=True)


def _effort(model: Model, level: ThinkingLevel) -> str:
    return (model.thinking_level_map or {}).get(level) or _EFFORTS.get(level, "high")


def _fitting(tokens: int, model: Model, context: Context) -> int:
    return cap_output(model, tokens, estimate_context(context)) if model.context_window > 0 else tokens


def _betas(model: Model, compat: Compat, thinking: _Thinking, has_tools: bool) -> list[str]:
    betas: list[str] = []
    if has_tools and not compat.supports_eager_tool_input_streaming:
        betas.append(_TOOL_STREAMING_BETA)
    if thinking.on and not thinking.adaptive:
        betas.append(_INTERLEAVED_BETA)
    if compat.allowed_fallback_models:
        betas.append(_FALLBACK_BETA)
    if compat.supports_mid_convo_effort and model.reasoning:
        betas += _EFFORT_BETAS
    if compat.supports_mid_convo_tool_changes and has_tools:
        betas.append(_INLINE_TOOLS_BETA)
    return betas


# --- tools --------------------------------------------------------------------------------------------------------


def _tool(tool: Tool, compat: Compat, *, lenient: bool) -> dict[str, Any]:
    insists = (tool.constrained_sampling or {}).get("strict") == "require"
    supported = compat.supports_strict_tools and (insists or not lenient)
    schema, strict = strict_parameters(tool, supported=supported, switch="supportsStrictTools")
    made: dict[str, Any] = {"name": tool.name, "description": tool.description}
    if compat.supports_eager_tool_input_streaming:
        made["eager_input_streaming"] = True
    if strict:
        made["strict"] = True
    made["input_schema"] = schema if strict else _input_schema(schema)
    return made


def _input_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as the API accepts it: an object, without ``anyOf`` and its like at the root."""
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: Any = schema
        for name in reference[2:].split("/"):
            target = target.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
        if isinstance(target, dict):
            schema = {**schema, **target}
    kept = {name: schema[name] for name in ("additionalProperties", "$defs", "definitions") if name in schema}
    return {
        "type": "object",
        "properties": schema.get("properties") or {},
        "required": schema.get("required") or [],
        **kept,
    }


def _tool_choice(choice: Any) -> Any:
    if isinstance(choice, str):
        return {"type": "any" if choice == "required" else choice}
    if isinstance(choice, Mapping) and choice.get("type") == "function":
        function = choice.get("function")
        return {"type": "tool", "name": (function if isinstance(function, Mapping) else choice).get("name")}
    return choice


# --- prompt cache -------------------------------------------------------------------------------------------------


def _cache_mark(compat: Compat, options: StreamOptions) -> dict[str, Any] | None:
    retention = cache_retention(options)
    if retention == "none":
        return None
    long = retention == "long" and compat.supports_long_cache_retention
    return {"type": "ephemeral", "ttl": "1h"} if long else {"type": "ephemeral"}


def _mark_cache(payload: dict[str, Any], mark: dict[str, Any], compat: Compat) -> None:
    """Mark the ends of the parts that repeat: system prompt, tools, and the conversation so far."""
    for block in payload.get("system", ()):
        block["cache_control"] = mark
    if payload.get("tools") and compat.supports_cache_control_on_tools:
        payload["tools"][-1]["cache_control"] = mark
    for message in reversed(payload["messages"]):
        if message["role"] == "assistant" or not message["content"]:
            continue
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
        message["content"][-1]["cache_control"] = mark
        return
