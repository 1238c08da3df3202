"""Tool schemas for constrained sampling, where the server holds the model to the schema token by token."""

from __future__ import annotations

from typing import Any, Final

from pi_core import Tool

_UNSUPPORTED: Final = (
    "$ref",
    "$defs",
    "definitions",
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependentRequired",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "contains",
    "prefixItems",
)
_NULL: Final = {"type": "null"}


def strict_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the strict form of a tool's parameters; the schema itself stays as it is.

    Every object lists all its properties as required and allows no others; a property that was optional may be null.

    :raises ValueError: the schema uses something the strict form cannot say; the text names it.
    """
    if schema.get("type") != "object":
        raise ValueError("root schema must have type object")
    return _strict(schema)


def strict_parameters(
    tool: Tool, *, supported: bool, switch: str = "supportsStrictMode"
) -> tuple[dict[str, Any], bool]:
    """Return the parameters to declare for a tool, and whether they are strict.

    :param supported: whether the server has a strict mode.
    :param switch: what says so in a model's ``compat``.
    :raises ValueError: the tool insists on strict sampling and cannot have it.
    """
    wish = tool.constrained_sampling
    if not isinstance(wish, dict) or wish.get("type") != "json_schema":
        return tool.schema, False
    insists = wish.get("strict") == "require"
    if not supported:
        if insists:
            raise ValueError(
                f'Tool "{tool.name}" requires JSON-schema constrained sampling, but strict tools are unsupported. '
                f'Choose a model whose compat has {switch}, or set the tool\'s strict to "prefer".'
            )
        return tool.schema, False
    try:
        return strict_schema(tool.schema), True
    except ValueError as error:
        if insists:
            raise ValueError(
                f'Tool "{tool.name}" requires JSON-schema constrained sampling, but its parameters have no strict '
                f"form: {error}"
            ) from None
        return tool.schema, False


def _strict(node: Any) -> dict[str, Any]:
    if not isinstance(node, dict):
        raise ValueError("schemas must be objects")
    for keyword in _UNSUPPORTED:
        if keyword in node:
            raise ValueError(f"{keyword} schemas are unsupported")
    strict = dict(node)
    types = node.get("type")
    if "anyOf" in node:
        strict["anyOf"] = [_strict_member(member) for member in node["anyOf"]]
    elif types is None:
        if "enum" not in node:
            raise ValueError("schemas without a type are unsupported")
    elif isinstance(types, list) and {"object", "array"} & set(types):
        raise ValueError("object and array unions are unsupported")
    if types == "object":
        strict.update(_strict_object(node))
    elif types == "array":
        if isinstance(node.get("items"), list):
            raise ValueError("tuple schemas are unsupported")
        if "items" in node:
            strict["items"] = _strict(node["items"])
    return strict


def _strict_member(member: Any) -> dict[str, Any]:
    if isinstance(member, dict) and member.get("type") in ("object", "array"):
        raise ValueError("object and array unions are unsupported")
    return _strict(member)


def _strict_object(node: dict[str, Any]) -> dict[str, Any]:
    if node.get("additionalProperties", False) is not False:
        raise ValueError("schema-valued or true additionalProperties is unsupported")
    properties = node.get("properties", {})
    required = node.get("required", [])
    if not set(required) <= set(properties):
        raise ValueError("required contains an unknown property")
    strict = {
        name: _strict(child) if name in required else _nullable(_strict(child)) for name, child in properties.items()
    }
    return {"properties": strict, "required": list(properties), "additionalProperties": False}


def _nullable(node: dict[str, Any]) -> dict[str, Any]:
    types = node.get("type")
    nullable = (
        types == "null"
        or (isinstance(types, list) and "null" in types)
        or None in node.get("enum", [])
        or _NULL in node.get("anyOf", [])
    )
    return node if nullable else {"anyOf": [node, dict(_NULL)]}
