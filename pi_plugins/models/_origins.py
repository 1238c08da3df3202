"""Where each field of a model comes from: the catalog, a file of the user or of the project, or a default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._table import ModelTable
    from .models_json import ProviderEntry


def origins(table: ModelTable, provider: str, model_id: str) -> dict[str, str]:
    """Return the origin of each field of a model.

    :param table: all models.
    """
    row = table.rows(provider)[model_id]
    known = table.catalog.row(provider, model_id) or {}
    entry = table.entry(provider)
    file = table.catalog.origin(provider)
    return {key: _origin(key, value, known, entry, model_id, f"{file}") for key, value in row.items()}


def _origin(key: str, value: Any, known: dict[str, Any], entry: ProviderEntry | None, model_id: str, file: str) -> str:
    if key in known and known[key] == value:
        return file
    places = [] if entry is None else _places(key, entry, model_id)
    if key in known and places and isinstance(value, dict):
        return f"{places[-1]}, over {file}"
    return places[-1] if places else file if key in known else "default"


def _places(key: str, entry: ProviderEntry, model_id: str) -> list[str]:
    """The places of the files that say something of a field, the one that wins last."""
    places = [entry.place] if key in entry.fields else []
    model = entry.models.get(model_id)
    if model is not None and (key in model.fields or key in ("id", "provider")):
        places.append(model.place)
    return [*places, *(override.place for override in entry.overrides.get(model_id, ()) if key in override.fields)]
