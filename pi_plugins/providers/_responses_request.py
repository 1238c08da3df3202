"""The request of the responses API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pi_core import Context, Model, StreamOptions, ThinkingLevel, Tool

from ._grammar import grammar_of
from ._headers import cache_retention, copilot_headers, default_headers, host_of
from ._responses_compat import Compat
from ._responses_input import InputRules, build_input
from ._strict_schema import strict_parameters
from ._thinking import level_word, requested_level, sampling_params
from ._tokens import output_limit

_LEAST_TOKENS: Final = 16
_SESSION_LIMIT: Final = 64
_FIXED_EFFORT: Final = "medium"
_AFFINITY_HEADERS: Final[Mapping[str, tuple[str, ...]]] = {
    "openai": ("session-id", "x-client-request-id"),
    "openai-nosession": ("x-client-request-id",),
    "openrouter": ("x-session-id",),
}


def build_payload(
    model: Model,
    compat: Compat,
    context: Context,
    options: StreamOptions,
    grammar_tools: Mapping[str, str],
    *,
    plain: bool = False,
) -> dict[str, Any]:
    """Return the body of a request.

    :param grammar_tools: for tools whose argument is one free text: the name of that argument, by tool.
    :param plain: leave out what only the server that made it can read.
    :raises ValueError: a tool asks for what the server cannot do.
    """
    level = requested_level(model, options.reasoning)
    role = "developer" if model.reasoning and compat.supports_developer_role else "system"
    rules = InputRules(grammar_tools, moving_effort(model, compat, level), plain)
    payload: dict[str, Any] = {
        "model": model.id,
        "input": build_input(context, model, rules, system_role=role),
        "stream": True,
        "store": False,
    }
    max_tokens = output_limit(model, context, options) if compat.supports_max_output_tokens else None
    subscription = _is_subscription(model, options)
    if max_tokens is not None and not subscription:
        payload["max_output_tokens"] = max(_LEAST_TOKENS, max_tokens)
    if options.temperature is not None and not subscription:
        payload["temperature"] = options.temperature
    if context.tools:
        payload["tools"] = [_tool(tool, compat, grammar_tools) for tool in context.tools]
        if options.tool_choice is not None:
            payload["tool_choice"] = _tool_choice(options.tool_choice, grammar_tools)
    payload.update(_cache_fields(compat, options, subscription=subscription))
    payload.update(_reasoning(model, compat, level, moves=rules.effort is not None))
    payload.update(sampling_params(model, level, options))
    return payload


def build_headers(model: Model, compat: Compat, context: Context, options: StreamOptions) -> dict[str, str | None]:
    """Return the API's own headers."""
    headers = default_headers()
    if model.provider == "github-copilot":
        headers.update(copilot_headers(context.messages))
    style = compat.send_session_affinity_headers
    if style and options.session_id and cache_retention(options) != "none":
        names = _AFFINITY_HEADERS.get("openai" if style is True else style, ())
        headers.update(dict.fromkeys(names, options.session_id))
    if options.api_key and options.api_key.strip():
        headers["authorization"] = f"Bearer {options.api_key.strip()}"
    return headers


def moving_effort(model: Model, compat: Compat, level: ThinkingLevel | None) -> str | None:
    """Return the word for how much to think about this answer, for models that are told so between the items.

    The fields of such a request stay the same from turn to turn, so that the server's cache holds.
    """
    return _effort_word(model, level) if model.reasoning and compat.supports_mid_convo_effort else None


def _effort_word(model: Model, level: ThinkingLevel | None) -> str | None:
    """The word for a level, or for not thinking; ``None`` when the model has none for that."""
    if level is not None:
        return level_word(model, level)
    words = model.thinking_level_map or {}
    if ("off" in words and words["off"] is None) or model.provider == "github-copilot":
        return None
    return words.get("off") or "none"


def _reasoning(model: Model, compat: Compat, level: ThinkingLevel | None, *, moves: bool) -> dict[str, Any]:
    word = _effort_word(model, level) if model.reasoning else None
    if word is None:
        return {}
    if level is None and not moves:
        return {"reasoning": {"effort": word}}
    effort = _FIXED_EFFORT if moves else word
    return {
        "reasoning": {"effort": effort, "summary": compat.reasoning_summary},
        "include": ["reasoning.encrypted_content"],
    }


def _cache_fields(compat: Compat, options: StreamOptions, *, subscription: bool) -> dict[str, Any]:
    retention = cache_retention(options)
    fields: dict[str, Any] = {}
    if options.session_id and retention != "none" and compat.prompt_cache_key_mode != "disabled":
        fields["prompt_cache_key"] = options.session_id[:_SESSION_LIMIT]
    if subscription:
        return fields
    if compat.supports_explicit_prompt_cache_mode:
        if retention == "none":
            fields["prompt_cache_options"] = {"mode": "explicit"}
        elif retention == "long":
            fields["prompt_cache_options"] = {"ttl": "30m"}
    elif retention == "long" and compat.supports_long_cache_retention:
        fields["prompt_cache_retention"] = "24h"
    return fields


def _is_subscription(model: Model, options: StreamOptions) -> bool:
    """Whether the key is a signed-in user's, for whom the server decides lengths, temperature and caching itself."""
    key = (options.api_key or "").strip()
    official = model.provider == "openai" and host_of(model.base_url) == "api.openai.com"
    return official and bool(key) and not key.startswith("sk-")


def _tool(tool: Tool, compat: Compat, grammar_tools: Mapping[str, str]) -> dict[str, Any]:
    if tool.name in grammar_tools:
        format_ = {"type": "grammar", **(grammar_of(tool) or {})}
        return {"type": "custom", "name": tool.name, "description": tool.description, "format": format_}
    parameters, strict = strict_parameters(tool, supported=compat.supports_strict_mode)
    made: dict[str, Any] = {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": parameters,
    }
    if compat.supports_strict_mode:
        made["strict"] = strict
    return made


def _tool_choice(choice: Any, grammar_tools: Mapping[str, str]) -> Any:
    if choice == "any":
        return "required"
    if isinstance(choice, Mapping) and choice.get("type") == "tool":
        name = choice.get("name")
        return {"type": "custom" if name in grammar_tools else "function", "name": name}
    return choice
