"""Classes of characters, written for ripgrep and for Python: neither takes all that the other does."""

from __future__ import annotations

from collections.abc import Sequence

Ranges = Sequence[tuple[int, int]]
"""Characters by their numbers, first and last of each range."""

LAST = 0x10FFFF
"""The highest number of a character."""

_IN_NO_LINE = ((0, 0), (0x0A, 0x0A), (0x0D, 0x0D), (0xD800, 0xDFFF))
_SPACE = ((0x09, 0x09), (0x0B, 0x0C), (0x20, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A),
          (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000))  # fmt: skip
_NEVER = r"\n\r\ud800-\udfff"


def escape(character: str) -> str:
    """Return a character as it stands for itself in both programs, in a class too."""
    return character if character.isalnum() or ord(character) > 0x7F else f"\\x{ord(character):02x}"


def stands_in_lines(code: int) -> bool:
    """Say whether a line of text can hold the character of this number."""
    return code <= LAST and not any(low <= code <= high for low, high in _IN_NO_LINE)


def complement(ranges: Ranges) -> list[tuple[int, int]]:
    """Return all characters that are not in the ranges."""
    result, begin = [], 0
    for low, high in sorted(ranges):
        if begin < low:
            result.append((begin, low - 1))
        begin = max(begin, high + 1)
    return [*result, (begin, LAST)] if begin <= LAST else result


def written(ranges: Ranges, letters: Sequence[str], *, negated: bool) -> tuple[str, str] | None:
    r"""Return a class for ripgrep and for Python, ``None`` when no character of a line can be in it.

    The end of a line and bytes that are no UTF-8 are in no class.

    :param letters: classes that a letter stands for, such as ``\d`` or ``\W``.
    """
    ranges = _in_lines(ranges)
    if not ranges and not letters and not negated:
        return None
    body = _body(ranges)
    whole = body + "".join(letters)
    return f"[{'^' if negated else ''}{whole}]" if whole else ".", _in_python(body, letters, negated)


def _in_python(body: str, letters: Sequence[str], negated: bool) -> str:
    """Return a class for :mod:`re`, which has no class in a class and another idea of white space."""
    inside = body + "".join(_IN_PYTHON.get(letter, letter) for letter in letters if letter.islower())
    opposites = [f"[^{_IN_PYTHON.get(letter, letter.lower())}{_NEVER}]" for letter in letters if letter.isupper()]
    if not negated:
        parts = [f"[{inside}]"] * bool(inside) + opposites
        return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"
    others = f"[^{inside}{_NEVER}]"
    return f"(?:(?!{'|'.join(opposites)}){others})" if opposites else others


def _in_lines(ranges: Ranges) -> list[tuple[int, int]]:
    """Return the ranges without what stands in no line of text."""
    possible = complement(_IN_NO_LINE)
    cut = [(max(low, first), min(high, last)) for low, high in ranges for first, last in possible]
    return [(low, high) for low, high in cut if low <= high]


def _body(ranges: Ranges) -> str:
    return "".join(escape(chr(low)) + (f"-{escape(chr(high))}" if high > low else "") for low, high in ranges)


_IN_PYTHON = dict.fromkeys((r"\s", r"\S"), _body(_SPACE))
