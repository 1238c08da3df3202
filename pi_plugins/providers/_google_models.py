"""What the models of the Gemini API can do, which their names tell, and how each is asked to think."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pi_core import Model, StreamOptions, ThinkingLevel

from ._thinking import level_word, requested_level, supported_levels

_NATIVE_VERSION: Final = 3
"""The Gemini generation from which calls have ids, results may hold images, and schemas are enforced."""

_BY_LEVEL: Final = re.compile(r"gemini-3(?:\.\d+)?-(?:pro|flash)|gemini-flash(?:-lite)?-latest$|gemma-?4")
_WORDS: Final = ("minimal", "low", "medium", "high")
_FEWER_WORDS: Final[tuple[tuple[re.Pattern[str], Mapping[str, str]], ...]] = (
    (re.compile(r"gemini-3-pro"), {"minimal": "low", "medium": "high"}),
    (re.compile(r"gemini-3(?:\.\d+)?-pro"), {"minimal": "low"}),
    (re.compile(r"gemma-?4"), {"low": "minimal", "medium": "high"}),
)
"""Models that do not know all levels, and the level to ask for instead."""

_BUDGETS: Final[tuple[tuple[str, Mapping[str, int]], ...]] = (
    ("2.5-pro", {"minimal": 128, "low": 2048, "medium": 8192, "high": 32768}),
    ("2.5-flash-lite", {"minimal": 512, "low": 2048, "medium": 8192, "high": 24576}),
    ("2.5-flash", {"minimal": 128, "low": 2048, "medium": 8192, "high": 24576}),
)
_MODEL_DECIDES: Final = -1


def _name(model: Model) -> str:
    return model.id.rpartition("/")[2].lower()


def _generation(model: Model) -> int | None:
    found = re.match(r"gemini(?:-live)?-(\d+)", _name(model))
    return int(found[1]) if found else None


def uses_call_ids(model: Model) -> bool:
    """Return whether calls and results carry an id; without one they belong together by their order."""
    return (_generation(model) or 0) >= _NATIVE_VERSION or _name(model).startswith(("claude-", "gpt-oss-"))


def results_hold_images(model: Model) -> bool:
    """Return whether a tool result may hold images; for other models they follow in a turn of the user."""
    generation = _generation(model)
    return generation is None or generation >= _NATIVE_VERSION


def checks_signatures(model: Model) -> bool:
    """Return whether a call without the signature of the thought behind it is refused."""
    return (_generation(model) or 0) >= _NATIVE_VERSION


def supports_strict_tools(model: Model) -> bool:
    """Return whether the server holds the model to the schemas of tools; the model's ``compat`` can say otherwise."""
    said = (model.compat or {}).get("supportsStrictMode")
    return said if isinstance(said, bool) else (_generation(model) or 0) >= _NATIVE_VERSION


def thinking_config(model: Model, options: StreamOptions) -> dict[str, Any] | None:
    """Return how much the model is asked to think; ``None`` for one that cannot think."""
    if not model.reasoning:
        return None
    level = requested_level(model, options.reasoning)
    by_level = bool(_BY_LEVEL.search(_name(model))) or (_generation(model) or 0) > _NATIVE_VERSION
    if level is None:
        # These cannot be told not to think, only to think little; the thoughts stay hidden.
        return {"thinkingLevel": _level(model, _lowest(model)).upper()} if by_level else {"thinkingBudget": 0}
    if by_level:
        return {"includeThoughts": True, "thinkingLevel": _level(model, level).upper()}
    return {"includeThoughts": True, "thinkingBudget": _budget(model, level, options.thinking_budgets or {})}


def _lowest(model: Model) -> ThinkingLevel:
    return next((level for level in supported_levels(model) if level != "off"), "minimal")


def _level(model: Model, level: ThinkingLevel) -> str:
    word = level_word(model, level).lower()
    word = word if word in _WORDS else "high"
    if (model.thinking_level_map or {}).get(level) is None:
        for pattern, instead in _FEWER_WORDS:
            if pattern.search(_name(model)):
                return instead.get(word, word)
    return word


def _budget(model: Model, level: ThinkingLevel, own: Mapping[str, int]) -> int:
    word = level_word(model, level).lower()
    word = word if word in _WORDS else "high"
    if word in own:
        return own[word]
    known = next((budgets for part, budgets in _BUDGETS if part in _name(model)), {})
    return known.get(word, _MODEL_DECIDES)
