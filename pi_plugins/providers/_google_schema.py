"""Tool schemas as the Gemini API takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_NODE_LIMIT: Final = 5000
"""Most schemas one may become when its references are replaced; above that they stay."""

_ONE: Final = frozenset(
    {
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_SEVERAL: Final = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_NAMED: Final = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_DEFINITIONS: Final = ("$defs", "definitions")


class _TooLargeError(Exception):
    pass


def google_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool's parameters in the form this API accepts; the schema itself stays as it is.

    References are replaced by what they refer to, because one may not have a description or anything else beside it.
    Those of a schema that contains itself stay. A ``const`` becomes an ``enum`` of one value.
    """
    rewritten: dict[str, Any]
    try:
        rewriter = _Rewriter(schema, inline=True)
        rewritten = rewriter.schema(schema)
    except _TooLargeError:
        rewriter = _Rewriter(schema, inline=False)
        rewritten = rewriter.schema(schema)
    if rewriter.replaced and not rewriter.kept:
        for name in _DEFINITIONS:
            rewritten.pop(name, None)
    return rewritten


class _Rewriter:
    """Copies a schema with what has to change.

    :ivar replaced: whether a reference was replaced.
    :ivar kept: whether a reference stayed.
    """

    def __init__(self, root: Mapping[str, Any], *, inline: bool) -> None:
        self.replaced = False
        self.kept = False
        self._root = root
        self._inline = inline
        self._room = _NODE_LIMIT

    def schema(self, node: Any, within: tuple[str, ...] = ()) -> Any:
        """Return the copy of a schema.

        :param within: the references whose replacement this is.
        """
        if not isinstance(node, Mapping):
            return node
        self._room -= 1 if self._inline else 0
        if self._room < 0:
            raise _TooLargeError
        reference = node.get("$ref")
        if isinstance(reference, str):
            target = self._target(reference) if self._inline and reference not in within else None
            if target is not None:
                self.replaced = True
                beside = {name: value for name, value in node.items() if name != "$ref"}
                return {**self.schema(target, (*within, reference)), **self._copy(beside, within)}
            self.kept = True
        return self._copy(node, within)

    def _copy(self, node: Mapping[str, Any], within: tuple[str, ...]) -> dict[str, Any]:
        copy: dict[str, Any] = {}
        for name, value in node.items():
            if name in _SEVERAL and isinstance(value, list):
                copy[name] = [self.schema(item, within) for item in value]
            elif name in _ONE:
                copy[name] = self.schema(value, within)
            elif name in _DEFINITIONS and isinstance(value, Mapping):
                copy[name] = self._definitions(value)
            elif name in _NAMED and isinstance(value, Mapping):
                copy[name] = {key: self.schema(item, within) for key, item in value.items()}
            elif name == "const" and isinstance(value, str | int | float) and not isinstance(value, bool):
                copy["enum"] = [value]
            elif name != "enum" or "enum" not in copy:
                copy[name] = value
        return copy

    def _definitions(self, definitions: Mapping[str, Any]) -> dict[str, Any]:
        """Definitions are only needed for references that stay, so those in them stay too."""
        inside = _Rewriter(self._root, inline=False)
        return {name: inside.schema(item) for name, item in definitions.items()}

    def _target(self, reference: str) -> Mapping[str, Any] | None:
        if not reference.startswith("#/"):
            return None
        node: Any = self._root
        for part in reference[2:].split("/"):
            node = node.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(node, Mapping) else None
        return node if isinstance(node, Mapping) else None
