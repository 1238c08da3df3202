"""The arguments of tool calls: coerced towards the tool's JSON Schema, then checked against it.

``schema`` makes any schema safe to work with, ``fit`` compiles the usual ones to functions, ``check`` asks jsonschema
about the rest, ``coercion`` converts, ``wording`` says what is wrong.
"""

from .json_values import copy_json
from .validation import ArgumentsValidator, InvalidArguments, format_errors, validator_for

__all__ = ["ArgumentsValidator", "InvalidArguments", "copy_json", "format_errors", "validator_for"]
