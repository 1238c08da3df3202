"""A small catalog for tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pi_plugins.models import Catalog

DATA: dict[str, dict[str, dict[str, Any]]] = {
    "alpha": {
        "sonnet-4": {"name": "Sonnet Four", "reasoning": True, "cost": {"input": 3, "output": 15}},
        "sonnet-5": {"name": "Sonnet Five", "reasoning": True, "cost": {"input": 4, "output": 20}},
        "sonnet-5-20260101": {"name": "Sonnet Five (dated)"},
        "opus-5": {"api": "anthropic-messages", "name": "Opus", "compat": {"supportsLongCacheRetention": False}},
        "same": {},
        "fast-low": {"name": "fast at level low"},
    },
    "beta": {
        "same": {},
        "same:high": {},
        "alpha/sonnet-5": {"name": "Sonnet Five by beta"},
        "mini[1m]": {"headers": {"x-catalog": "c", "x-both": "catalog"}},
        "mini": {"thinkingLevelMap": {"off": None}, "reasoning": True},
    },
    "beta/eu": {"other": {}},
}


class SmallCatalog(Catalog):
    """The catalog of ``DATA``."""

    def providers(self) -> list[str]:
        return list(DATA)

    def rows(self, provider: str | None = None) -> list[dict[str, Any]]:
        return [row for name in ([provider] if provider is not None else DATA) for row in self._made(name)]

    def row(self, provider: str, model_id: str) -> dict[str, Any] | None:
        return next((row for row in self._made(provider) if row["id"] == model_id), None)

    def problems(self) -> list[str]:
        return []

    @staticmethod
    def _made(provider: str) -> Iterable[dict[str, Any]]:
        for model_id, fields in DATA.get(provider, {}).items():
            yield {
                "id": model_id,
                "name": model_id,
                "api": "openai-completions",
                "provider": provider,
                "baseUrl": f"https://{provider.replace('/', '.')}.example/v1",
                "contextWindow": 1000,
                "maxTokens": 100,
                **fields,
            }
