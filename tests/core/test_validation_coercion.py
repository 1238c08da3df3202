"""The rules of coercion, one table each."""

import math

import pytest

from pi_core._arguments.json_values import number_from_text, number_text, same
from pi_core._arguments.validation import ArgumentsValidator, InvalidArguments

REFUSED = "refused"


def coerced(schema, value, **options):
    """The coerced value of a required property."""
    holder = {"type": "object", "properties": {"v": schema}, "required": ["v"]}
    if isinstance(schema, dict) and "$defs" in schema:
        holder["$defs"] = schema["$defs"]
    try:
        return ArgumentsValidator(holder, **options).validate({"v": value})["v"]
    except InvalidArguments:
        return REFUSED


def check(schema, value, expected, **options):
    result = coerced(schema, value, **options)
    assert result is expected or same(result, expected)
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3.0, "3"), (-0.0, "0"), (1e21, "1e+21"), (123456789012345680000.0, "123456789012345680000"), (1e-7, "1e-7"),
        (0.000001, "0.000001"), (-1.5e300, "-1.5e+300"), (9007199254740993, "9007199254740993"), (True, "true"),
        (None, "null"), ({}, REFUSED), ([1], REFUSED), (math.inf, REFUSED),
    ],
)  # fmt: skip
def test_string(value, expected):
    check({"type": "string"}, value, expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("4.5", 4.5), ("42", 42), ("", 0), (" \u00a0\ufeff\n", 0), ("0x1F", 31), ("0b101", 5), ("0o17", 15),
        (".5", 0.5),
        ("5.", 5), ("+5", 5), ("-1e-2", -0.01), ("1e21", 1e21), ("9007199254740993", 9007199254740993), ("TRUE", 1),
        ("False", 0), ("12n", 12), ("-12n", -12), (True, 1), (None, 0), ("1_000", REFUSED), ("Infinity", REFUSED),
        ("NaN", REFUSED), ("1e999", REFUSED), ("-0x10", REFUSED), ("٣", REFUSED), ("1 2", REFUSED), ("n", REFUSED),
        ("1.5n", REFUSED), ("1xn", REFUSED), ("0x" + "f" * 300, REFUSED), ("9" * 400, REFUSED), ([1], REFUSED),
    ],
)  # fmt: skip
def test_number(value, expected):
    check({"type": "number"}, value, expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("3.7", 3), ("-3.7", -3), (3.9, 3), (-3.9, -3), (3.0, 3), ("1e3", 1000), ("1e21", 10**21), (1e21, 10**21),
        ("true", 1), (None, 0), ("12345678901234567890", 12345678901234567890), (math.nan, REFUSED),
        (math.inf, REFUSED),
    ],
)  # fmt: skip
def test_integer(value, expected):
    check({"type": "integer"}, value, expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("true", True), ("FALSE", False), ("1", True), ("0", False), (1, True), (0, False), (1.0, True), (None, False),
        (2, REFUSED), ("yes", REFUSED), ("", REFUSED), (" true", REFUSED), ([], REFUSED),
    ],
)  # fmt: skip
def test_boolean(value, expected):
    check({"type": "boolean"}, value, expected)


@pytest.mark.parametrize("value", ["", "0", 0, 0.0, False, "null", "Undefined"])
def test_null(value):
    check({"type": "null"}, value, None)


@pytest.mark.parametrize("value", [1, True, " ", "none", []])
def test_null_refuses(value):
    check({"type": "null"}, value, REFUSED)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "array"}, None, [None]),
        ({"type": "array", "items": {"type": "string"}}, None, ["null"]),
        ({"type": "array", "items": {"type": "integer"}}, ["1", 2.0, True], [1, 2, 1]),
        ({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}}, {"a": "1"},
         [{"a": 1}]),
        ({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}, "1", [[1]]),
        ({"type": "array", "items": {"type": "string"}}, '["a"]', ['["a"]']),
        ({"type": "array", "items": {"type": "integer"}}, "[1]", REFUSED),
        ({"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "boolean"}}, ["1", "true"],
         [1, True]),
        ({"type": "array", "prefixItems": [{"type": "integer"}]}, ["1", "true"], [1, "true"]),
        ({"type": "array", "prefixItems": [{}]}, "1", REFUSED),
        ({"type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "boolean"}}, ["1", 0],
         [1, False]),
        ({"items": {"type": "integer"}}, "1", [1]),
        ({"prefixItems": [{"type": "integer"}]}, "1", "1"),
    ],
    ids=str,
)  # fmt: skip
def test_array(schema, value, expected):
    check(schema, value, expected)


INTEGER, BOOLEAN, STRING = {"type": "integer"}, {"type": "boolean"}, {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "object", "properties": {"a": INTEGER}}, {"a": "1", "b": "1"}, {"a": 1, "b": "1"}),
        ({"properties": {"a": INTEGER}}, {"a": "1"}, {"a": 1}),
        ({"patternProperties": {"^n_": INTEGER}}, {"n_a": "1", "b": "1"}, {"n_a": 1, "b": "1"}),
        ({"type": "object", "properties": {"a": INTEGER}, "additionalProperties": BOOLEAN}, {"a": "1", "b": "1"},
         {"a": 1, "b": True}),
        ({"type": "object", "patternProperties": {"^a": STRING}, "additionalProperties": BOOLEAN}, {"ab": 1, "b": 1},
         {"ab": "1", "b": True}),
        ({"type": "object", "properties": {"ab": STRING}, "patternProperties": {"^a": {"minLength": 1}}}, {"ab": 1},
         {"ab": "1"}),
        ({"type": "object", "properties": {"a": {"default": 1}}}, {}, {}),
        ({"type": "object"}, '{"a": 1}', REFUSED),
        ({"type": "object"}, [], REFUSED),
        ({"type": "object"}, None, REFUSED),
    ],
    ids=str,
)  # fmt: skip
def test_object(schema, value, expected):
    check(schema, value, expected)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"properties": {"a": STRING}}, {"a": None}, {}),
        ({"properties": {"a": STRING}, "required": ["a"]}, {"a": None}, {"a": "null"}),
        ({"properties": {"a": {"type": ["string", "null"]}}}, {"a": None}, {"a": None}),
        ({"properties": {"a": {"anyOf": [STRING, {"type": "null"}]}}}, {"a": None}, {"a": None}),
        ({"properties": {"a": {"enum": ["x", None]}}}, {"a": None}, {"a": None}),
        ({"properties": {"a": {}}}, {"a": None}, {"a": None}),
        ({"properties": {"a": {"const": 1}}}, {"a": None}, {}),
        ({"properties": {"a": False}}, {"a": None}, {}),
        ({"properties": {"a": {"format": "date", "type": "string"}}}, {"a": None}, {}),
        ({"properties": {"a": {"$ref": "#/$defs/i"}}, "$defs": {"i": INTEGER}}, {"a": None}, {"a": 0}),
        ({"properties": {"a": STRING}}, {"b": None}, {"b": None}),
        ({"additionalProperties": {"type": "array", "items": {"properties": {"a": STRING}}}}, {"x": [{"a": None}]},
         {"x": [{}]}),
        ({"patternProperties": {"^x": {"properties": {"a": STRING}}}}, {"x": {"a": None}}, {"x": {}}),
        ({"properties": {"t": {"prefixItems": [{"properties": {"a": STRING}}]}}}, {"t": [{"a": None}]}, {"t": [{}]}),
    ],
    ids=str,
)  # fmt: skip
def test_optional_null(schema, value, expected):
    check(schema, value, expected)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"const": 5}, "5", 5), ({"const": 5}, "5.5", REFUSED), ({"const": "5"}, 5, "5"),
        ({"const": True}, "TRUE", True),
        ({"const": 1}, True, 1), ({"const": None}, "null", None), ({"const": [1]}, [1], [1]),
        ({"const": [1]}, "1", REFUSED),
        ({"enum": ["a", 1, True]}, "true", 1), ({"enum": ["a", True, 1]}, "true", True),
        ({"enum": ["a", 1, True]}, True, True),
        ({"enum": ["a", 1, True], "format": "none"}, True, True),
        ({"enum": [1, True, "true"], "format": "none"}, "true", "true"),
        ({"enum": [1, 2]}, 2.0, 2), ({"enum": ["1", 1]}, 1, 1), ({"enum": ["", None]}, "0", None),
        ({"type": "string", "enum": ["1"]}, 1, "1"), ({"type": "integer", "const": 1}, "1", 1),
    ],
    ids=str,
)  # fmt: skip
def test_literal(schema, value, expected):
    check(schema, value, expected)


A_INT = {"type": "object", "properties": {"a": INTEGER}, "required": ["a"]}


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
@pytest.mark.parametrize(
    ("branches", "value", "expected"),
    [
        ([INTEGER, BOOLEAN], "1", 1), ([BOOLEAN, INTEGER], "1", True), ([STRING, INTEGER], "1", "1"),
        ([INTEGER, BOOLEAN], 1.5, 1),
        ([STRING, INTEGER], 3.0, 3), ([STRING, {"type": "null"}], None, None), ([A_INT, STRING], {"a": "1"}, {"a": 1}),
        ([{"type": "array", "items": STRING}, {"type": "null"}], "x", ["x"]), ([INTEGER, A_INT], {"a": "x"}, REFUSED),
        ([{"minimum": 9, "type": "integer"}, BOOLEAN], "1", True),
    ],
    ids=str,
)  # fmt: skip
def test_union(keyword, branches, value, expected):
    check({keyword: branches}, value, expected)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"oneOf": [INTEGER, {"minimum": 2}]}, "1", "1"),
        ({"oneOf": [INTEGER, BOOLEAN], "minimum": 2}, "1", True),
        ({"allOf": [INTEGER, {"minimum": 3}]}, "4", 4),
        ({"allOf": [{"properties": {"a": INTEGER}}, {"properties": {"b": BOOLEAN}}]}, {"a": "1", "b": 1},
         {"a": 1, "b": True}),
        ({"allOf": [{"required": ["a"]}], "properties": {"a": INTEGER}}, {"a": "1"}, {"a": 1}),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": INTEGER}}, {"a": "1"}, {"a": 1}),
        ({"anyOf": [{"properties": {"k": {"const": 1}}}], "properties": {"n": INTEGER}}, {"n": "3", "k": "1"},
         {"n": 3, "k": 1}),
        ({"anyOf": [{"minItems": 1}], "items": INTEGER}, ["1"], [1]),
        ({"type": "integer", "allOf": [{"minimum": 3}]}, "4", 4),
    ],
    ids=str,
)  # fmt: skip
def test_combined(schema, value, expected):
    check(schema, value, expected)


def test_recursive_reference():
    lists = {"anyOf": [INTEGER, {"type": "array", "items": {"$ref": "#/$defs/t"}}]}
    check({"$ref": "#/$defs/t", "$defs": {"t": lists}}, [["1", [True, 2.0]], []], [[1, [1, 2]], []])


@pytest.mark.parametrize(
    ("types", "value", "expected"),
    [
        (["integer", "null"], "1", 1), (["integer", "null"], "1.5", REFUSED), (["integer", "null"], "", None),
        (["integer", "null"], "1.0", 1), (["integer", "null"], 3.0, 3), (["integer", "string"], 3.5, "3.5"),
        (["integer", "boolean"], None, 0), (["boolean", "integer"], None, False), (["boolean", "number"], 1, 1),
        (["boolean", "null"], "true", True), (["boolean", "null"], "TRUE", REFUSED), (["boolean", "null"], 1.0, True),
        (["boolean", "null"], 2, REFUSED),
        (["boolean", "string"], 0, False), (["boolean", "string"], 1, True), (["integer", "null"], "1e21", 10**21),
        (["string", "array"], None, ""), (["string", "array"], 5, "5"),
        (["string", "array"], True, "true"), (["null", "array"], 0, None), (["null", "array"], "", None),
        (["null"], False, None),
        (["number", "boolean"], "0x10", 16), (["number", "boolean"], "true", True),
        (["number", "boolean"], " ", REFUSED),
        (["array", "object"], "1", REFUSED), (["string"], 5, "5"),
    ],
)  # fmt: skip
def test_type_list(types, value, expected):
    check({"type": types}, value, expected)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": ["object", "null"], "properties": {"a": INTEGER}}, {"a": "1"}, {"a": 1}),
        ({"type": ["array", "null"], "items": INTEGER}, ["1"], [1]),
        ({"type": ["array", "null"], "items": INTEGER}, "1", REFUSED),
        ({"items": {"type": ["integer", "null"]}}, [""], REFUSED),
        ({"properties": {"a": {"type": ["integer", "null"]}}}, {"a": ""}, REFUSED),
        ({"type": ["object", "null"], "properties": {"a": {"type": ["integer", "null"]}}}, {"a": ""}, {"a": None}),
        ({"allOf": [{"type": ["integer", "null"]}]}, "1", 1),
        ({"anyOf": [{"type": ["integer", "null"]}, A_INT]}, "1", 1),
        ({"oneOf": [{"type": ["integer", "null"]}, A_INT]}, "x", REFUSED),
    ],
    ids=str,
)  # fmt: skip
def test_type_list_inside(schema, value, expected):
    check(schema, value, expected)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (A_INT, '{"a": "1"}', {"a": 1}),
        (A_INT, '{"b": 1}', REFUSED),
        (A_INT, "[]", REFUSED),
        ({"type": "array", "items": INTEGER}, '[1, "2"]', [1, 2]),
        ({"type": "array", "items": A_INT}, '[{"a": 1}]', [{"a": 1}]),
        ({"type": "array", "items": A_INT}, '{"a": 1}', [{"a": 1}]),
        ({"type": "array", "items": STRING}, '["a"]', ['["a"]']),
        ({"type": "array", "prefixItems": [INTEGER]}, "[1]", [1]),
        ({"type": "array", "items": INTEGER}, "[1", REFUSED),
        ({"type": "array", "items": INTEGER}, "[" * 100_000, REFUSED),
        (STRING, "[1]", "[1]"),
    ],
    ids=lambda value: str(value)[:80],
)
def test_json_text_is_decoded_where_asked_for(schema, value, expected):
    check(schema, value, expected, decode_json=True)


def test_json_tells_true_from_one():
    assert same([{"a": [1]}], [{"a": [1.0]}])
    for left, right in (
        (True, 1),
        ({"a": True}, {"a": 1}),
        ([False], [0]),
        ({"a": 1}, {"b": 1}),
        ([1], [1, 1]),
        ({}, []),
    ):
        assert not same(left, right)
        assert not same(right, left)


def test_number_text_and_back():
    for text in ("0", "1", "-1.5", "1e+21", "1.2345678901234566e+25", "5e-324", "0.00001", "1e-7", "123456.789"):
        assert number_text(float(text)) == text
        assert number_from_text(text) == float(text)


def test_long_texts_are_read_in_linear_time():
    for text in ("1" * 200_000 + "x", " " * 200_000 + "x", "0x" + "f" * 200_000 + "g", "1." + "0" * 200_000 + "x"):
        assert number_from_text(text) is None
