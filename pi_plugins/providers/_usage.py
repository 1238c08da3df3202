"""Token counts and what they cost."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

from pi_core import Cost, Model, ModelCost, ModelCostTier, Usage

_COUNTS: Final = ("input", "output", "cache_read", "cache_write", "cache_write1h", "reasoning", "total_tokens")
_AMOUNTS: Final = ("input", "output", "cache_read", "cache_write", "total")


def price(model: Model, usage: Usage) -> Cost:
    """Return the cost of a response in US dollars by the model's prices.

    The length of the prompt chooses the price tier, which then holds for the whole request. Cache entries that live an
    hour cost twice the input price.
    """
    rates: ModelCost | ModelCostTier = model.cost
    prompt = usage.input + usage.cache_read + usage.cache_write
    for tier in sorted(model.cost.tiers or [], key=lambda tier: tier.input_tokens_above):
        if prompt > tier.input_tokens_above:
            rates = tier
    hour = usage.cache_write1h or 0
    million = 1_000_000
    cost_input = rates.input / million * usage.input
    cost_output = rates.output / million * usage.output
    cache_read = rates.cache_read / million * usage.cache_read
    cache_write = (rates.cache_write * (usage.cache_write - hour) + rates.input * 2 * hour) / million
    return Cost(
        input=cost_input,
        output=cost_output,
        cache_read=cache_read,
        cache_write=cache_write,
        total=cost_input + cost_output + cache_read + cache_write,
        total_from_provider=False,
    )


def count(value: Any) -> int:
    """Return a token count from the wire; anything that is no finite number of at least 0 counts as 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return max(int(value), 0)


def make_usage(
    model: Model,
    *,
    prompt: int,
    output: int,
    cache_read: int = 0,
    cache_write: int = 0,
    cache_write1h: int | None = None,
    reasoning: int | None = None,
    reported: Any = None,
) -> Usage:
    """Return usage with its cost.

    :param prompt: tokens of the whole prompt, cached ones included.
    :param cache_write1h: those of ``cache_write`` that stay for an hour.
    :param reported: the wire's own usage object, for a cost that the provider reports.
    """
    tokens = Usage(
        input=max(prompt - cache_read - cache_write, 0),
        output=output,
        cache_read=cache_read,
        cache_write=cache_write,
        cache_write1h=cache_write1h,
        reasoning=reasoning,
    )
    total = tokens.input + tokens.output + tokens.cache_read + tokens.cache_write
    cost = price(model, tokens)
    if model.provider == "openrouter" or "openrouter.ai" in model.base_url:
        cost = _reported_cost(cost, reported)
    return tokens.model_copy(update={"total_tokens": total, "cost": cost})


def total_usage(usages: Iterable[Usage]) -> Usage:
    """Return the sum of several responses' usage; a count that none of them has stays absent."""
    counts: dict[str, int] = {}
    cost: dict[str, float] = {}
    for usage in usages:
        for name in _COUNTS:
            value = getattr(usage, name)
            if value is not None:
                counts[name] = counts.get(name, 0) + value
        for name in _AMOUNTS:
            cost[name] = cost.get(name, 0) + getattr(usage.cost, name)
    return Usage.model_validate({**counts, "cost": cost})


def _reported_cost(cost: Cost, reported: Any) -> Cost:
    if not isinstance(reported, dict):
        return cost
    total = _amount(reported.get("cost"))
    own_key = reported.get("is_byok")
    if total is None or not isinstance(own_key, bool):
        return cost
    if own_key:
        details = reported.get("cost_details")
        details = details if isinstance(details, dict) else {}
        upstream = _amount(details.get("upstream_inference_cost"))
        if upstream is None:
            parts = (details.get(f"upstream_inference_{part}_cost") for part in ("prompt", "completions"))
            upstream = sum(_amount(part) or 0 for part in parts)
        total += upstream
    return cost.model_copy(update={"total": total, "total_from_provider": True})


def _amount(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return value
