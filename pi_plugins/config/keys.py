"""The keys of settings: which there are, what each takes, and how one is typed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from pydantic import BaseModel

from pi_core import ConfigError

from .secrets import masked
from .settings import Settings

Path = tuple[str, ...]
"""The names that lead to a value, as JSON spells them."""

_PARAM: Final = r"(?s):param (\w+): (.*?)(?=\n\s*:param|\Z)"
_MOST_CHARS: Final = 60


@cache
def all_keys() -> dict[Path, str]:
    """Return every key that holds a value, with what it is."""
    return dict(_keys(Settings, ()))


def dotted(path: tuple[str | int, ...]) -> str:
    """Return the path as people write it: ``compaction.enabled``, ``enabledModels[1]``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{_printable(part)}" for part in path).lstrip(".")


def split_key(text: str) -> Path:
    """Return the path of a key as people write it.

    A key of an object that has names of its own, as ``modelThinkingLevels.openai/gpt-4.1`` has, may hold dots.

    :raises ConfigError: there is no such setting; names the nearest.
    """
    path: Path = ()
    rest = text
    schema = _schema()
    while rest:
        schema = _resolved(schema)
        properties = schema.get("properties")
        if properties is not None:
            name, _, rest = rest.partition(".")
            if name not in properties:
                raise ConfigError(f"there is no setting '{text}'" + did_you_mean((*path, name)))
            path, schema = (*path, name), properties[name]
            continue
        entries = schema.get("additionalProperties")
        if entries is None and "propertyNames" not in schema:
            raise ConfigError(f"there is no setting '{text}': '{dotted(path)}' is {expected(path)}")
        inner = _resolved(entries) if isinstance(entries, dict) else {}
        own = inner.get("properties")
        if own is not None:
            name, dot, last = rest.rpartition(".")
            return (*path, name, last) if dot and last in own else (*path, rest)
        if inner.get("type") != "object":
            return (*path, rest)
        return (*path, *rest.split("."))
    return path


def did_you_mean(path: Path) -> str:
    """Return the end of a message about a key that is not there: the nearest one, or nothing."""
    import difflib

    names = _schema_at(path[:-1]).get("propertyNames", {}).get("enum")
    if names:
        return f"; names there: {', '.join(names)}"
    known = {dotted(key) for key in all_keys()} | {key[0] for key in all_keys()}
    near = difflib.get_close_matches(dotted(path), known, 1, 0.75)
    if not near:
        last = {key[-1].lower(): dotted(key) for key in reversed(all_keys())}
        near = [last[name] for name in difflib.get_close_matches(path[-1].lower(), last, 1, 0.75)]
    return f", did you mean '{near[0]}'?" if near else ""


def expected(path: tuple[str | int, ...]) -> str:
    """Return what a key takes, in words."""
    return _described(_schema_at(path))


def got(path: tuple[str | int, ...], value: Any) -> str:
    """Return a value for a message; without secrets, and not at length."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str) and path and path[0] == "plugins":
        return "a text"
    text = json.dumps(masked(value, str(path[-1]) if path else ""), ensure_ascii=False)
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}..."


def value_at(data: Any, path: tuple[str | int, ...]) -> Any:
    """Return the value at a path of nested objects.

    :raises LookupError: there is none.
    """
    for part in path:
        if isinstance(part, str) and not isinstance(data, Mapping):
            raise KeyError(part)
        data = data[part]
    return data


def _printable(name: str) -> str:
    return name if name.isprintable() else json.dumps(name)


def _keys(model: type[BaseModel], path: Path) -> Iterator[tuple[Path, str]]:
    said = {name: " ".join(text.split()) for name, text in re.findall(_PARAM, model.__doc__ or "")}
    for name, field in model.model_fields.items():
        here = (*path, field.alias or name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _keys(field.annotation, here)
        else:
            yield here, said.get(name, "")


@cache
def _schema() -> dict[str, Any]:
    return Settings.model_json_schema(by_alias=True)


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    return _schema()["$defs"][reference.rpartition("/")[2]] if reference else schema


def _schema_at(path: tuple[str | int, ...]) -> dict[str, Any]:
    schema = _resolved(_schema())
    for part in path:
        choices = [_resolved(choice) for choice in schema.get("anyOf", [schema])]
        if isinstance(part, int):
            found: dict[str, Any] = next((choice["items"] for choice in choices if "items" in choice), {})
        else:
            found = next((_entry(choice, part) for choice in choices if choice.get("type") == "object"), {})
        schema = _resolved(found)
    return schema


def _entry(schema: dict[str, Any], name: str) -> dict[str, Any]:
    entry = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
    return entry if isinstance(entry, dict) else {}


def _described(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_described(_resolved(choice)) for choice in schema["anyOf"])
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if "const" in schema:
        return f"'{schema['const']}'"
    match schema.get("type"):
        case "integer":
            return f"a whole number of at least {schema.get('minimum', 0)}"
        case "boolean":
            return "true or false"
        case "string":
            return "a text"
        case "array":
            return "a list of texts"
        case "object":
            return "an object"
        case "null":
            return "null"
    return "a value"


__all__ = ["Path", "all_keys", "did_you_mean", "dotted", "expected", "got", "split_key", "value_at"]
