"""Schemas of plain types compiled to functions, so that usual arguments cost about a microsecond.

What `compile_fit` cannot express it refuses, and jsonschema decides. Where it can, both always agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from .schema import BROKEN, KEYS, REJECT, Node

Fit: TypeAlias = Callable[[Any], bool]

_KINDS: Final[dict[str, frozenset[type]]] = {
    "null": frozenset({type(None)}),
    "boolean": frozenset({bool}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "string": frozenset({str}),
    "array": frozenset({list}),
    "object": frozenset({dict}),
}
_SCALARS: Final = frozenset({type(None), bool, int, float, str})
_NUMBERS: Final = frozenset({int, float})
_KNOWN: Final = frozenset(
    {
        *("type", "enum", "const", "minLength", "maxLength", "minimum", "maximum"),
        *("exclusiveMinimum", "exclusiveMaximum", "required", "properties", "items", "minItems", "maxItems"),
        *("anyOf", "$ref", REJECT, BROKEN, KEYS),
    }
)


class _UnsupportedError(Exception):
    """The schema says more than plain types."""


def compile_fit(node: Node, *, exact: bool = False) -> Fit | None:
    """Return a function that tells whether a value is valid, or ``None`` for a schema that is not plain.

    :param node: the prepared schema.
    :param exact: refuse what is valid but would be changed by coercion, such as 3.0 for an integer.
    """
    try:
        return _Compiler(exact).compile(node)
    except _UnsupportedError:
        return None


class _Compiler:
    def __init__(self, exact: bool) -> None:
        self._exact = exact
        self._fits: dict[int, Fit | None] = {}

    def compile(self, node: Node) -> Fit:
        if id(node) in self._fits:
            return self._fits[id(node)] or (lambda value: self._later(node)(value))
        if not node.keys() <= _KNOWN:
            raise _UnsupportedError
        self._fits[id(node)] = None
        fit = self._fits[id(node)] = _all(list(self._tests(node)))
        return fit

    def _later(self, node: Node) -> Fit:
        fit = self._fits[id(node)]
        assert fit is not None
        return fit

    def _tests(self, node: Node) -> Iterable[Fit]:
        if REJECT in node or BROKEN in node:
            yield lambda value: False
        kinds = self._kinds(node)
        members = not node.keys().isdisjoint(("properties", "required", KEYS))
        only_object = members and node.get("type") == "object"
        if kinds is not None and not only_object:
            yield self._type(kinds)
        if "enum" in node:
            yield _enum(node["enum"], self._exact)
        if "const" in node:
            yield _enum([node["const"]], self._exact)
        yield from _bounds(node)
        if members:
            yield self._object(node, only_object=only_object)
        if "items" in node:
            yield self._items(node)
        if "anyOf" in node:
            yield _any([self.compile(branch) for branch in node["anyOf"]])
        if "$ref" in node:
            yield self.compile(node["$ref"])

    def _kinds(self, node: Node) -> frozenset[type] | None:
        types = node.get("type")
        if types is None:
            return None
        return frozenset().union(*(_KINDS[name] for name in ([types] if isinstance(types, str) else types)))

    def _type(self, kinds: frozenset[type]) -> Fit:
        if self._exact or not _whole_only(kinds):
            return lambda value: type(value) in kinds
        return lambda value: type(value) in kinds or (type(value) is float and value.is_integer())

    def _items(self, node: Node) -> Fit:
        item = self.compile(node["items"])
        if self._exact and node.keys().isdisjoint(("type", "enum", "const", "anyOf", "$ref", "properties")):
            # Anything else is valid too, but coercion makes a list of it.
            return lambda value: type(value) is list and all(map(item, value))
        return lambda value: type(value) is not list or all(map(item, value))

    def _object(self, node: Node, *, only_object: bool) -> Fit:
        required = tuple(node.get("required", ()))
        keys = node.get(KEYS)
        if keys is not None and (keys.patterns or keys.names is not None):
            raise _UnsupportedError
        extra = None if keys is None or keys.additional is None else self.compile(keys.additional)
        plain: dict[str, frozenset[type]] = {}
        other: dict[str, Fit | None] = {}
        literals: list[tuple[str, Fit]] = []
        for name, schema in node.get("properties", {}).items():
            kinds = self._kinds(schema)
            if "const" in schema or "enum" in schema:
                literals.append((name, self.compile(schema)))
                other[name] = None
            elif kinds is not None and schema.keys() == {"type"} and (self._exact or not _whole_only(kinds)):
                plain[name] = kinds
            else:
                other[name] = self.compile(schema)

        def fits(value: Any) -> bool:
            if type(value) is not dict:
                return not only_object
            # What tells the alternatives of a union apart comes first: deep values are then looked at once.
            for name in required:
                if name not in value:
                    return False
            for name, check in literals:
                if name in value and not check(value[name]):
                    return False
            for name, member in value.items():
                kinds = plain.get(name)
                if kinds is not None:
                    if type(member) not in kinds:
                        return False
                elif (inner := other.get(name, extra)) is not None and not inner(member):
                    return False
            return True

        return fits


def _whole_only(kinds: frozenset[type]) -> bool:
    return int in kinds and float not in kinds


def _all(tests: list[Fit]) -> Fit:
    if not tests:
        return lambda value: True
    if len(tests) == 1:
        return tests[0]
    return lambda value: all(test(value) for test in tests)


def _any(tests: list[Fit]) -> Fit:
    return lambda value: any(test(value) for test in tests)


def _enum(members: list[Any], exact: bool) -> Fit:
    # NaN is not even equal to itself.
    if not all(type(member) in _SCALARS and member == member for member in members):
        raise _UnsupportedError
    if exact:
        same_type = frozenset((type(member), member) for member in members)
        return lambda value: type(value) in _SCALARS and (type(value), value) in same_type
    # JSON keeps true and 1 apart, Python's == does not.
    allowed = frozenset((type(member) is bool, member) for member in members)
    return lambda value: type(value) in _SCALARS and (type(value) is bool, value) in allowed


def _bounds(node: Node) -> Iterable[Fit]:
    if "minimum" in node:
        least = node["minimum"]
        yield lambda value: type(value) not in _NUMBERS or not value < least
    if "maximum" in node:
        most = node["maximum"]
        yield lambda value: type(value) not in _NUMBERS or not value > most
    if "exclusiveMinimum" in node:
        above = node["exclusiveMinimum"]
        yield lambda value: type(value) not in _NUMBERS or not value <= above
    if "exclusiveMaximum" in node:
        below = node["exclusiveMaximum"]
        yield lambda value: type(value) not in _NUMBERS or not value >= below
    if "minLength" in node or "maxLength" in node:
        yield _sized(str, node.get("minLength", 0), node.get("maxLength"))
    if "minItems" in node or "maxItems" in node:
        yield _sized(list, node.get("minItems", 0), node.get("maxItems"))


def _sized(kind: type[str | list[Any]], least: float, most: float | None) -> Fit:
    top = float("inf") if most is None else most
    return lambda value: not isinstance(value, kind) or least <= len(value) <= top
