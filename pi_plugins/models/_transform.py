"""Public catalogs turned into models: the shape of each source, and which of its models an agent can use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from ._known import PROVIDERS
from ._quirks import Quirks, Row
from ._validation import row_faults

MODELS_DEV: Final = "models.dev"
OPENROUTER: Final = "openrouter"
_ONE_MILLION: Final = 1_000_000


@dataclass(slots=True)
class Transformed:
    """The models of a source.

    :ivar providers: for each provider its models by id.
    :ivar faults: one line for each entry of the source that could not be used.
    """

    providers: dict[str, dict[str, Row]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def add(self, provider: str, row: Row | None, quirks: Quirks) -> None:
        """Keep a model if the rules and the checks let it pass."""
        models = self.providers.setdefault(provider, {})
        row = row and quirks.applied(row)
        if not row:
            return
        faults = row_faults(row, provider, row["id"])
        self.faults += faults
        if not faults:
            models[row["id"]] = row


def from_models_dev(raw: Any, quirks: Quirks) -> Transformed:
    """Turn ``api.json`` of models.dev into models.

    :raises ValueError: it has another shape.
    """
    made = Transformed()
    catalog = _mapping(raw, "the catalog")
    for provider, name in quirks.sources.items():
        if name not in catalog:
            made.faults.append(f"{provider}: the source has no provider '{name}'")
            continue
        entries = _mapping(_mapping(catalog[name], f"'{name}'").get("models"), f"'{name}.models'")
        for model_id, entry in entries.items():
            try:
                row = _of_models_dev(provider, model_id, _mapping(entry, "the entry"), quirks)
                made.add(provider, row, quirks)
            except (ValueError, TypeError) as error:
                made.faults.append(f"{provider}/{model_id}: {error}")
    return made


def _of_models_dev(provider: str, model_id: str, entry: Mapping[str, Any], quirks: Quirks) -> Row | None:
    modalities = _mapping(entry.get("modalities"), "'modalities'")
    if not entry.get("tool_call") or modalities.get("output") != ["text"] or entry.get("status") == "deprecated":
        return None
    served = quirks.api(provider, _mapping(entry.get("provider", {}), "'provider'").get("npm"))
    if served is None:
        return None
    limit = _mapping(entry.get("limit"), "'limit'")
    row = _row(provider, model_id, entry.get("name"), served, entry.get("reasoning", False), modalities.get("input"))
    cost = entry.get("cost")
    if cost is not None:
        row["cost"] = _prices(_mapping(cost, "'cost'"))
        tiers = [_tier(_mapping(tier, "a tier of 'cost'")) for tier in cost.get("tiers", ())]
        if tiers:
            row["cost"]["tiers"] = tiers
    row["contextWindow"], row["maxTokens"] = limit.get("context") or 0, limit.get("output") or 0
    if entry.get("temperature") is False and row["api"] == "anthropic-messages":
        row["compat"] = {"supportsTemperature": False}
    return row


def _tier(tier: Mapping[str, Any]) -> dict[str, Any]:
    above = _mapping(tier.get("tier"), "'tier'")
    if above.get("type") != "context":
        raise ValueError(f"a price depends on '{above.get('type')}', expected 'context'")
    return {"inputTokensAbove": above.get("size"), **_prices(tier)}


def _prices(cost: Mapping[str, Any]) -> dict[str, Any]:
    """Where a source names no price of its own for cached tokens, they cost what other tokens of the prompt do."""
    prompt = cost.get("input", 0)
    return {
        "input": prompt,
        "output": cost.get("output", 0),
        "cacheRead": cost.get("cache_read", prompt),
        "cacheWrite": cost.get("cache_write", prompt),
    }


def from_openrouter(raw: Any, quirks: Quirks) -> Transformed:
    """Turn the list of models of OpenRouter into models.

    :raises ValueError: it has another shape.
    """
    made = Transformed()
    entries = _mapping(raw, "the answer").get("data")
    if not isinstance(entries, list):
        raise ValueError(f"expected a list as 'data', got {type(entries).__name__}")
    for position, entry in enumerate(entries):
        try:
            made.add(OPENROUTER, _of_openrouter(_mapping(entry, "the entry"), quirks), quirks)
        except (ValueError, TypeError, InvalidOperation) as error:
            name = entry.get("id", position) if isinstance(entry, Mapping) else position
            made.faults.append(f"{OPENROUTER}/{name}: {error}")
    return made


def _of_openrouter(entry: Mapping[str, Any], quirks: Quirks) -> Row | None:
    able = entry.get("supported_parameters") or ()
    modalities = _mapping(entry.get("architecture"), "'architecture'")
    if "tools" not in able or modalities.get("output_modalities") != ["text"]:
        return None
    served = PROVIDERS[OPENROUTER].api, PROVIDERS[OPENROUTER].base_url
    seen = modalities.get("input_modalities")
    row = _row(OPENROUTER, entry.get("id"), entry.get("name"), served, "reasoning" in able, seen)
    prices = {
        ours: float(Decimal(price) * _ONE_MILLION)
        for ours, theirs in _OPENROUTER_PRICES.items()
        if (price := _mapping(entry.get("pricing", {}), "'pricing'").get(theirs)) is not None
    }
    # A negative price says that it depends on the model the router takes.
    if prices and prices.get("input", 0) >= 0:
        row["cost"] = _prices(prices)
    row["contextWindow"] = entry.get("context_length") or 0
    row["maxTokens"] = _mapping(entry.get("top_provider") or {}, "'top_provider'").get("max_completion_tokens") or 0
    return row


_OPENROUTER_PRICES: Final = {
    "input": "prompt",
    "output": "completion",
    "cache_read": "input_cache_read",
    "cache_write": "input_cache_write",
}


def _row(
    provider: str, model_id: Any, name: Any, served: tuple[str, str], reasoning: object, inputs: Iterable[str] | None
) -> Row:
    api, base_url = served
    return {
        "id": model_id,
        "name": name or model_id,
        "api": api,
        "provider": provider,
        "baseUrl": base_url,
        "reasoning": reasoning,
        "input": ["text", "image"] if "image" in (inputs or ()) else ["text"],
    }


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"expected an object as {what}, got {type(value).__name__}")
    return value
