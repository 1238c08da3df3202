"""A JSON Schema made ready for use: checked, in one dialect, with its references resolved.

Coercion and validation walk the result, a graph of plain dicts ("nodes"), and need not expect anything odd in it:

* draft 7's ``items`` lists, ``additionalItems`` and ``dependencies`` and draft 4's ``exclusiveMinimum: true`` are
  written as in draft 2020-12; a keyword with the value null is left out;
* ``$ref`` holds the node it names, and so does ``$dynamicRef``; nothing is ever fetched;
* ``false`` became a node that rejects every value (`REJECT`), and so did what is broken (`BROKEN`), which says why;
* keywords stand in the order in which their errors are reported.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from .json_values import is_number, kind_of

if TYPE_CHECKING:
    from .js_regex import Pattern

Node: TypeAlias = dict[str, Any]

REJECT: Final = "$reject"
BROKEN: Final = "$broken"
KEYS: Final = "$keys"
TYPES: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})

_COUNTS: Final = ("minLength", "maxLength")
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_MAPS: Final = ("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")
_PLACES: Final = (
    *("additionalProperties", "propertyNames", "items", "additionalItems", "prefixItems", "contains"),
    *("not", "if", "then", "else", "unevaluatedProperties", "unevaluatedItems", *_LISTS),
)
_NAMES_OF_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


class Keys:
    """What a schema says about the keys of an object beside its ``properties``.

    :param declared: the names in ``properties``.
    :param patterns: every pattern with its schema.
    :param additional: the schema of all other keys.
    :param names: the schema of the names themselves.
    """

    __slots__ = ("additional", "declared", "names", "patterns")

    def __init__(
        self,
        declared: frozenset[str],
        patterns: list[tuple[Pattern, Node]],
        additional: Node | None,
        names: Node | None,
    ) -> None:
        self.declared = declared
        self.patterns = patterns
        self.additional = additional
        self.names = names

    def schemas_for(self, name: str) -> Iterator[Node]:
        """Yield the schemas of every matching pattern, or else the one for additional properties."""
        found = name in self.declared
        for pattern, node in self.patterns:
            if pattern.regex is not None and pattern.regex.search(name):
                found = True
                yield node
        if not found and self.additional is not None:
            yield self.additional


class _BrokenError(Exception):
    """A schema that cannot be used; the text says what is wrong with it."""


def prepare(schema: Any) -> Node:
    """Return the node of a schema; never raises, whatever the schema is."""
    try:
        return _Preparation(schema).run()
    except RecursionError:
        return {BROKEN: "invalid schema: it nests too deeply"}


class _Preparation:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._nodes: dict[int, Node] = {}
        self._bases: dict[int, str] | None = None
        self._targets: dict[tuple[str, str], Any] = {}

    def run(self) -> Node:
        root = self._node(self._root)
        if self._bases is not None:
            _cut_loops(self._nodes.values())
        return root

    def _node(self, raw: Any, rejection: str = "no value is allowed here") -> Node:
        if raw is True:
            return {}
        if raw is False:
            return {REJECT: rejection}
        if not isinstance(raw, Mapping):
            return {BROKEN: f"invalid schema: expected an object or a boolean, got {kind_of(raw)}"}
        node = self._nodes.get(id(raw))
        if node is None:
            node = self._nodes[id(raw)] = {}
            try:
                self._fill(node, raw)
            except _BrokenError as problem:
                node.clear()
                node[BROKEN] = f"invalid schema: {problem}"
        return node

    def _fill(self, node: Node, raw: Mapping[str, Any]) -> None:
        given = {keyword: value for keyword, value in raw.items() if value is not None}
        if "type" in given:
            node["type"] = _types(given["type"])
        if "enum" in given:
            node["enum"] = _listed(given, "enum")
        if "const" in raw:
            node["const"] = raw["const"]
        _counts(node, given, *_COUNTS)
        if "pattern" in given:
            node["pattern"] = _pattern(_text(given, "pattern"))
        if "format" in given:
            node["format"] = _text(given, "format")
        _bounds(node, given)
        self._object(node, given)
        self._array(node, given)
        for keyword in _LISTS:
            if keyword in given:
                node[keyword] = [self._node(branch) for branch in _listed(given, keyword)]
        for keyword in ("not", "if", "then", "else"):
            if keyword in given:
                node[keyword] = self._node(given[keyword])
        for keyword in _NAMES_OF_REFERENCES:
            if keyword in given and "$ref" not in node:
                node["$ref"] = self._reference(_text(given, keyword), raw)
        if "unevaluatedProperties" in given:
            node["unevaluatedProperties"] = self._node(given["unevaluatedProperties"], "unknown field")
        if "unevaluatedItems" in given:
            node["unevaluatedItems"] = self._node(given["unevaluatedItems"], "unexpected item")

    def _object(self, node: Node, given: Mapping[str, Any]) -> None:
        # Draft 3 marked a single property with a boolean `required`; it says nothing about the property's own keys.
        if "required" in given and not isinstance(given["required"], bool):
            node["required"] = _names(given["required"], "required")
        if "properties" in given:
            node["properties"] = self._map(given, "properties")
        if not given.keys().isdisjoint(("patternProperties", "additionalProperties", "propertyNames")):
            node[KEYS] = self._keys(node, given)
        _counts(node, given, "minProperties", "maxProperties")
        required: dict[str, list[str]] = {}
        schemas: dict[str, Node] = {}
        for keyword in ("dependentRequired", "dependencies"):
            for name, value in _mapping(given, keyword).items():
                if keyword == "dependencies" and isinstance(value, (Mapping, bool)):
                    schemas[name] = self._node(value)
                else:
                    required[name] = [*required.get(name, ()), *_names(value, keyword)]
        schemas |= self._map(given, "dependentSchemas")
        if required:
            node["dependentRequired"] = required
        if schemas:
            node["dependentSchemas"] = schemas

    def _keys(self, node: Node, given: Mapping[str, Any]) -> Keys:
        patterns = []
        for source, schema in _mapping(given, "patternProperties").items():
            pattern = _pattern(source)
            if pattern.regex is None:
                raise _BrokenError(problem_of(pattern))
            patterns.append((pattern, self._node(schema)))
        additional = given.get("additionalProperties")
        names = given.get("propertyNames")
        return Keys(
            frozenset(node.get("properties", ())),
            patterns,
            None if additional is None else self._node(additional, "unknown field"),
            None if names is None else self._node(names),
        )

    def _array(self, node: Node, given: Mapping[str, Any]) -> None:
        prefix, items = given.get("prefixItems"), given.get("items")
        if prefix is None and isinstance(items, (list, tuple)):
            prefix, items = items, given.get("additionalItems")
        if prefix is not None:
            node["prefixItems"] = [self._node(item) for item in _listed({"prefixItems": prefix}, "prefixItems")]
        if items is not None:
            node["items"] = self._node(items, "unexpected item")
        _counts(node, given, "minItems", "maxItems")
        if given.get("uniqueItems") is True:
            node["uniqueItems"] = True
        if "contains" in given:
            node["contains"] = self._node(given["contains"])
            _counts(node, given, "minContains", "maxContains")

    def _map(self, given: Mapping[str, Any], keyword: str) -> dict[str, Node]:
        return {name: self._node(schema) for name, schema in _mapping(given, keyword).items()}

    def _reference(self, reference: str, holder: Mapping[str, Any]) -> Node:
        if self._bases is None:
            self._bases = {}
            self._targets[("", "")] = self._root
            self._index(self._root, "")
        try:
            base, target = self._resolve(reference, self._bases.get(id(holder), ""))
        except (LookupError, ValueError):
            return {BROKEN: f"unresolved reference {reference}"}
        self._index(target, base)
        return self._node(target)

    def _resolve(self, reference: str, base: str) -> tuple[str, Any]:
        """Return what a reference names, and the base address there; raises if it names nothing in this schema."""
        from urllib.parse import unquote, urldefrag, urljoin

        if reference.startswith("#"):
            address, fragment = base, reference[1:]
        else:
            address, fragment = urldefrag(urljoin(base, reference))
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            return address, self._targets[(address, fragment)]
        target = self._targets[(address, "")]
        for token in fragment.split("/")[1:]:
            target = _step(target, token.replace("~1", "/").replace("~0", "~"))
        return address, target

    def _index(self, raw: Any, base: str) -> None:
        """Note the base address of every schema and what its identifiers and anchors name."""
        assert self._bases is not None
        if not isinstance(raw, Mapping) or id(raw) in self._bases:
            return
        identifier = raw.get("$id")
        if isinstance(identifier, str):
            if identifier.startswith("#"):
                self._targets.setdefault((base, identifier[1:]), raw)
            else:
                base = _joined(base, identifier)
                self._targets.setdefault((base, ""), raw)
        self._bases[id(raw)] = base
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(raw.get(keyword), str):
                self._targets.setdefault((base, raw[keyword]), raw)
        for schema in _parts(raw):
            self._index(schema, base)


def _step(value: Any, key: str) -> Any:
    if isinstance(value, Mapping):
        return value[key]
    if isinstance(value, (list, tuple)) and key.isdecimal():
        return value[int(key)]
    raise LookupError(key)


def _joined(base: str, identifier: str) -> str:
    from urllib.parse import urldefrag, urljoin

    try:
        return urldefrag(urljoin(base, identifier))[0]
    except ValueError:
        return base


def _parts(raw: Mapping[str, Any]) -> Iterator[Any]:
    """Yield what stands in the places of a schema where schemas stand."""
    for keyword in _MAPS:
        if isinstance(raw.get(keyword), Mapping):
            yield from raw[keyword].values()
    for keyword in _PLACES:
        value = raw.get(keyword)
        if isinstance(value, (list, tuple)):
            yield from value
        else:
            yield value


def _cut_loops(nodes: Iterable[Node]) -> None:
    """Make every reference that leads back to itself at the same value a rejection."""
    state: dict[int, bool] = {}

    def visit(node: Node) -> None:
        state[id(node)] = True
        for target in _same_place(node):
            if state.get(id(target)):
                node.clear()
                node[BROKEN] = "invalid schema: a reference leads back to itself"
                break
            if id(target) not in state:
                visit(target)
        state[id(node)] = False

    for node in list(nodes):
        if id(node) not in state:
            visit(node)


def _same_place(node: Node) -> list[Node]:
    targets = [node[keyword] for keyword in ("$ref", "not", "if", "then", "else") if keyword in node]
    for keyword in _LISTS:
        targets += node.get(keyword, ())
    return [*targets, *node.get("dependentSchemas", {}).values()]


def _pattern(source: str) -> Pattern:
    from .js_regex import compile_pattern

    return compile_pattern(source)


def problem_of(pattern: Pattern) -> str:
    """Return why a pattern cannot be used."""
    return f"pattern {pattern.source} cannot be used ({pattern.problem})"


def _types(value: Any) -> str | list[str]:
    for name in value if isinstance(value, (list, tuple)) else (value,):
        if not isinstance(name, str) or name not in TYPES:
            raise _BrokenError(f"unknown type {_shown(name)}")
    return value if isinstance(value, str) else list(value)


def _bounds(node: Node, given: Mapping[str, Any]) -> None:
    for keyword in _BOUNDS:
        value = given.get(keyword)
        if value is None:
            continue
        if isinstance(value, bool) and keyword.startswith("exclusive"):
            limit = "minimum" if keyword == "exclusiveMinimum" else "maximum"
            if value and limit in node:
                node[keyword] = node.pop(limit)
        elif is_number(value):
            node[keyword] = value
        else:
            raise _BrokenError(f"{keyword} must be a number, got {_shown(value)}")
    divisor = given.get("multipleOf")
    if divisor is not None:
        if not is_number(divisor) or not 0 < divisor < float("inf"):
            raise _BrokenError(f"multipleOf must be a number above 0, got {_shown(divisor)}")
        node["multipleOf"] = divisor


def _counts(node: Node, given: Mapping[str, Any], *keywords: str) -> None:
    for keyword in keywords:
        value = given.get(keyword)
        if value is None:
            continue
        if not is_number(value) or value < 0 or value != value // 1:
            raise _BrokenError(f"{keyword} must be a whole number, got {_shown(value)}")
        node[keyword] = value


def _text(given: Mapping[str, Any], keyword: str) -> str:
    value = given[keyword]
    if not isinstance(value, str):
        raise _BrokenError(f"{keyword} must be a string, got {_shown(value)}")
    return value


def _listed(given: Mapping[str, Any], keyword: str) -> list[Any]:
    value = given[keyword]
    if not isinstance(value, (list, tuple)):
        raise _BrokenError(f"{keyword} must be a list, got {_shown(value)}")
    return list(value)


def _names(value: Any, keyword: str) -> list[str]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
        raise _BrokenError(f"{keyword} must be a list of names, got {_shown(value)}")
    return list(value)


def _mapping(given: Mapping[str, Any], keyword: str) -> Mapping[str, Any]:
    value = given.get(keyword, {})
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise _BrokenError(f"{keyword} must be an object, got {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
