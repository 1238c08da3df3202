"""Validation of tool arguments: recorded cases, the messages and their order, the fast path and the cache."""

import copy
import gc
import json
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType

import pytest

from pi_core._arguments import validation
from pi_core._arguments.json_values import same
from pi_core._arguments.validation import ArgumentsValidator, InvalidArguments, format_errors, validator_for

CASES = json.loads(Path(__file__).with_name("data").joinpath("validation.json").read_text(encoding="utf-8"))


def outcome(schema, arguments, **options):
    """The coerced arguments, or the errors."""
    try:
        return ArgumentsValidator(schema, **options).validate(arguments)
    except InvalidArguments as error:
        return error.errors


def at_v(schema, value):
    """The coerced value of a required property, or the errors."""
    result = outcome({"type": "object", "properties": {"v": schema}, "required": ["v"]}, {"v": value})
    return result["v"] if isinstance(result, dict) else result


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_recorded_case(case):
    received = copy.deepcopy(case["arguments"])
    result = outcome(case["schema"], received)
    if case["ok"]:
        assert same(result, case["value"])
    else:
        assert isinstance(result, list)
        if "paths" in case:
            assert sorted({path for path, _ in result}) == case["paths"]
    assert received == case["arguments"]


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"type": "integer"}, "x", "expected integer, got string"),
        ({"type": ["integer", "null"]}, 1.5, "expected integer or null, got number"),
        ({"type": "string"}, [], "expected string, got array"),
        ({"type": "array", "prefixItems": []}, None, "expected array, got null"),
        ({"type": "number"}, {}, "expected number, got object"),
        ({"type": ["object", "array"]}, True, "expected object or array, got boolean"),
        ({"type": ["object"]}, 3.0, "expected object, got integer"),
        ({"enum": ["a", 2, None]}, "b", 'expected one of ["a",2,null]'),
        ({"enum": list(range(22))}, -1, f"expected one of [{','.join(map(str, range(20)))}, ... and 2 more]"),
        ({"enum": ["é"]}, "e", 'expected one of ["é"]'),
        ({"const": {"a": [1]}}, 1, 'expected {"a":[1]}'),
        ({"minLength": 2}, "😀", "expected at least 2 characters"),
        ({"maxLength": 1}, "ab", "expected at most 1 characters"),
        ({"pattern": "^a$"}, "a\n", "expected to match ^a$"),
        ({"format": "date"}, "2026-02-30", "expected format date"),
        ({"minimum": 3.0}, 2, "expected >= 3"),
        ({"maximum": 1e21}, 1e22, "expected <= 1e+21"),
        ({"exclusiveMinimum": 3}, 3, "expected > 3"),
        ({"exclusiveMaximum": 3}, 3, "expected < 3"),
        ({"multipleOf": 0.01}, 0.015, "expected a multiple of 0.01"),
        ({"multipleOf": 2}, float("inf"), "expected a multiple of 2"),
        ({"minItems": 1}, [], "expected at least 1 items"),
        ({"maxItems": 1}, [1, 2], "expected at most 1 items"),
        ({"uniqueItems": True}, [1, 1.0], "expected unique items"),
        ({"contains": {"const": 1}}, [2], "expected at least 1 matching item"),
        ({"contains": {"const": 1}, "minContains": 2}, [1], "expected at least 2 matching items"),
        ({"contains": {"const": 1}, "maxContains": 1}, [1, 1], "expected at most 1 matching item"),
        (
            {"contains": {"const": 1}, "minContains": 1, "maxContains": 2},
            [1, 1, 1],
            "expected between 1 and 2 matching items",
        ),
        ({"minProperties": 1}, {}, "expected at least 1 properties"),
        ({"maxProperties": 0}, {"a": 1}, "expected at most 0 properties"),
        ({"oneOf": [{"minimum": 1}, {"minimum": 2}]}, 3, "matches more than one alternative"),
        ({"anyOf": []}, 3, "matches no alternative"),
        ({"not": {"type": "string"}}, "a", "must not match the schema in not"),
        (False, 1, "no value is allowed here"),
        ({"$ref": "#/$defs/gone"}, 1, "unresolved reference #/$defs/gone"),
    ],
    ids=str,
)
def test_message_at_the_value(schema, value, message):
    assert at_v(schema, value) == [("v", message)]


@pytest.mark.parametrize(
    ("schema", "value", "errors"),
    [
        ({"required": ["a"]}, {}, [("v.a", "missing")]),
        ({"additionalProperties": False}, {"b": 1}, [("v.b", "unknown field")]),
        (
            {"patternProperties": {"^a": {}}, "additionalProperties": False},
            {"b": 1, "ab": 2},
            [("v.b", "unknown field")],
        ),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, [("v.ab", "invalid property name")]),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, [("v.b", "required when a is present")]),
        ({"dependencies": {"a": ["b"]}}, {"a": 1}, [("v.b", "required when a is present")]),
        ({"dependencies": {"a": {"required": ["c"]}}}, {"a": 1}, [("v.c", "missing")]),
        ({"dependentSchemas": {"a": {"required": ["c"]}}}, {"a": 1}, [("v.c", "missing")]),
        ({"prefixItems": [{}], "items": False}, [1, 2], [("v.1", "unexpected item")]),
        (
            {"items": [{}], "additionalItems": False},
            [1, 2, 3],
            [("v.1", "unexpected item"), ("v.2", "unexpected item")],
        ),
        ({"items": [{}], "additionalItems": {"type": "object"}}, [1, 2], [("v.1", "expected object, got integer")]),
        ({"allOf": [{"prefixItems": [{}]}], "unevaluatedItems": False}, [1, 2], [("v.1", "unexpected item")]),
        ({"contains": {"const": 1}, "unevaluatedItems": False}, [1, 2], [("v.1", "unexpected item")]),
        ({"if": {}, "then": {"prefixItems": [{}]}, "unevaluatedItems": False}, [1, 2], [("v.1", "unexpected item")]),
        ({"if": False, "else": {"prefixItems": [{}]}, "unevaluatedItems": False}, [1, 2], [("v.1", "unexpected item")]),
        (
            {"if": {"properties": {"a": {}}}, "unevaluatedProperties": False},
            {"a": 1, "b": 2},
            [("v.b", "unknown field")],
        ),
        (
            {"dependentSchemas": {"a": {"properties": {"a": {}}}, "z": {"properties": {"b": {}}}}}
            | {"unevaluatedProperties": False},
            {"a": 1, "b": 2},
            [("v.b", "unknown field")],
        ),
        ({"allOf": [{"unevaluatedItems": {}}], "unevaluatedItems": {"type": "object"}}, [1], []),
        ({"allOf": [{"unevaluatedProperties": {}}], "unevaluatedProperties": False}, {"a": 1}, []),
        ({"multipleOf": 2, "properties": {"a": {"pattern": "x", "multipleOf": 2}}}, {"a": 4, "b": 1}, []),
        (
            {"properties": {"a": {}}, "anyOf": [{"required": ["b"], "properties": {"b": {}}}, {}]}
            | {"unevaluatedProperties": False},
            {"a": 1, "b": 2, "c": 3},
            [("v.c", "unknown field")],
        ),
        ({"if": {"required": ["a"]}, "then": {"required": ["b"]}}, {"a": 1}, [("v.b", "missing")]),
        ({"if": {"required": ["a"]}, "else": {"required": ["b"]}}, {"c": 1}, [("v.b", "missing")]),
        ({"items": {"properties": {"a": False}}}, [{"a": 1}], [("v.0.a", "no value is allowed here")]),
    ],
    ids=str,
)
def test_message_at_a_place(schema, value, errors):
    assert at_v(schema, value) == (errors or value)


def test_bounds_include_themselves():
    for schema in ({"minimum": 3, "maximum": 3}, {"exclusiveMinimum": 2, "exclusiveMaximum": 4}, {"multipleOf": 3}):
        assert at_v(schema, 3) == 3
    assert at_v({"minLength": 1, "maxLength": 1}, "😀") == "😀"
    assert at_v({"minItems": 1, "maxItems": 1}, [0]) == [0]
    assert at_v({"minProperties": 1, "maxProperties": 1}, {"a": 0}) == {"a": 0}


def test_errors_come_in_the_order_of_the_schema():
    schema = {
        "additionalProperties": False,
        "properties": {"b": {"type": "integer"}, "a": {"minLength": 3, "pattern": "^x", "enum": ["xyz"]}},
        "required": ["z", "y", "b"],
        "minProperties": 9,
        "dependentRequired": {"a": ["q"]},
        "not": {},
        "allOf": [{"required": ["w"]}],
    }
    assert outcome(schema, {"new": 1, "a": "no", "b": {}}) == [
        ("z", "missing"),
        ("y", "missing"),
        ("b", "expected integer, got object"),
        ("a", 'expected one of ["xyz"]'),
        ("a", "expected at least 3 characters"),
        ("a", "expected to match ^x"),
        ("new", "unknown field"),
        ("root", "expected at least 9 properties"),
        ("q", "required when a is present"),
        ("w", "missing"),
        ("root", "must not match the schema in not"),
    ]


def test_each_key_reports_its_value_before_its_name():
    schema = {"patternProperties": {"^a": {"type": "object"}}, "propertyNames": {"pattern": "^b"}}
    assert outcome(schema, {"a1": 1, "a2": 2}) == [
        ("a1", "expected object, got integer"),
        ("a1", "invalid property name"),
        ("a2", "expected object, got integer"),
        ("a2", "invalid property name"),
    ]


def test_a_wrong_type_is_the_only_error_at_its_value():
    schema = {"type": "string", "enum": ["a"], "anyOf": [{"const": "a"}], "not": {}, "$ref": "#/$defs/gone"}
    assert at_v(schema, []) == [("v", "expected string, got array")]


def test_the_same_error_is_said_once():
    assert at_v({"allOf": [{"type": "integer"}, {"type": "integer"}]}, "x") == [("v", "expected integer, got string")]


def branch(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


TEXT = branch(kind={"const": "text"}, text={"type": "string"})
IMAGE = branch(kind={"const": "image"}, width={"type": "integer", "minimum": 0})


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
@pytest.mark.parametrize(
    ("branches", "value", "errors"),
    [
        ([TEXT, IMAGE], {"kind": "image", "width": -1, "text": "t"}, [("v.width", "expected >= 0")]),
        ([TEXT, IMAGE], {"kind": "video"}, [("v.kind", 'expected one of ["text","image"]')]),
        ([TEXT, IMAGE], {}, [("v.kind", 'expected one of ["text","image"]')]),
        ([TEXT, IMAGE], 3, [("v", "expected object, got integer")]),
        ([{"const": "r"}, {"const": "g"}], "b", [("v", 'expected one of ["r","g"]')]),
        ([{"const": "r"}, {"enum": ["g", "h"]}], "b", [("v", 'expected one of ["r","g","h"]')]),
        ([{"type": "integer"}, {"type": ["boolean", "null"]}], "b",
         [("v", "expected integer or boolean or null, got string")]),
        ([{"type": "null"}, branch(a={}, b={}), branch(c={})], {"b": 1, "x": 1}, [("v.a", "missing")]),
        ([{"type": "null"}, {"items": {"type": "integer"}, "type": "array"}], [1, "x"],
         [("v.1", "expected integer, got string")]),
        ([{"minimum": 5}, {"minimum": 7}], 3, [("v", "expected >= 5")]),
    ],
    ids=str,
)  # fmt: skip
def test_failed_union_reports_the_alternative_that_was_meant(keyword, branches, value, errors):
    assert at_v({keyword: branches}, value) == errors


def test_failed_union_follows_references():
    schema = {
        "properties": {"v": {"anyOf": [{"$ref": "#/$defs/text"}, {"$ref": "#/$defs/image"}]}},
        "$defs": {"text": TEXT, "image": IMAGE},
    }
    assert outcome(schema, {"v": {"kind": "text"}}) == [("v.text", "missing")]
    assert outcome(schema, {"v": {"kind": "pdf"}}) == [("v.kind", 'expected one of ["text","image"]')]


def test_nested_unions_stay_cheap():
    kinds = ("and", "or", "xor", "nor")
    expression = {"anyOf": [branch(op={"const": kind}, args={"items": {"$ref": "#/$defs/e"}}) for kind in kinds]}
    schema = {"properties": {"v": {"$ref": "#/$defs/e"}}, "$defs": {"e": expression}}
    value = {"op": "and", "args": [7]}
    for depth in range(24):
        value = {"args": [value], "op": kinds[depth % 4]}
    # Four branches at 24 levels: only a linear walk ends.
    ((path, message),) = outcome(schema, {"v": value})
    assert path == "v" + ".args.0" * 25
    assert message == "expected object, got integer"


def test_json_text_for_a_container_is_explained():
    hint = " (it is the JSON text of an {0}: pass the {0} itself)"
    assert at_v({"type": "object"}, '{"a": 1}') == [("v", "expected object, got string" + hint.format("object"))]
    assert at_v({"type": "array", "items": {"type": "integer"}}, "[1]") == [
        ("v.0", "expected integer, got string" + hint.format("array"))
    ]
    assert at_v({"type": "object"}, "{a: 1}") == [("v", "expected object, got string")]


def test_arguments_that_are_no_object():
    kinds = {
        "array": [1],
        "string": "x",
        "null": None,
        "number": 1.5,
        "tuple": (),
        "mappingproxy": MappingProxyType({}),
    }
    for kind, arguments in kinds.items():
        assert outcome({}, arguments) == [("root", f"expected object, got {kind}")]


def test_invalid_arguments_say_everything():
    with pytest.raises(InvalidArguments, match=r"^a: missing; b: missing$"):
        ArgumentsValidator({"required": ["a", "b"]}).validate({})


def test_format_errors():
    errors = [("a.b", "missing"), ("root", "expected at least 1 properties")]
    received = {"é": ["\ud83d", "😀"], "e": {}, "l": []}
    assert format_errors("t", errors, received) == (
        'Validation failed for tool "t":\n  - a.b: missing\n  - root: expected at least 1 properties\n\n'
        'Received arguments:\n{\n  "é": [\n    "\\ud83d",\n    "😀"\n  ],\n  "e": {},\n  "l": []\n}'
    )
    format_errors("t", errors, received).encode()


def test_format_errors_survives_what_json_cannot_say():
    endless = []
    endless.append(endless)
    for received, part in ((endless, "cannot be shown"), ({"n": 10**5000}, "cannot be shown"), ({"o": {1}}, "{1}")):
        assert part in format_errors("t", [], received)


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"properties": {"x": {"type": "integer"}}}, {"x": 1, "more": [{"a": []}]}),
        ({"properties": {"x": {"pattern": "a"}}}, {"x": "a", "more": [{"a": []}]}),
        ({"properties": {"x": {"type": "integer"}}}, {"x": "1", "more": [{"a": []}]}),
    ],
    ids=["fast", "jsonschema", "coerced"],
)
def test_result_shares_nothing_with_the_arguments(schema, arguments):
    before = copy.deepcopy(arguments)
    result = ArgumentsValidator(schema).validate(arguments)
    result["more"][0]["a"].append(1)
    result["more"].append(2)
    assert arguments == before


def test_deep_values_are_refused_not_raised():
    value = {"type": "leaf"}
    for _ in range(2000):
        value = {"kids": [value]}
    schema = {"$ref": "#/$defs/t", "$defs": {"t": {"properties": {"kids": {"items": {"$ref": "#/$defs/t"}}}}}}
    for tree in (schema, {**schema, "minProperties": 1}, {}):
        assert outcome(tree, value) == [("root", "the arguments nest too deeply")]


def test_numbers_without_text_are_refused_not_raised():
    huge = 10**5000
    assert at_v({"type": "integer"}, huge) == huge
    assert at_v({"type": "string"}, huge) == [("v", "expected string, got integer")]
    assert at_v({"type": "string"}, float("nan")) == [("v", "expected string, got number")]
    assert at_v({"multipleOf": 0.5}, huge) == huge


FLAT_SCHEMAS_DO_NOT_NEED_JSONSCHEMA = """
import sys
from pi_core._arguments.validation import validator_for
properties = {
    "x": {"type": "integer"},
    "e": {"enum": ["a", "b"]},
    "l": {"type": "array", "items": {"type": "string", "minLength": 1}},
    "o": {"anyOf": [{"$ref": "#/$defs/p"}, {"type": "null"}]},
}
schema = {"type": "object", "properties": properties, "required": ["x"], "additionalProperties": False}
validator = validator_for({**schema, "$defs": {"p": {"properties": {"n": {"type": "number"}}}}})
fitting = {"x": 1, "e": "a", "l": ["s"], "o": {"n": 1.5}}
assert validator.validate(fitting) == fitting
assert validator.validate({"x": "1", "l": "s", "o": {"n": "2"}, "e": None}) == {"x": 1, "l": ["s"], "o": {"n": 2}}
assert "jsonschema" not in sys.modules, "jsonschema was imported"
"""


def test_flat_schemas_do_not_need_jsonschema():
    subprocess.run([sys.executable, "-c", FLAT_SCHEMAS_DO_NOT_NEED_JSONSCHEMA], check=True)


def test_schema_may_be_any_mapping():
    schema = MappingProxyType({"properties": MappingProxyType({"a": MappingProxyType({"type": "integer"})})})
    assert ArgumentsValidator(schema).validate({"a": "1"}) == {"a": 1}


def test_validator_is_made_once_per_schema_object():
    schema = {"properties": {"a": {"type": "integer"}}}
    assert validator_for(schema) is validator_for(schema)
    assert validator_for(copy.deepcopy(schema)) is not validator_for(schema)


def test_validators_of_schemas_that_come_and_go(monkeypatch):
    monkeypatch.setattr(validation, "_CACHED_VALIDATORS", 3)
    validation._validators.clear()
    kept = {"properties": {"a": {"const": "kept"}}}
    first = validator_for(kept)
    places = set()
    for number in range(200):
        schema = {"properties": {"a": {"const": number}}}
        places.add(id(schema))
        assert validator_for(schema).validate({"a": str(number)}) == {"a": number}
        assert validator_for(kept) is first
        assert len(validation._validators) <= 3
        del schema
        gc.collect(0)
    assert len(validation._validators) == 3
    assert len(places) < 200, "no two schemas had the same id, so nothing was tested"
