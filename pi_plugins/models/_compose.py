"""The models of one provider: those of the catalog, with what ``models.json`` adds and changes.

A model is a row here, a JSON object as the catalog has it; a :class:`~pi_core.Model` is made of the one that is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, TypeAlias

from ._models_schema import closest
from .models_json import Entry, ProviderEntry

Row: TypeAlias = dict[str, Any]

_DEFAULTS: Final[Mapping[str, Any]] = {
    "reasoning": False,
    "input": ["text"],
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    "contextWindow": 128_000,
    "maxTokens": 16_384,
}
_LOSSES: Final = ("reasoning", "thinkingLevelMap", "input", "cost", "contextWindow", "maxTokens", "headers", "compat")
_MERGED: Final = ("cost", "thinkingLevelMap", "promptCache", "samplingParams", "compat")
_DEEP_COMPAT: Final = ("openRouterRouting", "vercelGatewayRouting", "chatTemplateKwargs", "chatTemplateArgs")


@dataclass(slots=True)
class Composed:
    """The models of a provider.

    :param rows: by id; what the catalog has first, in its order.
    :param headers: the headers that ``models.json`` gives to single models, by id, as templates.
    """

    rows: dict[str, Row] = field(default_factory=dict)
    headers: dict[str, dict[str, str | None]] = field(default_factory=dict, repr=False)
    problems: list[str] = field(default_factory=list)


def compose(
    provider: str, rows: Mapping[str, Row], entry: ProviderEntry, find: Callable[[str, str], Row | None]
) -> Composed:
    """Put what the files say over the models of the catalog.

    :param rows: those of the catalog, by id.
    :param find: gives the row of a provider and an id, for models that extend one of another provider.
    """
    made = Composed({model_id: _rerouted(row, entry.fields) for model_id, row in rows.items()})
    for model_id, model in entry.models.items():
        row = _custom(provider, model_id, model, entry, made, find)
        if row is not None:
            made.rows[model_id] = row
    for model_id, overrides in entry.overrides.items():
        for override in overrides:
            _override(provider, model_id, override, made)
    return made


def _rerouted(row: Row, fields: Mapping[str, Any]) -> Row:
    changed = dict(row)
    if "baseUrl" in fields:
        changed["baseUrl"] = fields["baseUrl"]
    if "compat" in fields:
        changed["compat"] = _with_compat(row.get("compat"), fields["compat"])
    return changed


def _custom(
    provider: str,
    model_id: str,
    model: Entry,
    entry: ProviderEntry,
    made: Composed,
    find: Callable[[str, str], Row | None],
) -> Row | None:
    """The row of a model of the file; ``None``, with the problem told, when something is missing."""
    given = {key: value for key, value in model.fields.items() if key not in ("extends", "headers")}
    replaced = made.rows.get(model_id)
    base: Row | None = None
    extends = model.fields.get("extends", False)
    if extends:
        base = replaced if extends is True else _find(provider, extends, made, find)
        if base is None:
            wish = model_id if extends is True else extends
            hint = closest(wish, list(made.rows))
            made.problems.append(f"{model.place}: {model.path}.extends: there is no model '{wish}'{hint}")
            return None
    elif replaced is not None:
        lost = [key for key in _LOSSES if key not in given and replaced.get(key) not in (None, _DEFAULTS.get(key))]
        if lost:
            made.problems.append(
                f"{model.place}: {model.path}: this replaces {provider}/{model_id} without its {', '.join(lost)}. Add "
                '"extends": true to keep them, or use "modelOverrides"'
            )
    row: Row = {**_DEFAULTS, "name": model_id, **(base or {}), **given, "id": model_id, "provider": provider}
    if base is not None and extends is not True and "name" not in given:
        row["name"] = model_id
    row["compat"] = _with_compat((base or {}).get("compat"), entry.fields.get("compat"), given.get("compat"))
    if not row["compat"]:
        del row["compat"]
    for key in ("api", "baseUrl"):
        if given.get(key):
            continue
        near = [entry.fields, base or {}, replaced or {}]
        found = next((source[key] for source in chain(near, _relatives(key, row, made)) if source.get(key)), None)
        if found is None:
            where = "at the provider or at the model" if key == "api" else "at the provider"
            made.problems.append(f'{model.place}: {model.path}: there is no "{key}"; set it {where}')
            return None
        row[key] = found
    if "headers" in model.fields:
        made.headers[model_id] = dict(model.fields["headers"])
    return row


def _relatives(key: str, row: Row, made: Composed) -> Iterator[Row]:
    """The other models of the provider, those first that a model is most like."""
    apis = ([row["api"]] if key == "baseUrl" else []) + ["openai-completions"]
    for api in apis:
        yield from (other for other in made.rows.values() if other.get("api") == api)
    yield from made.rows.values()


def _find(provider: str, wish: str, made: Composed, find: Callable[[str, str], Row | None]) -> Row | None:
    if wish in made.rows:
        return made.rows[wish]
    other, slash, model_id = wish.partition("/")
    return find(other, model_id) if slash and other != provider else None


def _override(provider: str, model_id: str, override: Entry, made: Composed) -> None:
    row = made.rows.get(model_id)
    if row is None:
        near = closest(model_id, list(made.rows))
        made.problems.append(f"{override.place}: {override.path}: there is no model {provider}/{model_id}{near}")
        return
    row = made.rows[model_id] = dict(row)
    for key, value in override.fields.items():
        if key == "headers":
            made.headers[model_id] = {**made.headers.get(model_id, {}), **value}
        elif key == "compat":
            row[key] = _with_compat(row.get(key), value)
        elif key in _MERGED:
            row[key] = {**(row.get(key) or {}), **value}
        elif key == "inputLimits":
            row[key] = _deep(row.get(key) or {}, value)
        elif key == "samplingParamsByThinkingLevel":
            levels = dict(row.get(key) or {})
            row[key] = levels | {level: {**levels.get(level, {}), **params} for level, params in value.items()}
        else:
            row[key] = value


def _with_compat(*layers: Mapping[str, Any] | None) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in (layer or {}).items():
            below = merged.get(key)
            nested = key in _DEEP_COMPAT and isinstance(value, dict) and isinstance(below, dict)
            merged[key] = {**below, **value} if nested and below is not None else value
    return merged


def _deep(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        merged[key] = _deep(under, value) if isinstance(value, dict) and isinstance(under, dict) else value
    return merged
