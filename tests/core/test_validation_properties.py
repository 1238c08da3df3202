"""What holds for every schema and every value: jsonschema itself is the judge."""

import copy
import json
import math

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pi_core._arguments.check import SchemaCheck
from pi_core._arguments.coercion import coerce
from pi_core._arguments.fit import compile_fit
from pi_core._arguments.json_values import number_from_text, number_text, same
from pi_core._arguments.schema import prepare
from pi_core._arguments.validation import ArgumentsValidator, InvalidArguments, format_errors

TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
NAMES = st.sampled_from(["a", "b", "c", "true"])

finite = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([1.0, 0.0, -0.0, 2.5, 1e21, 1e300, 2**53 + 1, -(10**30), 10**400]),
    st.sampled_from(["", "a", "1", "1.5", "true", "null", "😀", "[1]", '{"a": 1}', " "]),
)
scalars = finite | st.sampled_from([math.nan, math.inf, -math.inf]) | st.floats() | st.integers() | st.text(max_size=3)


def containers(items):
    return st.lists(items, max_size=3) | st.dictionaries(NAMES, items, max_size=3)


values = st.recursive(scalars, containers, max_leaves=6)
json_values = st.recursive(finite, containers, max_leaves=6)
objects = st.dictionaries(NAMES, values, max_size=4)

types = st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True)
limits = st.integers(-2, 2) | st.sampled_from([0.5, 1.0, 1e20])
plain = st.one_of(
    st.fixed_dictionaries({"type": types}),
    st.fixed_dictionaries({"enum": st.lists(scalars, min_size=1, max_size=4)}, optional={"type": types}),
    st.fixed_dictionaries({"const": scalars}),
    st.fixed_dictionaries(
        {}, optional={"type": types, "minimum": limits, "exclusiveMaximum": limits, "maximum": limits}
    ),
    st.fixed_dictionaries({}, optional={"type": types, "minLength": st.integers(0, 2), "maxLength": st.integers(0, 2)}),
)


def objects_of(schemas):
    return st.fixed_dictionaries(
        {"properties": st.dictionaries(NAMES, schemas, max_size=3)},
        optional={
            "type": st.sampled_from(["object", ["object", "null"]]),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": st.booleans() | schemas,
        },
    )


def arrays_of(schemas):
    counts = {"minItems": st.integers(0, 2), "maxItems": st.integers(0, 2)}
    return st.fixed_dictionaries({"items": schemas | st.booleans()}, optional={"type": types, **counts})


flat_schemas = objects_of(plain)
fit_schemas = objects_of(
    st.recursive(
        plain,
        lambda inner: st.one_of(
            objects_of(inner),
            arrays_of(inner),
            st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        ),
        max_leaves=5,
    )
)


def combined(inner):
    lists = st.lists(inner, min_size=1, max_size=3)
    counts = st.integers(0, 2)
    return st.one_of(
        objects_of(inner),
        arrays_of(inner),
        st.fixed_dictionaries({"prefixItems": lists}, optional={"items": inner, "unevaluatedItems": inner}),
        st.fixed_dictionaries({"contains": inner}, optional={"maxContains": counts, "minContains": counts}),
        st.fixed_dictionaries(
            {}, optional={"anyOf": lists, "oneOf": lists, "allOf": lists, "not": inner, "unevaluatedProperties": inner}
        ),
        st.fixed_dictionaries({"if": inner, "then": inner, "else": inner}),
        st.fixed_dictionaries({"patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=2)})
        | st.fixed_dictionaries({"propertyNames": inner, "uniqueItems": st.booleans(), "maxProperties": counts}),
        st.fixed_dictionaries({"dependentSchemas": st.dictionaries(NAMES, inner, max_size=2)}),
        st.fixed_dictionaries({"dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=2), max_size=2)}),
    )  # fmt: skip


any_schemas = st.recursive(plain, combined, max_leaves=8)


def judge(schema, value):
    return Draft202012Validator(schema).is_valid(value)


@settings(max_examples=400, deadline=None)
@given(flat_schemas, objects)
def test_compiled_check_jsonschema_and_ours_agree_on_flat_schemas(schema, value):
    agree(schema, value)


@settings(max_examples=400, deadline=None)
@given(fit_schemas, objects)
def test_compiled_check_jsonschema_and_ours_agree_on_nested_schemas(schema, value):
    agree(schema, value)


def agree(schema, value):
    root = prepare(schema)
    expected = judge(schema, value)
    check = SchemaCheck(root)
    assert check.accepts(root, value) is expected
    assert (check.errors(value) == []) is expected
    fit, exact = compile_fit(root), compile_fit(root, exact=True)
    assert (fit is None) is (exact is None)
    if fit is not None and exact is not None:
        assert fit(value) is expected
        if exact(value):
            assert expected
            # The short cut of `validate` leaves out coercion, which therefore must have nothing to do.
            assert coerce(root, value, check.accepts) is value


@settings(max_examples=400, deadline=None)
@given(any_schemas, json_values)
def test_our_keywords_decide_as_those_of_jsonschema(schema, value):
    root = prepare(schema)
    expected = judge(schema, value)
    check = SchemaCheck(root)
    assert check.accepts(root, value) is expected
    assert (check.errors(value) == []) is expected


@settings(max_examples=400, deadline=None)
@given(any_schemas.map(lambda schema: {"properties": {"a": schema}}), st.fixed_dictionaries({"a": json_values}))
def test_coerced_arguments_are_valid_and_stay_as_they_are(schema, arguments):
    before = copy.deepcopy(arguments)
    validator = ArgumentsValidator(schema)
    try:
        result = validator.validate(arguments)
    except InvalidArguments:
        assert not judge(schema, coerce(prepare(schema), before, SchemaCheck(prepare(schema)).accepts))
    else:
        assert judge(schema, result)
        assert same(validator.validate(result), result)
    assert repr(arguments) == repr(before)


KEYWORDS = """
    type enum const properties required items prefixItems anyOf oneOf allOf not if then $ref $defs $id $anchor
    $dynamicRef pattern format minimum multipleOf minLength patternProperties additionalProperties propertyNames
    dependencies dependentSchemas contains additionalItems unevaluatedProperties unevaluatedItems exclusiveMinimum
    uniqueItems minContains
"""
keywords = st.sampled_from(KEYWORDS.split())
rubbish = st.recursive(
    finite
    | st.sampled_from(["string", "object", "#", "#/$defs/a", "#/properties/a", "#a", "a.json", "^a", "(", "date"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keywords | NAMES, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=400, deadline=None)
@given(rubbish | st.dictionaries(keywords, rubbish, max_size=5), objects)
def test_no_schema_makes_validation_crash(schema, arguments):
    errors = [("root", "valid")]
    try:
        ArgumentsValidator(schema).validate(arguments)
    except InvalidArguments as error:
        errors = error.errors
    assert errors
    assert format_errors("t", errors, arguments).startswith('Validation failed for tool "t":\n  - ')


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_number_text_is_read_back(number):
    text = number_text(number)
    back = number_from_text(text)
    assert back is not None
    assert float(back) == number


@given(st.integers())
def test_integer_text_keeps_every_digit(number):
    assert number_from_text(number_text(number)) == number


@given(json_values)
def test_equality_is_that_of_json(value):
    text = json.loads(json.dumps(value))
    assert same(value, text)
    assert not same([value], value)
    assert not same(True, 1)
    assert same(1.0, 1)
