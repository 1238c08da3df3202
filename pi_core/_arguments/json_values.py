"""JSON values seen the way JavaScript sees them: kinds, equality, and the texts of numbers."""

from __future__ import annotations

import math
from typing import Any, Final

_KINDS: Final[dict[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    str: "string",
    list: "array",
    dict: "object",
}
BLANKS: Final = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))
_DECIMAL_CHARACTERS: Final = frozenset("0123456789+-.eE")


def kind_of(value: Any) -> str:
    """Return the JSON type of a value as an error message names it; an integral float is an integer."""
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    kind = _KINDS.get(type(value))
    if kind is not None:
        return kind
    return next((name for base, name in _KINDS.items() if isinstance(value, base)), type(value).__name__)


def is_number(value: Any) -> bool:
    """Return whether a value is a JSON number; ``True`` and ``False`` are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def same(left: Any, right: Any) -> bool:
    """Return whether two values are equal as JSON: 1 equals 1.0, but not ``True``."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(same(value, right[key]) for key, value in left.items())
        )
    return bool(left == right)


def copy_json(value: Any) -> Any:
    """Return a deep copy of the objects and arrays of a JSON value."""
    if isinstance(value, dict):
        return {key: copy_json(item) if isinstance(item, (dict, list)) else item for key, item in value.items()}
    if isinstance(value, list):
        return [copy_json(item) if isinstance(item, (dict, list)) else item for item in value]
    return value


def number_text(value: float) -> str:
    """Return the text JavaScript gives a finite number: ``3.0`` is ``3`` and ``1e21`` is ``1e+21``.

    A Python integer keeps all its digits, where JavaScript would round it.
    """
    if isinstance(value, int):
        return str(value)
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    written = whole + fraction
    digits = written.lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(written) - len(digits))
    digits = digits.rstrip("0")
    if not digits:
        return "0"
    sign = "-" if value < 0 else ""
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{point - 1:+d}"


def number_from_text(text: str) -> int | float | None:
    """Return what JavaScript's ``Number(text)`` gives, or ``None`` where that is not a finite number.

    A blank text is 0. Whole numbers come back as ``int``; plain digits keep all of them.
    """
    text = text.strip(BLANKS)
    if not text:
        return 0
    try:
        if text[:2].lower() in ("0x", "0o", "0b"):
            exact = int(text, 0) if "_" not in text else None
            return exact if exact is not None and exact.bit_length() <= 1024 else None
        # Python reads underscores, other scripts' digits and names such as "nan" as well.
        if not _DECIMAL_CHARACTERS.issuperset(text):
            return None
        number = float(text)
        if not math.isfinite(number):
            return None
        if text.lstrip("+-").isdecimal():
            return int(text)
    except ValueError:
        return None
    return int(number) if number.is_integer() and abs(number) < 1e21 else number
