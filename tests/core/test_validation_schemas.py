"""Schemas themselves: dialects, references, and everything that can be wrong with one."""

import socket

import pytest

from pi_core._arguments.validation import ArgumentsValidator, InvalidArguments


def errors_of(schema, arguments):
    try:
        ArgumentsValidator(schema).validate(arguments)
    except InvalidArguments as error:
        return error.errors
    return []


def errors_at_v(schema, value="x"):
    return errors_of({"type": "object", "properties": {"v": schema, "other": {}}}, {"v": value, "other": 1})


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "foo"}, 'unknown type "foo"'),
        ({"type": 5}, "unknown type 5"),
        ({"type": ["string", None]}, "unknown type null"),
        (5, "expected an object or a boolean, got integer"),
        ("string", "expected an object or a boolean, got string"),
        (None, "expected an object or a boolean, got null"),
        ([{"type": "string"}], "expected an object or a boolean, got array"),
        ({"enum": "a"}, 'enum must be a list, got "a"'),
        ({"minimum": "3"}, 'minimum must be a number, got "3"'),
        ({"multipleOf": 0}, "multipleOf must be a number above 0, got 0"),
        ({"multipleOf": float("inf")}, "multipleOf must be a number above 0, got Infinity"),
        ({"minLength": -1}, "minLength must be a whole number, got -1"),
        ({"maxItems": 1.5}, "maxItems must be a whole number, got 1.5"),
        ({"minProperties": True}, "minProperties must be a whole number, got true"),
        ({"minContains": "1", "contains": {}}, 'minContains must be a whole number, got "1"'),
        ({"format": ["date"]}, 'format must be a string, got ["date"]'),
        ({"pattern": 5}, "pattern must be a string, got 5"),
        ({"required": "a"}, 'required must be a list of names, got "a"'),
        ({"required": [1]}, "required must be a list of names, got [1]"),
        ({"properties": ["a"]}, 'properties must be an object, got ["a"]'),
        ({"properties": {1: {}}}, 'properties must be an object, got {"1": {}}'),
        ({"patternProperties": 1}, "patternProperties must be an object, got 1"),
        ({"dependentRequired": {"a": 5}}, "dependentRequired must be a list of names, got 5"),
        ({"prefixItems": {}}, "prefixItems must be a list, got {}"),
        ({"anyOf": {"type": "string"}}, 'anyOf must be a list, got {"type": "string"}'),
        ({"$ref": 5}, "$ref must be a string, got 5"),
        ({"const": {1, 2}, "enum": {"x" * 99}}, "enum must be a list, got {'" + "x" * 55 + "..."),
    ],
    ids=str,
)
def test_broken_schema_rejects_its_place_and_says_why(schema, reason):
    assert errors_at_v(schema) == [("v", f"invalid schema: {reason}")]
    assert errors_of({"properties": {"v": schema}}, {}) == []
    assert errors_of(schema, {}) == [("root", f"invalid schema: {reason}")]


@pytest.mark.parametrize(
    ("schema", "value", "path"),
    [
        ({"items": {"type": "foo"}}, [1], "v.0"),
        ({"contains": {"type": "foo"}, "minContains": 0}, [1], "v"),
        ({"propertyNames": {"type": "foo"}}, {"a": 1}, "v.a"),
        ({"additionalProperties": {"type": "foo"}}, {"a": 1}, "v.a"),
        ({"not": {"type": "foo"}}, 1, "v"),
        ({"not": {"properties": {"a": {"type": "foo"}}}}, {"a": 1}, "v.a"),
        ({"if": {"type": "foo"}, "then": {}}, 1, "v"),
        ({"dependentSchemas": {"a": {"type": "foo"}}}, {"a": 1}, "v"),
        ({"unevaluatedItems": {"type": "foo"}}, [1], "v.0"),
    ],
    ids=str,
)
def test_broken_schema_is_never_taken_for_a_decision(schema, value, path):
    assert errors_at_v(schema, value) == [(path, 'invalid schema: unknown type "foo"')]


def test_broken_alternative_leaves_the_others():
    schema = {"anyOf": [{"type": "foo"}, {"type": "integer"}]}
    assert errors_at_v(schema, "3") == []
    assert errors_at_v(schema, "x") == [("v", 'invalid schema: unknown type "foo"')]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "required": True},
        {"type": "string", "description": None, "enum": None, "items": None, "properties": None, "$ref": None},
        {"type": "string", "$id": 5, "$defs": 5, "$schema": 5, "definitions": None},
        {"type": "string", "then": {"type": "foo"}, "additionalItems": {"type": "foo"}, "minContains": "x"},
        {"type": "string", "$schema": "http://json-schema.org/draft-04/schema#", "x-vendor": {"type": "foo"}},
    ],
    ids=str,
)
def test_what_means_nothing_is_ignored(schema):
    assert errors_at_v(schema) == []


def test_draft_4_exclusive_bounds():
    assert errors_at_v({"minimum": 3, "exclusiveMinimum": True}, 3) == [("v", "expected > 3")]
    assert errors_at_v({"maximum": 3, "exclusiveMaximum": True}, 3) == [("v", "expected < 3")]
    assert errors_at_v({"minimum": 3, "exclusiveMinimum": False, "exclusiveMaximum": True}, 3) == []


def test_a_declared_dialect_changes_nothing():
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"v": {"$ref": "#/$defs/n", "minimum": 3}},
    }
    for dialect in (schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "urn:unknown"):
        given = {**schema, "$schema": dialect, "$defs": {"n": {"$schema": dialect, "multipleOf": 2}}}
        assert errors_of(given, {"v": 1}) == [("v", "expected >= 3"), ("v", "expected a multiple of 2")]


REQUIRES_Q = {"required": ["q"]}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": REQUIRES_Q}},
        {"$ref": "#/definitions/a", "definitions": {"a": REQUIRES_Q}},
        {"$ref": "#/components/schemas/a%20b~1c~0d", "components": {"schemas": {"a b/c~d": REQUIRES_Q}}},
        {"$ref": "#/x/0/y", "x": [{"y": {"$ref": "#/x/1"}}, REQUIRES_Q]},
        {"$ref": "#a", "$defs": {"x": {"$anchor": "a", **REQUIRES_Q}}},
        {"$dynamicRef": "#a", "$defs": {"x": {"$dynamicAnchor": "a", **REQUIRES_Q}}},
        {"$ref": "#a", "definitions": {"x": {"$id": "#a", **REQUIRES_Q}}},
        {"$id": "tool", "$ref": "#/$defs/a", "$defs": {"a": REQUIRES_Q}},
        {"$id": "tools/one.json", "$ref": "one.json#/$defs/a", "$defs": {"a": REQUIRES_Q}},
        {"$id": "tools/one.json", "$ref": "two.json", "$defs": {"a": {"$id": "two.json", **REQUIRES_Q}}},
        {"$id": "https://x.test/one", "$ref": "/two#b", "$defs": {"a": {"$id": "two", "$defs": {"c": {"$anchor": "b",
         **REQUIRES_Q}}}}},
        {"$id": "urn:example:one", "$ref": "#/$defs/a", "$defs": {"a": REQUIRES_Q}},
        {"$ref": "#/$defs/a", "$defs": {"b": {"$id": ""}, "c": {"$id": "#"}, "a": REQUIRES_Q}},
        {"$id": "a/b", "$ref": "#/$defs/a", "$defs": {"a": {"$id": "http://[", **REQUIRES_Q}}},
        {"$id": "http://[", "$ref": "#/$defs/a", "$defs": {"a": REQUIRES_Q}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$id": "in/", "$ref": "#/$defs/b", "$defs": {"b": REQUIRES_Q}}, "b": {}}},
        {"$ref": "#/x/in", "x": {"in": {"$id": "i", "allOf": [{"$ref": "#/n"}], "n": REQUIRES_Q}}},
        {"allOf": [{"$ref": "#/$defs/b"}], "$defs": {"a": REQUIRES_Q, "b": {"$ref": "#/$defs/a"}}},
    ],
    ids=str,
)  # fmt: skip
def test_reference_within_the_schema(schema):
    assert errors_of(schema, {}) == [("q", "missing")]
    assert errors_of(schema, {"q": 1}) == []


@pytest.mark.parametrize(
    "reference",
    [
        "#/$defs/gone", "#/$defs/list/x", "#/$defs/list/9", "#/$defs/list/-1", "#/$defs/text/x", "#gone", "gone.json",
        "http://[", "http://127.0.0.1:1/schema.json", "file:///etc/hostname",
         "https://json-schema.org/draft/2020-12/schema",
    ],
)  # fmt: skip
def test_reference_that_names_nothing_rejects_its_place_only(reference, monkeypatch):
    def refuse(*arguments):
        raise AssertionError("a reference must not open a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    schema = {"properties": {"v": {"$ref": reference}}, "$defs": {"list": [{}], "text": "x"}}
    assert errors_of(schema, {"w": 1}) == []
    assert errors_of(schema, {"v": 1}) == [("v", f"unresolved reference {reference}")]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"allOf": [{"$ref": "#"}]},
        {"not": {"not": {"$ref": "#"}}},
        {"if": {"$ref": "#"}},
        {"if": {}, "then": {"$ref": "#"}},
    ],
    ids=str,
)
def test_reference_that_leads_back_to_itself(schema):
    ((path, message),) = errors_of(schema, {})
    assert path == "root"
    assert message == "invalid schema: a reference leads back to itself"


def test_circular_alternative_leaves_the_others():
    assert errors_of({"anyOf": [{"$ref": "#"}, {"required": ["q"]}]}, {"q": 1}) == []


def test_recursion_into_values_is_no_circle():
    schema = {"properties": {"child": {"$ref": "#"}, "n": {"type": "integer"}}, "additionalProperties": False}
    assert errors_of(schema, {"child": {"child": {"n": "1", "m": 1}}}) == [("child.child.m", "unknown field")]


def test_schema_that_contains_itself():
    endless = {"properties": {}}
    endless["properties"]["child"] = endless
    assert errors_of(endless, {"child": {"child": 1}}) == []
    nested = []
    nested.append(nested)
    assert errors_of({"allOf": nested}, {}) == [("root", "invalid schema: expected an object or a boolean, got array")]


def test_schema_that_nests_too_deeply():
    schema = {}
    for _ in range(3000):
        schema = {"not": schema}
    assert errors_of(schema, {}) == [("root", "invalid schema: it nests too deeply")]


def test_parameters_that_are_no_object():
    assert errors_of({"type": "string"}, {}) == [("root", "expected string, got object")]
    assert errors_of({"type": "array"}, {}) == [("root", "invalid schema: the arguments are an object, not an array")]


def test_later_changes_of_the_schema_are_not_seen():
    schema = {"properties": {"v": {"type": "integer"}}}
    validator = ArgumentsValidator(schema)
    schema["properties"]["v"]["type"] = "object"
    assert validator.validate({"v": "1"}) == {"v": 1}
