"""What a model of the catalog must be, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ._known import PROVIDERS

if TYPE_CHECKING:
    from pi_core import ThinkingLevel

_TEXTS: Final = ("id", "name", "api", "provider", "baseUrl")
_PRICES: Final = ("input", "output", "cacheRead", "cacheWrite")
LEVELS: Final[tuple[ThinkingLevel, ...]] = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
"""The thinking levels, from none upwards. Those of :data:`pi_core.ThinkingLevel`, without what importing it costs."""

_APIS: Final = tuple(sorted({known.api for known in PROVIDERS.values()}))
_INPUTS: Final = (["text"], ["text", "image"])
# A hundred times what any model has: more is a mistake of the source, such as another unit.
_MOST_TOKENS: Final = 10**9
_HIGHEST_PRICE: Final = 10**5
_FIELDS: Final = frozenset({*_TEXTS, "reasoning", "input", "cost", "contextWindow", "maxTokens"})
_OBJECTS: Final = (
    "compat",
    "headers",
    "inputLimits",
    "promptCache",
    "samplingParams",
    "samplingParamsByThinkingLevel",
    "thinkingLevelMap",
)


def row_faults(row: Any, provider: str, key: str) -> list[str]:
    """Return a line for each fault of a model; none when it can be used.

    :param row: the model as JSON.
    :param provider: the provider it is listed under.
    :param key: the id it is listed under.
    """
    if not isinstance(row, Mapping):
        return [f"{provider}/{key}: expected an object, got {type(row).__name__}"]
    return [f"{provider}/{key}: {fault}" for fault in _faults(row, provider, key)]


def _faults(row: Mapping[str, Any], provider: str, key: str) -> Iterator[str]:
    yield from (f"'{name}' is missing" for name in sorted(_FIELDS - {"cost"} - row.keys()))
    yield from (f"'{name}' is no field of a model" for name in sorted(row.keys() - _FIELDS - {*_OBJECTS}))
    for name in _TEXTS:
        if name in row and not _is_text(row[name]):
            yield f"'{name}' must be a text without control characters, got {row[name]!r}"
    for name, expected in (("id", key), ("provider", provider)):
        if name in row and row[name] != expected:
            yield f"'{name}' is {row[name]!r}, but it is listed under {expected!r}"
    if row.get("api", _APIS[0]) not in _APIS:
        yield f"'api' must be one of {', '.join(_APIS)}, got {row['api']!r}"
    if not isinstance(row.get("reasoning", False), bool):
        yield f"'reasoning' must be true or false, got {row['reasoning']!r}"
    if row.get("input", ["text"]) not in _INPUTS:
        yield f"'input' must be text, or text and image, got {row['input']!r}"
    for name in ("contextWindow", "maxTokens"):
        if not _is_count(row.get(name, 0)):
            yield f"'{name}' must be a whole number of tokens up to a billion, or 0 for unknown, got {row[name]!r}"
    if "cost" in row:
        yield from _cost_faults(row["cost"])
    for name in _OBJECTS:
        if name in row and not isinstance(row[name], Mapping):
            yield f"'{name}' must be an object, got {row[name]!r}"
    words = row.get("thinkingLevelMap")
    if isinstance(words, Mapping):
        yield from (f"'thinkingLevelMap.{name}' is no thinking level" for name in words if name not in LEVELS)
        yield from (
            f"'thinkingLevelMap.{name}' must be a text or null, got {word!r}"
            for name, word in words.items()
            if word is not None and not isinstance(word, str)
        )


def _cost_faults(cost: Any) -> Iterator[str]:
    if not isinstance(cost, Mapping):
        yield f"'cost' must be an object, got {cost!r}"
        return
    yield from _price_faults(cost, "cost")
    tiers = cost.get("tiers", [])
    if not isinstance(tiers, list):
        yield f"'cost.tiers' must be a list, got {tiers!r}"
        return
    for position, tier in enumerate(tiers):
        where = f"cost.tiers[{position}]"
        if not isinstance(tier, Mapping):
            yield f"'{where}' must be an object, got {tier!r}"
            continue
        if not _is_count(tier.get("inputTokensAbove")):
            yield f"'{where}.inputTokensAbove' must be a whole number of tokens, got {tier.get('inputTokensAbove')!r}"
        yield from _price_faults(tier, where)


def _price_faults(cost: Mapping[str, Any], where: str) -> Iterator[str]:
    for name in _PRICES:
        price = cost.get(name)
        if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price <= _HIGHEST_PRICE:
            yield f"'{where}.{name}' must be a price from 0 to {_HIGHEST_PRICE}, got {price!r}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS
