"""Checks the switches of ``compat`` in ``models.json`` against those of the API."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pi_plugins.config.json_text import JsonPath
from pi_plugins.providers.switches import switches

from ._models_schema import sentence, unknown_keys


def checked_compat(compat: dict[str, Any], api: str) -> tuple[dict[str, Any], list[tuple[JsonPath, str]]]:
    """Return the switches that fit, and what to say of the others. Those that are not known here are kept.

    :param api: the API of the model; any switch passes when it is not known.
    """
    known = switches(api)
    if known is None:
        return compat, []
    kept, faults = {}, unknown_keys(list(known), compat)
    for name, value in compat.items():
        fault = _fault(api, name, value) if name in known else None
        if fault is None:
            kept[name] = value
        else:
            faults.append(fault)
    return kept, faults


def _fault(api: str, name: str, value: Any) -> tuple[JsonPath, str] | None:
    try:
        # As JSON: a tuple is a list there.
        _adapter(api, name).validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        # The other parts say which member of a union was tried.
        path: JsonPath = (name, *(part for part in first["loc"] if isinstance(part, int)))
        return path, sentence(first, path)
    return None


@cache
def _adapter(api: str, name: str) -> TypeAdapter[Any]:
    return TypeAdapter((switches(api) or {})[name])
