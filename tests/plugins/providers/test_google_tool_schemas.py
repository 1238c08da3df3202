"""Tool schemas in the form the Gemini API takes."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pi_plugins.providers._google_schema import google_schema


def references(schema: Any) -> list[str]:
    text = json.dumps(schema)
    return [part.partition('"')[0] for part in text.split('"$ref": "')[1:]]


def test_references_become_what_they_refer_to() -> None:
    schema = {
        "type": "object",
        "properties": {
            "home": {"$ref": "#/$defs/Address", "description": "Where"},
            "others": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/Address"}, {"type": "null"}]}},
            "kind": {"$ref": "#/definitions/a~1b"},
            "again": {"$ref": "#/properties/kind"},
        },
        "$defs": {
            "Address": {"type": "object", "title": "Address", "properties": {"city": {"$ref": "#/$defs/City"}}},
            "City": {"const": "Oslo"},
        },
        "definitions": {"a/b": {"type": "string"}},
    }
    before = copy.deepcopy(schema)
    address = {"type": "object", "title": "Address", "properties": {"city": {"enum": ["Oslo"]}}}
    assert google_schema(schema) == {
        "type": "object",
        "properties": {
            "home": {**address, "description": "Where"},
            "others": {"type": "array", "items": {"anyOf": [address, {"type": "null"}]}},
            "kind": {"type": "string"},
            "again": {"type": "string"},
        },
    }
    assert schema == before


def test_the_root_may_be_a_reference() -> None:
    schema = {"$ref": "#/$defs/Root", "$defs": {"Root": {"type": "object", "properties": {"a": {"type": "string"}}}}}
    assert google_schema(schema) == schema["$defs"]["Root"]


def test_a_schema_that_contains_itself_keeps_its_definitions() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "kind": {"const": "n"}}}
    schema = {"type": "object", "properties": {"list": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}
    made = google_schema(schema)
    assert made["$defs"]["Node"]["properties"] == {"next": {"$ref": "#/$defs/Node"}, "kind": {"enum": ["n"]}}
    Draft202012Validator.check_schema(made)
    validator = Draft202012Validator(made)
    assert validator.is_valid({"list": {"kind": "n", "next": {"next": {"kind": "n"}}}})
    assert not validator.is_valid({"list": {"next": {"next": {"kind": "other"}}}})
    itself = {"type": "object", "properties": {"child": {"$ref": "#"}}}
    assert google_schema(itself) == itself


def test_references_to_nowhere_stay() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/Gone"}, "b": {"$ref": "https://x/y"}},
        "$defs": {},
    }
    assert google_schema(schema) == schema


def test_references_that_would_grow_beyond_measure_stay() -> None:
    definitions: dict[str, Any] = {"T0": {"type": "string"}}
    for level in range(1, 20):
        part = {"$ref": f"#/$defs/T{level - 1}"}
        definitions[f"T{level}"] = {"type": "object", "properties": {"a": part, "b": part}}
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/T19"}}, "$defs": definitions}
    assert google_schema(schema) == schema


def test_constants_and_what_only_looks_like_them() -> None:
    schema = {
        "type": "object",
        "properties": {
            "const": {"const": "a"},
            "enum": {"enum": ["a", "b"], "const": "a"},
            "$ref": {"type": "string", "const": "a", "enum": ["a", "b"]},
            "flag": {"const": True},
            "none": {"const": None},
            "number": {"const": 1.5},
            "object": {"const": {"const": "a"}},
            "literal": {"default": {"const": "a"}, "examples": [{"$ref": "#/x"}], "enum": [{"const": "a"}]},
            "either": {"oneOf": [{"const": 1}, {"const": 2}]},
            "pair": {"prefixItems": [{"const": "a"}], "items": False},
            "map": {"additionalProperties": {"const": "a"}, "patternProperties": {"const": {"const": "b"}}},
            "not": {"not": {"const": "a"}, "if": {"const": "b"}, "then": True},
        },
        "required": ["const"],
        "additionalProperties": False,
    }
    made = google_schema(schema)["properties"]
    assert made == {
        "const": {"enum": ["a"]},
        "enum": {"enum": ["a"]},
        "$ref": {"type": "string", "enum": ["a"]},
        "flag": {"const": True},
        "none": {"const": None},
        "number": {"enum": [1.5]},
        "object": {"const": {"const": "a"}},
        "literal": {"default": {"const": "a"}, "examples": [{"$ref": "#/x"}], "enum": [{"const": "a"}]},
        "either": {"oneOf": [{"enum": [1]}, {"enum": [2]}]},
        "pair": {"prefixItems": [{"enum": ["a"]}], "items": False},
        "map": {"additionalProperties": {"enum": ["a"]}, "patternProperties": {"const": {"enum": ["b"]}}},
        "not": {"not": {"enum": ["a"]}, "if": {"enum": ["b"]}, "then": True},
    }


names = st.sampled_from(["a", "b", "const", "$ref"])
leaves = st.one_of(
    st.sampled_from([{"type": "string"}, {"type": "integer"}, {}, True, False]),
    st.sampled_from(["x", 1, True, None]).map(lambda value: {"const": value}),
    st.sampled_from(["A", "B", "C"]).map(lambda name: {"$ref": f"#/$defs/{name}"}),
)
nodes = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.dictionaries(names, inner, max_size=2).map(lambda parts: {"type": "object", "properties": parts}),
        inner.map(lambda item: {"type": "array", "items": item}),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"anyOf": parts}),
        inner.map(lambda item: {"type": "object", "additionalProperties": item}),
    ),
    max_leaves=5,
)
schemas = st.builds(
    lambda parts, definitions: {"type": "object", "properties": parts, "$defs": definitions},
    st.dictionaries(names, nodes, max_size=3),
    st.fixed_dictionaries(
        {
            "A": nodes.map(lambda node: {"type": "object", "properties": {"a": node}}),
            "B": nodes.map(lambda node: {"type": "array", "items": node}),
            "C": st.sampled_from([{"const": "x"}, {"type": "integer"}]),
        }
    ),
)
values = st.recursive(
    st.sampled_from(["x", "y", 1, 2.5, True, None]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=5,
)


@given(schemas, st.dictionaries(names, values, max_size=3))
def test_the_same_values_are_valid(schema: dict[str, Any], value: dict[str, Any]) -> None:
    made = google_schema(schema)
    assert Draft202012Validator(made).is_valid(value) == Draft202012Validator(schema).is_valid(value)
    if not references(made):
        assert "$defs" not in made or not references(schema)
