"""Where each field of a model comes from: the catalog, a file of the user or of the project, or a default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._table import ModelTable
    from .models_json import ProviderEntry


def origins(table: ModelTable, provider: str, model_id: str) -> dict[str, str]:
    """Return the origin of each field of a model.

    :param table: all models.
    """
    row = table.rows(provider)[model_id]
    known: Mapping[str, Any] = table.catalog.row(provider, model_id) or {}
    file = f"{table.catalog.origin(provider)}"
    entry = table.entry(provider)
    model = None if entry is None else entry.models.get(model_id)
    extended = None if model is None else model.fields.get("extends")
    if model is not None and isinstance(extended, str):
        known, file = _extended(table, provider, extended), f"{model.place} (extends {extended})"
    return {key: _origin(key, value, known, entry, model_id, file) for key, value in row.items()}


def _extended(table: ModelTable, provider: str, name: str) -> Mapping[str, Any]:
    """The model that another one takes its fields from."""
    other, _, model_id = name.partition("/")
    return table.rows(provider).get(name) or table.catalog.row(other, model_id) or {}


def _origin(
    key: str, value: Any, known: Mapping[str, Any], entry: ProviderEntry | None, model_id: str, file: str
) -> str:
    places = [] if entry is None else _places(key, entry, model_id)
    if not places:
        return file if key in known and known[key] == value else "default"
    return f"{places[-1]}, over {file}" if key in known and isinstance(value, dict) else places[-1]


def _places(key: str, entry: ProviderEntry, model_id: str) -> list[str]:
    """The places of the files that say something of a field, the one that wins last."""
    places = [entry.place] if key in entry.fields else []
    model = entry.models.get(model_id)
    if model is not None and (key in model.fields or key in ("id", "provider")):
        places.append(model.place)
    return [*places, *(override.place for override in entry.overrides.get(model_id, ()) if key in override.fields)]
