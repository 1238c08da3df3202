"""What is said about a value that a schema refuses, and which alternative of a union is said to have failed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from .coercion import decoded_json
from .json_values import kind_of, number_text, same
from .schema import Node

_SHOWN_MEMBERS: Final = 20


def type_error(types: str | list[str], value: Any) -> str:
    """Return the message for a value of the wrong type."""
    wanted = [types] if isinstance(types, str) else types
    message = f"expected {' or '.join(wanted)}, got {kind_of(value)}"
    if "string" not in wanted and (decoded := decoded_json(value)) is not None:
        message += f" (it is the JSON text of an {kind_of(decoded)}: pass the {kind_of(decoded)} itself)"
    return message


def one_of(members: list[Any]) -> str:
    """Return the message for a value that is not in a list."""
    shown = ",".join(map(compact, members[:_SHOWN_MEMBERS]))
    more = len(members) - _SHOWN_MEMBERS
    return f"expected one of [{shown}{f', ... and {more} more' if more > 0 else ''}]"


def matching_items(least: int, most: int | None) -> str:
    """Return the message for a wrong number of items that match ``contains``."""
    if most is not None and least:
        return f"expected between {least} and {most} matching items"
    count = least if most is None else most
    return f"expected at {'least' if most is None else 'most'} {count} matching {'item' if count == 1 else 'items'}"


def compact(value: Any) -> str:
    """Return the compact JSON text of a value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=repr)


def _bound(sign: str) -> Callable[[Any, Any], str]:
    return lambda limit, value: f"expected {sign} {number_text(limit)}"


def _count(least_or_most: str, things: str) -> Callable[[Any, Any], str]:
    return lambda count, value: f"expected {least_or_most} {number_text(count)} {things}"


WORDINGS: Final[Mapping[str, Callable[[Any, Any], str]]] = {
    "type": type_error,
    "enum": lambda members, value: one_of(members),
    "const": lambda literal, value: f"expected {compact(literal)}",
    "minLength": _count("at least", "characters"),
    "maxLength": _count("at most", "characters"),
    "format": lambda name, value: f"expected format {name}",
    "minimum": _bound(">="),
    "maximum": _bound("<="),
    "exclusiveMinimum": _bound(">"),
    "exclusiveMaximum": _bound("<"),
    "minItems": _count("at least", "items"),
    "maxItems": _count("at most", "items"),
    "uniqueItems": lambda unique, value: "expected unique items",
    "minProperties": _count("at least", "properties"),
    "maxProperties": _count("at most", "properties"),
}


def union_error(branches: list[Node], value: Any) -> tuple[tuple[str, ...], str] | None:
    """Return place and message where a union as a whole explains itself better than one of its branches."""
    literals = [_literals(branch) for branch in branches]
    if all(literals):
        return (), one_of([member for members in literals for member in members])
    types = [_types(branch) for branch in branches]
    if all(types) and not any(_fits_type(name, value) for names in types for name in names):
        return (), type_error(list(dict.fromkeys(name for names in types for name in names)), value)
    if isinstance(value, dict) and (tag := _tag(branches)) is not None:
        name, tags = tag
        if name not in value or not any(same(literal, value[name]) for literal in tags):
            return (name,), one_of(tags)
    return None


def blamed_branch(branches: list[Node], value: Any, depths: list[int]) -> int:
    """Return the index of the branch whose errors are reported.

    :param branches: the branches of the union, all of which failed.
    :param value: the value.
    :param depths: how deep below the value the first error of each branch lies.
    """
    if isinstance(value, dict):
        tag = _tag(branches)
        if tag is not None:
            return next(index for index, literal in enumerate(tag[1]) if same(literal, value.get(tag[0])))
        known = [len(_followed(branch).get("properties", {}).keys() & value.keys()) for branch in branches]
    else:
        known = [0] * len(branches)
    return max(range(len(branches)), key=lambda index: (known[index], depths[index], -index))


def _followed(node: Node) -> Node:
    while "$ref" in node and "properties" not in node:
        node = node["$ref"]
    return node


def _literals(branch: Node) -> list[Any]:
    branch = _followed(branch)
    if "const" in branch:
        return [branch["const"]]
    return list(branch.get("enum", ()))


def _types(branch: Node) -> list[str]:
    types = _followed(branch).get("type", [])
    return [types] if isinstance(types, str) else types


def _fits_type(name: str, value: Any) -> bool:
    kind = kind_of(value)
    return kind == name or (name == "number" and kind == "integer")


def _tag(branches: list[Node]) -> tuple[str, list[Any]] | None:
    """Return the key whose literal tells the branches apart, and the literal of each branch."""
    if len(branches) < 2:
        return None
    properties = [_followed(branch).get("properties", {}) for branch in branches]
    for name in properties[0]:
        literals = [_literals(schemas.get(name, {})) for schemas in properties]
        if all(len(members) == 1 for members in literals):
            tags = [members[0] for members in literals]
            if not any(same(tag, other) for index, tag in enumerate(tags) for other in tags[:index]):
                return name, tags
    return None
