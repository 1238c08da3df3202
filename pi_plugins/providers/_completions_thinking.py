"""The fields by which servers of the chat completions API are asked to think, or not to."""

from __future__ import annotations

from typing import Any

from pi_core import Model, StreamOptions, ThinkingLevel

from ._completions_compat import Compat
from ._thinking import level_word, thinking_budget


def thinking_fields(
    model: Model, compat: Compat, level: ThinkingLevel | None, options: StreamOptions, max_tokens: int | None
) -> dict[str, Any]:
    """Return the body fields for a thinking level.

    :param level: the level to ask for; ``None``: the model shall not think.
    :param max_tokens: the ceiling that thinking and answer share, if there is one.
    """
    if not model.reasoning:
        return {}
    budget = None if level is None else thinking_budget(level, options.thinking_budgets, max_tokens)
    fields = _format(model, compat, level, budget)
    if level is not None and compat.thinking_token_budget_field:
        fields[compat.thinking_token_budget_field] = budget
    return fields


def _format(model: Model, compat: Compat, level: ThinkingLevel | None, budget: int | None) -> dict[str, Any]:
    words = model.thinking_level_map or {}
    thinks = level is not None
    word = level_word(model, level) if level is not None else words.get("off")
    never_off = "off" in words and words["off"] is None
    effort = {"reasoning_effort": word} if compat.supports_reasoning_effort and word is not None else {}
    match compat.thinking_format:
        case "openrouter":
            return {} if word is None and never_off else {"reasoning": {"effort": word or "none"}}
        case "deepseek":
            if thinks:
                return {"thinking": {"type": "enabled"}, **effort}
            return {} if never_off else {"thinking": {"type": "disabled"}}
        case "zai":
            if not thinks:
                return {"thinking": {"type": "disabled"}}
            own_word = words.get(str(level))
            mapped = {"reasoning_effort": own_word} if own_word else {}
            return {"thinking": {"type": "enabled", "clear_thinking": False}, **mapped}
        case "qwen":
            return {"enable_thinking": thinks, **(effort if thinks else {})}
        case "qwen-chat-template":
            return {"chat_template_kwargs": {"enable_thinking": thinks, "preserve_thinking": True}}
        case "chat-template":
            return {"chat_template_kwargs": _template(compat.chat_template_kwargs or {}, thinks, word, budget)}
        case "baseten":
            arguments = compat.chat_template_args or {"enable_thinking": {"$var": "thinking.enabled"}}
            return {"chat_template_args": _template(arguments, thinks, word, budget), **effort}
        case "together":
            return {"reasoning": {"enabled": thinks}, **(effort if thinks else {})}
        case "string-thinking":
            return {} if word is None and never_off else {"thinking": word or "none"}
        case "ant-ling":
            mapped_word = words.get(level) if level is not None else None
            return {"reasoning": {"effort": mapped_word}} if mapped_word else {}
        case _:
            return effort


def _template(arguments: dict[str, Any], thinks: bool, word: str | None, budget: int | None) -> dict[str, Any]:
    """Arguments of a chat template, of which some are variables: ``{"$var": "thinking.enabled"}``."""
    values: dict[Any, Any] = {
        "thinking.enabled": thinks,
        "thinking.effort": word if thinks else word or "none",
        "thinking.budget": budget,
    }
    filled = {}
    for name, value in arguments.items():
        if not isinstance(value, dict) or "$var" not in value:
            filled[name] = value
        elif not (value.get("omitWhenOff") and not thinks) and values.get(value["$var"]) is not None:
            filled[name] = values[value["$var"]]
    return filled
