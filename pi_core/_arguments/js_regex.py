r"""JavaScript regular expressions for Python's ``re``, as far as it can.

JSON Schema means JavaScript's syntax: ``$`` matches only at the end, ``\d`` and ``\w`` are ASCII, a named group is
``(?<name>...)``. Python's own forms (``(?P<name>...)``, ``\A``, ``\Z``, a leading ``(?i)``) stay usable.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from .json_values import BLANKS

_QUANTIFIER: Final = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")
_LEADING_FLAGS: Final = re.compile(r"\(\?([is]+)\)")
_GROUP_NAME: Final = re.compile(r"\(\?<(?=[^=!])")
_BACK_REFERENCE: Final = re.compile(r"\\k<([^>]+)>")
_PROPERTY: Final = re.compile(r"\\([pP])\{([^}]*)\}")
_CODE_POINT: Final = re.compile(
    r"\\u\{([0-9a-fA-F]{1,6})\}|\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
    r"|\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})"
)
_CONTROL: Final = re.compile(r"\\c([A-Za-z])")
_BLANK_SET: Final = "".join(map(re.escape, BLANKS))
_SETS: Final = frozenset("dDwWsSpP")
_CATEGORY: Final = re.compile("C[cfnos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?")
_LONG_NAMES: Final = {
    "Letter": "L",
    "Lowercase_Letter": "Ll",
    "Uppercase_Letter": "Lu",
    "Mark": "M",
    "Number": "N",
    "Decimal_Number": "Nd",
    "digit": "Nd",
    "Punctuation": "P",
    "punct": "P",
    "Symbol": "S",
    "Separator": "Z",
    "Space_Separator": "Zs",
}


class _UnsupportedError(Exception):
    """JavaScript may accept the pattern, Python cannot."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern of a schema.

    :param source: as the schema writes it.
    :param regex: its translation, to be searched for; ``None`` if there is none.
    :param problem: why there is none.
    :param unsupported: the pattern may be right, but Python's ``re`` cannot express it.
    """

    source: str
    regex: re.Pattern[str] | None
    problem: str = ""
    unsupported: bool = False


@lru_cache(maxsize=512)
def compile_pattern(source: str) -> Pattern:
    """Return the pattern ready for use, or with the reason why it cannot be used."""
    try:
        return Pattern(source, re.compile(_translate(source)))
    except _UnsupportedError as error:
        return Pattern(source, None, str(error), unsupported=True)
    except (re.error, OverflowError, RecursionError) as error:
        return Pattern(source, None, str(error), unsupported="look-behind" in str(error))


def _translate(source: str) -> str:
    leading = _LEADING_FLAGS.match(source)
    flags = leading[1] if leading else ""
    dot = "." if "s" in flags else r"[^\n\r\u2028\u2029]"
    at = leading.end() if leading else 0
    out: list[str] = []
    while at < len(source):
        char = source[at]
        if char == "\\":
            text, at, _ = _escape(source, at, in_class=False)
        elif char == "[":
            text, at = _class(source, at)
        elif char == "$":
            text, at = r"\Z", at + 1
        elif char == ".":
            text, at = dot, at + 1
        elif char == "{":
            quantifier = _QUANTIFIER.match(source, at)
            text, at = (quantifier[0], quantifier.end()) if quantifier else (r"\{", at + 1)
        elif named := _GROUP_NAME.match(source, at):
            text, at = "(?P<", named.end()
        else:
            text, at = char, at + 1
        out.append(text)
    return f"(?a{flags}:{''.join(out)})"


def _class(source: str, start: int) -> tuple[str, int]:
    """Return the translation of a character class and the place after it."""
    at = start + 1
    negated = source.startswith("^", at)
    at += negated
    if source.startswith("]", at):
        return (r"[\s\S]" if negated else "(?!)"), at + 1
    out: list[str] = []
    after_set = True
    while at < len(source) and source[at] != "]":
        char = source[at]
        if char == "\\":
            text, at, after_set = _escape(source, at, in_class=True)
        elif char == "-":
            literal = after_set or (source.startswith("\\", at + 1) and source[at + 2 : at + 3] in _SETS)
            text, at, after_set = (r"\-" if literal or out[-1] == "-" else "-"), at + 1, False
        else:
            text, at, after_set = (rf"\{char}" if char in "[&|~" else char), at + 1, False
        out.append(text)
    if at >= len(source):
        raise re.error("unterminated character set", source, start)
    return f"[{'^' if negated else ''}{''.join(out)}]", at + 1


def _escape(source: str, at: int, *, in_class: bool) -> tuple[str, int, bool]:
    """Return the translation of an escape, the place after it, and whether it stands for a set of characters."""
    name = source[at + 1 : at + 2]
    if not name:
        raise re.error(r"\ at end of pattern", source, at)
    if code := _CODE_POINT.match(source, at):
        return re.escape(_code_point(code)), code.end(), False
    if control := _CONTROL.match(source, at):
        return rf"\x{ord(control[1]) % 32:02x}", control.end(), False
    if known := _PROPERTY.match(source, at):
        body = _category(known[2], negated=known[1] == "P")
        return (body if in_class else f"[{body}]"), known.end(), True
    if name == "k" and (reference := _BACK_REFERENCE.match(source, at)):
        return f"(?P={reference[1]})", reference.end(), False
    at += 2
    if name == "s":
        return (_BLANK_SET if in_class else f"[{_BLANK_SET}]"), at, True
    if name == "S":
        return (r"\S" if in_class else f"[^{_BLANK_SET}]"), at, True
    if name in "dDwW":
        return rf"\{name}", at, True
    if name in "fnrtvb" or name.isdigit():
        return rf"\{name}", at, False
    if not in_class and name in "BAZz":
        return (r"\Z" if name == "z" else rf"\{name}"), at, False
    return re.escape(name), at, False


def _code_point(match: re.Match[str]) -> str:
    braced, high, low, plain, short = match.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    code = int(braced or plain or short, 16)
    if code > 0x10FFFF:
        raise re.error(f"no character {match[0]}", match.string, match.start())
    return chr(code)


def _category(name: str, *, negated: bool) -> str:
    short = name.removeprefix("General_Category=").removeprefix("gc=")
    short = _LONG_NAMES.get(short, short)
    if not _CATEGORY.fullmatch(short):
        raise _UnsupportedError(rf"\p{{{name}}} is not a general category")
    return _category_set(short, negated)


@lru_cache(maxsize=32)
def _category_set(category: str, negated: bool) -> str:
    import unicodedata

    ranges: list[str] = []
    start: int | None = None
    for code in range(0x110001):
        inside = code < 0x110000 and unicodedata.category(chr(code)).startswith(category) is not negated
        if inside and start is None:
            start = code
        elif not inside and start is not None:
            ranges.append(rf"\U{start:08x}-\U{code - 1:08x}")
            start = None
    return "".join(ranges)
