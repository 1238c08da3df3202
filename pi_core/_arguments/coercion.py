"""Coercion: arguments that mean the right thing but have the wrong JSON type are turned into what a schema wants.

Three passes, each of which copies only what it changes: nulls of optional properties are removed, values are converted
towards the schema, and values of several allowed types get the first one that fits. A value no rule applies to stays
as it is; the check that follows reports it.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from .json_values import is_number, kind_of, number_from_text, number_text, same
from .schema import KEYS, Node

Accepts: TypeAlias = Callable[[Node, Any], bool]

_WORDS: Final = {"true": True, "false": False}


def coerce(schema: Node, value: Any, accepts: Accepts, *, decode_json: bool = False) -> Any:
    """Return the value coerced towards a schema; the value itself stays as it is.

    :param schema: the prepared schema.
    :param value: a JSON value.
    :param accepts: tells whether a value is valid for a node of the schema.
    :param decode_json: take a string that is the JSON text of an object or array for that object or array where the
        string itself would be refused.
    """
    value = _OptionalNulls(accepts).apply(schema, value)
    value = _Conversion(accepts, decode_json).apply(schema, value)
    return _Alternatives(accepts).apply(schema, value)


class _Pass(ABC):
    """One walk over schema and value.

    A container meets one node only once: branches of nested unions would otherwise be tried again and again.
    """

    def __init__(self, accepts: Accepts) -> None:
        self._accepts = accepts
        self._done: dict[tuple[int, int], tuple[Any, Any]] = {}

    def apply(self, schema: Node, value: Any) -> Any:
        if not isinstance(value, (dict, list)):
            return self._change(schema, value)
        place = (id(schema), id(value))
        known = self._done.get(place)
        if known is None:
            # The entry keeps the value alive, so that its id is not given to another one.
            known = self._done[place] = (value, self._change(schema, value))
        return known[1]

    @abstractmethod
    def _change(self, schema: Node, value: Any) -> Any:
        """Return what this pass makes of the value; the value itself stays as it is."""

    def _parts(self, schema: Node, value: Any) -> Any:
        """Return the value with its members or items changed by their schemas."""
        if isinstance(value, dict):
            return self._members(schema, value)
        return self._items(schema, value) if isinstance(value, list) else value

    def _members(self, schema: Node, value: dict[str, Any]) -> dict[str, Any]:
        properties, keys = schema.get("properties", {}), schema.get(KEYS)
        changed: dict[str, Any] = {}
        for name, member in value.items():
            new = self.apply(properties[name], member) if name in properties else member
            if keys is not None:
                for node in keys.schemas_for(name):
                    new = self.apply(node, new)
            if new is not member:
                changed[name] = new
        return {**value, **changed} if changed else value

    def _items(self, schema: Node, value: list[Any]) -> list[Any]:
        prefix, rest = schema.get("prefixItems", ()), schema.get("items")
        changed: dict[int, Any] = {}
        for index, item in enumerate(value):
            node = prefix[index] if index < len(prefix) else rest
            if node is not None and (new := self.apply(node, item)) is not item:
                changed[index] = new
        return [changed.get(index, item) for index, item in enumerate(value)] if changed else value


class _OptionalNulls(_Pass):
    """Null for a property that may be absent and does not allow null means that it is absent."""

    def _change(self, schema: Node, value: Any) -> Any:
        if isinstance(value, dict) and "properties" in schema:
            properties, required = schema["properties"], schema.get("required", ())
            absent = {
                name
                for name, member in value.items()
                if member is None
                and name in properties
                and name not in required
                and "$ref" not in properties[name]
                and not self._accepts(properties[name], None)
            }
            if absent:
                value = {name: member for name, member in value.items() if name not in absent}
        return self._parts(schema, value)


class _Conversion(_Pass):
    """Convert by the first of `$ref`, const, enum, anyOf, oneOf, allOf and a single type."""

    def __init__(self, accepts: Accepts, decode_json: bool) -> None:
        super().__init__(accepts)
        self._decode_json = decode_json

    def _change(self, schema: Node, value: Any) -> Any:
        if "$ref" in schema:
            return self.apply(schema["$ref"], value)
        if "const" in schema:
            return _literal([schema["const"]], value)
        if "enum" in schema:
            return _literal(schema["enum"], value)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self._union(schema, schema[keyword], self._parts(schema, value))
        if "allOf" in schema:
            value = self._parts(schema, value)
            for branch in schema["allOf"]:
                value = self.apply(branch, value)
            return value
        return self._typed(schema, value)

    def _union(self, schema: Node, branches: list[Node], value: Any) -> Any:
        for branch in branches:
            if self._accepts(branch, value):
                # It stays, but 3.0 may still become the equal 3.
                converted = self.apply(branch, value)
                return converted if same(converted, value) else value
        for branch in branches:
            converted = self.apply(branch, value)
            if converted is not value and self._accepts(schema, converted):
                return converted
        return value

    def _typed(self, schema: Node, value: Any) -> Any:
        kind = schema.get("type")
        if kind is None:
            if "properties" in schema or (KEYS in schema and schema[KEYS].patterns):
                kind = "object"
            elif "items" in schema or "prefixItems" in schema:
                kind = "array"
        if kind == "object":
            return self._object(schema, value)
        if kind == "array":
            return self._array(schema, value)
        return _CONVERSIONS[kind](value) if isinstance(kind, str) else value

    def _object(self, schema: Node, value: Any) -> Any:
        if self._decode_json and isinstance(decoded := decoded_json(value), dict):
            converted = self._members(schema, decoded)
            return converted if self._accepts(schema, converted) else value
        return self._members(schema, value) if isinstance(value, dict) else value

    def _array(self, schema: Node, value: Any) -> Any:
        if isinstance(value, list):
            return self._items(schema, value)
        wrapped = value if "prefixItems" in schema else self._items(schema, [value])
        if self._decode_json and isinstance(decoded := decoded_json(value), list):
            converted = self._items(schema, decoded)
            if not self._accepts(schema, wrapped) and self._accepts(schema, converted):
                return converted
        return wrapped


class _Alternatives(_Pass):
    """Give a value of none of the listed types the first of them that it can take."""

    def _change(self, schema: Node, value: Any) -> Any:
        for branch in schema.get("allOf", ()):
            value = self.apply(branch, value)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                value = self._union(schema[keyword], value)
        types = schema.get("type", [])
        if isinstance(types, str):
            types = [types]
        value = _first_type(types, value)
        if (isinstance(value, dict) and "object" in types) or (isinstance(value, list) and "array" in types):
            return self._parts(schema, value)
        return value

    def _union(self, branches: list[Node], value: Any) -> Any:
        if any(self._accepts(branch, value) for branch in branches):
            return value
        for branch in branches:
            changed = self.apply(branch, value)
            if changed is not value and self._accepts(branch, changed):
                return changed
        return value


def decoded_json(value: Any) -> Any:
    """Return the object or array whose JSON text a string is, else ``None``."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _literal(members: list[Any], value: Any) -> Any:
    """Return the value as the first member it is, or else converts to."""
    for member in members:
        if same(member, value):
            return value if type(member) is type(value) else member
    for member in members:
        kind = kind_of(member)
        convert = _CONVERSIONS.get("number" if kind == "integer" else kind)
        if convert is not None and same(convert(value), member):
            return member
    return value


def _to_string(value: Any) -> Any:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        try:
            return number_text(value)
        except ValueError:
            return value
    return value


def _to_number(value: Any) -> Any:
    if value is None:
        return 0
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str):
        return value
    number = number_from_text(value)
    if number is not None:
        return number
    lowered = value.lower()
    if lowered in _WORDS:
        return int(_WORDS[lowered])
    if value.endswith("n") and value[:-1].removeprefix("-").isdecimal() and value.isascii():
        return value if (number := number_from_text(value[:-1])) is None else number
    return value


def _to_integer(value: Any) -> Any:
    number = _to_number(value)
    return math.trunc(number) if isinstance(number, float) and math.isfinite(number) else number


def _to_boolean(value: Any) -> Any:
    if value is None:
        return False
    if isinstance(value, str):
        lowered = value.lower()
        return lowered in ("true", "1") if lowered in ("true", "false", "1", "0") else value
    return bool(value) if is_number(value) and value in (0, 1) else value


def _to_null(value: Any) -> Any:
    if isinstance(value, str):
        return None if value.lower() in ("", "0", "null", "undefined") else value
    return None if isinstance(value, (bool, int, float)) and value == 0 else value


_CONVERSIONS: Final[dict[str, Callable[[Any], Any]]] = {
    "string": _to_string,
    "number": _to_number,
    "integer": _to_integer,
    "boolean": _to_boolean,
    "null": _to_null,
}


def _first_type(types: list[str], value: Any) -> Any:
    kind = kind_of(value)
    if kind in types or (kind == "integer" and "number" in types):
        whole = isinstance(value, float) and kind == "integer" and "number" not in types
        return int(value) if whole else value
    for name in types:
        changed = _primitive(name, value)
        if changed is not value:
            return changed
    return value


def _primitive(name: str, value: Any) -> Any:
    """Return the value as a primitive type, or itself. Stricter than a conversion: nothing is truncated or guessed."""
    if name in ("number", "integer"):
        if value is None or isinstance(value, bool):
            return int(value or 0)
        number = number_from_text(value) if isinstance(value, str) and value.strip() else None
        if number is None or (name == "integer" and not float(number).is_integer()):
            return value
        return int(number) if name == "integer" else number
    if name == "boolean":
        if value is None:
            return False
        if isinstance(value, str):
            return _WORDS.get(value, value)
        return bool(value) if is_number(value) and value in (0, 1) else value
    if name == "string":
        return "" if value is None else _to_string(value)
    if name == "null":
        zero = isinstance(value, (bool, int, float)) and value == 0
        return None if zero or value == "" else value
    return value
