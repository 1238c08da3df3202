"""jsonschema for prepared schemas: its checks with our messages, order of errors and choice of a failed alternative.

Imported when the first value needs more than a compiled check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from .json_values import number_text
from .schema import BROKEN, KEYS, REJECT, Keys, Node, problem_of
from .wording import WORDINGS, blamed_branch, matching_items, union_error

if TYPE_CHECKING:
    from jsonschema import ValidationError

    from .js_regex import Pattern

_Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Iterator["ValidationError"]]


class SchemaCheck:
    """Decides about values of one schema, and says what is wrong with them."""

    __slots__ = ("_root",)

    def __init__(self, root: Node) -> None:
        validator, formats = _validator_class()
        self._root = validator(root, format_checker=formats)

    def accepts(self, node: Node, value: Any) -> bool:
        """Return whether a value is valid for a node of the schema."""
        return bool(self._root.evolve(schema=node).is_valid(value))

    def errors(self, value: Any) -> list[tuple[str, str]]:
        """Return place and message of everything that is wrong with a value, in order and without repetition."""
        found = ((".".join(map(str, error.path)) or "root", error.message) for error in self._root.iter_errors(value))
        return list(dict.fromkeys(found))


@cache
def _validator_class() -> tuple[Any, Any]:
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.validators import create

    from .formats import formats

    checker = FormatChecker(formats=())
    for name, test in formats().items():
        checker.checks(name)(_of_text(test))
    standard: dict[str, Any] = dict(Draft202012Validator.VALIDATORS)
    kept = ("properties", "dependentSchemas", "prefixItems", "items", "allOf")
    keywords: dict[str, Any] = {name: standard[name] for name in kept}
    keywords |= {name: _worded(standard[name], wording) for name, wording in WORDINGS.items()}
    keywords |= _OWN
    for name in ("enum", "const", "allOf", "anyOf", "oneOf", "not", "if", "$ref"):
        keywords[name] = _if_type_fits(keywords[name])
    created = create(meta_schema={}, validators=keywords, type_checker=Draft202012Validator.TYPE_CHECKER)
    return created, checker


def _of_text(test: Callable[[str], bool]) -> Callable[[object], bool]:
    return lambda value: test(value) if isinstance(value, str) else True


def _worded(keyword: Any, wording: Callable[[Any, Any], str]) -> _Keyword:
    def check(validator: Any, expected: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
        try:
            failed = next(iter(keyword(validator, expected, value, schema) or ()), None) is not None
        except ValueError:
            # jsonschema puts the value into its message, and an integer of more than 4300 digits has no text.
            failed = True
        if failed:
            yield _error(wording(expected, value))

    return check


def _if_type_fits(keyword: Any) -> _Keyword:
    """A value of the wrong type is reported as that and nothing else."""

    def check(validator: Any, expected: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
        types = schema.get("type", ())
        names = [types] if isinstance(types, str) else types
        if not names or any(validator.is_type(value, name) for name in names):
            yield from keyword(validator, expected, value, schema) or ()

    return check


def _error(message: str, *path: str | int) -> ValidationError:
    from jsonschema import ValidationError

    return ValidationError(message, path=path)


def _valid(validator: Any, node: Node, value: Any) -> bool:
    return next(validator.descend(value, node), None) is None


def _decide(validator: Any, node: Node, value: Any) -> tuple[bool, list[ValidationError]]:
    """Return whether a value is valid where its errors are not reported, and the error of a broken schema in there."""
    valid = True
    for error in validator.descend(value, node):
        if error.validator == BROKEN:
            return False, [error]
        valid = False
    return valid, []


def _reject(validator: Any, message: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    yield _error(message)


def _reference(validator: Any, target: Node, value: Any, schema: Any) -> Iterator[ValidationError]:
    yield from validator.descend(value, target)


def _pattern(validator: Any, pattern: Pattern, value: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(value, str):
        return
    if pattern.regex is None:
        yield _error(f"invalid schema: {problem_of(pattern)}")
    elif not pattern.regex.search(value):
        yield _error(f"expected to match {pattern.source}")


def _multiple_of(validator: Any, divisor: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    if not validator.is_type(value, "number"):
        return
    from fractions import Fraction

    try:
        # The decimal text is what the author meant: 0.0075 is a multiple of 0.0001, though not in binary.
        exact = not Fraction(_decimal(value)) % Fraction(_decimal(divisor))
    except ValueError:
        exact = False
    if not exact:
        yield _error(f"expected a multiple of {number_text(divisor)}")


def _decimal(number: Any) -> Any:
    return repr(number) if isinstance(number, float) else number


def _required(validator: Any, names: list[str], value: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, dict):
        for name in names:
            if name not in value:
                yield _error("missing", name)


def _dependent_required(
    validator: Any, dependencies: dict[str, list[str]], value: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(value, dict):
        for name, needed in dependencies.items():
            if name in value:
                for other in needed:
                    if other not in value:
                        yield _error(f"required when {name} is present", other)


def _keys(validator: Any, keys: Keys, value: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, dict):
        for name, member in value.items():
            for node in keys.schemas_for(name):
                yield from validator.descend(member, node, path=name)
            if keys.names is not None:
                valid, broken = _decide(validator, keys.names, name)
                if not valid:
                    yield _error(broken[0].message if broken else "invalid property name", name)


def _contains(validator: Any, node: Node, value: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(value, list):
        return
    least, most = schema.get("minContains", 1), schema.get("maxContains")
    count = 0
    for item in value:
        valid, broken = _decide(validator, node, item)
        if broken:
            yield from broken
            return
        count += valid
    if count < least or (most is not None and count > most):
        yield _error(matching_items(least if "minContains" in schema or count < least else 0, most))


def _not(validator: Any, node: Node, value: Any, schema: Any) -> Iterator[ValidationError]:
    valid, broken = _decide(validator, node, value)
    yield from broken
    if valid:
        yield _error("must not match the schema in not")


def _if(validator: Any, node: Node, value: Any, schema: Any) -> Iterator[ValidationError]:
    valid, broken = _decide(validator, node, value)
    yield from broken
    branch = "then" if valid else "else"
    if not broken and branch in schema:
        yield from validator.descend(value, schema[branch])


def _any_of(validator: Any, branches: list[Node], value: Any, schema: Any) -> Iterator[ValidationError]:
    yield from _failed_union(validator, branches, value)


def _one_of(validator: Any, branches: list[Node], value: Any, schema: Any) -> Iterator[ValidationError]:
    yield from _failed_union(validator, branches, value, only_one=True)


def _failed_union(
    validator: Any, branches: list[Node], value: Any, *, only_one: bool = False
) -> Iterator[ValidationError]:
    # Each branch is asked for its first error only, and the blamed one goes on from there: nested unions stay linear.
    streams = [validator.descend(value, branch) for branch in branches]
    firsts: list[ValidationError] = []
    matches = 0
    for stream in streams:
        first = next(stream, None)
        if first is not None:
            firsts.append(first)
            continue
        matches += 1
        if matches > only_one:
            break
    if matches > 1:
        yield _error("matches more than one alternative")
    if matches:
        return
    if not branches:
        yield _error("matches no alternative")
    elif (whole := union_error(branches, value)) is not None:
        yield _error(whole[1], *whole[0])
    else:
        blamed = blamed_branch(branches, value, [len(first.path) for first in firsts])
        yield firsts[blamed]
        yield from streams[blamed]


def _unevaluated_properties(validator: Any, node: Node, value: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, dict):
        seen = _evaluated(validator, {**schema, "unevaluatedProperties": None}, value)
        for name, member in value.items():
            if name not in seen:
                yield from validator.descend(member, node, path=name)


def _unevaluated_items(validator: Any, node: Node, value: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, list):
        seen = _evaluated(validator, {**schema, "unevaluatedItems": None}, value)
        for index, item in enumerate(value):
            if index not in seen:
                yield from validator.descend(item, node, path=index)


def _evaluated(validator: Any, schema: Node, value: Any) -> set[Any]:
    """Return the keys or indexes of a value that a schema says something about."""
    seen = _evaluated_here(validator, schema, value)
    applied: list[Node] = [schema["$ref"]] if "$ref" in schema else []
    for keyword in ("allOf", "anyOf", "oneOf"):
        applied += schema.get(keyword, ())
    if "if" in schema:
        holds = _valid(validator, schema["if"], value)
        applied += [schema["if"]] if holds else []
        applied += [schema[branch] for branch in ("then" if holds else "else",) if branch in schema]
    applied += [node for name, node in schema.get("dependentSchemas", {}).items() if name in value]
    for node in applied:
        if _valid(validator, node, value):
            seen |= _evaluated(validator, node, value)
    return seen


def _evaluated_here(validator: Any, schema: Node, value: Any) -> set[Any]:
    if isinstance(value, dict):
        if schema.get("unevaluatedProperties") is not None:
            return set(value)
        declared, keys = schema.get("properties", {}), schema.get(KEYS)
        return {
            name
            for name in value
            if name in declared or (keys is not None and next(keys.schemas_for(name), None) is not None)
        }
    if schema.get("items") is not None or schema.get("unevaluatedItems") is not None:
        return set(range(len(value)))
    matching = schema.get("contains")
    prefix = len(schema.get("prefixItems", ()))
    return {
        index
        for index, item in enumerate(value)
        if index < prefix or (matching is not None and _valid(validator, matching, item))
    }


_OWN: dict[str, _Keyword] = {
    REJECT: _reject,
    BROKEN: _reject,
    "$ref": _reference,
    "pattern": _pattern,
    "multipleOf": _multiple_of,
    "required": _required,
    "dependentRequired": _dependent_required,
    KEYS: _keys,
    "contains": _contains,
    "not": _not,
    "if": _if,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "unevaluatedProperties": _unevaluated_properties,
    "unevaluatedItems": _unevaluated_items,
}
