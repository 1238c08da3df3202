"""Validation of tool arguments: coerced towards the tool's JSON Schema, then checked against it.

Usual arguments of usual schemas are checked by compiled functions. jsonschema is imported for schemas that say more
than plain types, and to say what is wrong.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from .coercion import coerce
from .fit import Fit, compile_fit
from .json_values import copy_json, kind_of
from .schema import Node, prepare

if TYPE_CHECKING:
    from .check import SchemaCheck

_CACHED_VALIDATORS: Final = 512


class InvalidArguments(Exception):  # noqa: N818 - it names what the arguments are
    """Arguments that do not fit their schema.

    :param errors: place (dotted, ``root`` for the whole value) and message of every fault, in the order of the schema.
    """

    def __init__(self, errors: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{path}: {message}" for path, message in errors))
        self.errors = errors


class ArgumentsValidator:
    """Validates the arguments of one tool; made once per schema.

    A schema that is broken does not raise: it rejects the values at its place, with a message that says what is wrong
    with it. Later changes of the schema are not seen.

    :param schema: JSON Schema, draft 2020-12 with draft 7's ``items`` lists, ``additionalItems`` and ``dependencies``.
    :param decode_json: take a string that is the JSON text of an object or array for that object or array where the
        string itself would be refused.
    """

    __slots__ = ("_check", "_decode_json", "_fit", "_fits", "_root")

    def __init__(self, schema: Mapping[str, Any], *, decode_json: bool = False) -> None:
        self._root = prepare(schema)
        self._fit = compile_fit(self._root, exact=True)
        self._fits: dict[int, Fit | None] = {}
        self._check: SchemaCheck | None = None
        self._decode_json = decode_json

    def validate(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return a coerced deep copy of the arguments; the arguments themselves stay as they are.

        :raises InvalidArguments: they do not fit.
        """
        fit = self._fit
        try:
            if fit is not None and type(arguments) is dict and fit(arguments):
                # Written out, since this line is most of what a usual call costs.
                return {
                    name: copy_json(value) if type(value) in _CONTAINERS else value for name, value in arguments.items()
                }
            return self._coerced(arguments)
        except RecursionError:
            raise InvalidArguments([("root", "the arguments nest too deeply")]) from None

    def _coerced(self, arguments: Any) -> dict[str, Any]:
        if not isinstance(arguments, dict):
            raise InvalidArguments([("root", f"expected object, got {kind_of(arguments)}")])
        value = coerce(self._root, copy_json(arguments), self._accepts, decode_json=self._decode_json)
        if not self._accepts(self._root, value):
            errors = self._checked().errors(value)
            raise InvalidArguments(errors or [("root", "invalid")])
        if not isinstance(value, dict):
            raise InvalidArguments([("root", f"invalid schema: the arguments are an object, not an {kind_of(value)}")])
        return value

    def _accepts(self, node: Node, value: Any) -> bool:
        if id(node) not in self._fits:
            self._fits[id(node)] = compile_fit(node)
        fit = self._fits[id(node)]
        return self._checked().accepts(node, value) if fit is None else fit(value)

    def _checked(self) -> SchemaCheck:
        if self._check is None:
            from .check import SchemaCheck

            self._check = SchemaCheck(self._root)
        return self._check


_CONTAINERS: Final = frozenset({dict, list})
_validators: OrderedDict[int, tuple[Any, ArgumentsValidator]] = OrderedDict()


def validator_for(schema: Mapping[str, Any]) -> ArgumentsValidator:
    """Return the validator of a schema object, made on first use; the most recently used ones are kept."""
    # An entry holds its schema, so one that is found under an id is always that of this very object.
    entry = _validators.pop(id(schema), None) or (schema, ArgumentsValidator(schema))
    _validators[id(schema)] = entry
    if len(_validators) > _CACHED_VALIDATORS:
        _validators.popitem(last=False)
    return entry[1]


def format_errors(tool_name: str, errors: list[tuple[str, str]], received: Any) -> str:
    """Return the text that tells the model what is wrong with the arguments of a call.

    :param tool_name: the tool's name.
    :param errors: as in :attr:`InvalidArguments.errors`.
    :param received: the arguments before coercion.
    """
    lines = "\n".join(f"  - {path}: {message}" for path, message in errors)
    return f'Validation failed for tool "{tool_name}":\n{lines}\n\nReceived arguments:\n{_pretty(received)}'


def _pretty(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, indent=2, default=repr)
    except (ValueError, TypeError, RecursionError) as error:
        return f"(they cannot be shown as JSON: {error})"
    return text.encode(errors="backslashreplace").decode()
