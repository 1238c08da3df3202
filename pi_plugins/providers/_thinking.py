"""Thinking levels: which ones a model has, the nearest one to a wish, and their token budgets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

from pi_core import Model, StreamOptions, ThinkingLevel

LEVELS: Final[tuple[ThinkingLevel, ...]] = get_args(ThinkingLevel)
ANSWER_TOKENS: Final = 1024
"""Tokens that stay for the answer when thinking and answer share one ceiling."""

_MUST_BE_MAPPED: Final = frozenset({"xhigh", "max"})
_BUDGETS: Final[Mapping[str, int]] = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384}


def supported_levels(model: Model) -> list[ThinkingLevel]:
    """Return the levels a model has, from ``off`` upwards; a model that cannot think has only ``off``."""
    if not model.reasoning:
        return ["off"]
    words = model.thinking_level_map or {}
    return [level for level in LEVELS if (words[level] is not None if level in words else level not in _MUST_BE_MAPPED)]


def clamp_level(model: Model, level: ThinkingLevel) -> ThinkingLevel:
    """Return the level itself if the model has it, else the next higher one, else the next lower one."""
    supported = supported_levels(model)
    wished = LEVELS.index(level)
    higher = [candidate for candidate in supported if LEVELS.index(candidate) >= wished]
    return higher[0] if higher else supported[-1] if supported else "off"


def requested_level(model: Model, level: ThinkingLevel | None) -> ThinkingLevel | None:
    """Return the level to ask the model for; ``None`` when it should not think, or cannot."""
    if level is None or level == "off":
        return None
    clamped = clamp_level(model, level)
    return None if clamped == "off" else clamped


def level_word(model: Model, level: str) -> str:
    """Return the API's word for a level: the model's own, else the level's name."""
    return (model.thinking_level_map or {}).get(level) or level


def thinking_budget(level: ThinkingLevel, budgets: Mapping[str, int] | None = None, ceiling: int | None = None) -> int:
    """Return the tokens a level may think.

    :param budgets: tokens by level that replace the defaults; ``xhigh`` and ``max`` use those of ``high``.
    :param ceiling: tokens that thinking and answer share.
    """
    name = "high" if level in _MUST_BE_MAPPED else level
    budget = (budgets or {}).get(name, _BUDGETS.get(name, 0))
    return budget if ceiling is None else min(budget, max(ceiling - ANSWER_TOKENS, 0))


def with_thinking_budget(
    max_tokens: int | None, model_max_tokens: int, level: ThinkingLevel, budgets: Mapping[str, int] | None = None
) -> tuple[int, int]:
    """Return the ceiling for answer and thinking together, and the thinking budget within it, in tokens.

    :param max_tokens: tokens asked for the answer alone; ``None`` takes all the model has.
    """
    budget = thinking_budget(level, budgets)
    ceiling = model_max_tokens if max_tokens is None else min(max_tokens + budget, model_max_tokens)
    return ceiling, thinking_budget(level, budgets, ceiling)


def sampling_params(model: Model, level: ThinkingLevel | None, options: StreamOptions) -> dict[str, Any]:
    """Return the fields to merge into a body last: the model's, those of the level, the request's."""
    by_level = (model.sampling_params_by_thinking_level or {}).get(level or "off", {})
    return {**(model.sampling_params or {}), **by_level, **(options.sampling_params or {})}
