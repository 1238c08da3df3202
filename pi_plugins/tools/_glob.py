"""Glob patterns as people write them for files: ``*``, ``?``, ``[a-z]``, ``{a,b}``, and ``**`` across directories."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ._errors import ToolError

MAX_ALTERNATIVES = 1000
"""Most patterns that the braces of one pattern may stand for."""

POSIX_RANGES: Final[dict[str, tuple[tuple[int, int], ...]]] = {
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)),
    "alpha": ((0x41, 0x5A), (0x61, 0x7A)),
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "cntrl": ((0x00, 0x1F), (0x7F, 0x7F)),
    "digit": ((0x30, 0x39),),
    "graph": ((0x21, 0x7E),),
    "lower": ((0x61, 0x7A),),
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((0x09, 0x0D), (0x20, 0x20)),
    "upper": ((0x41, 0x5A),),
    "word": ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)),
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}
"""The characters of the named classes of POSIX, first and last of each range."""

_POSIX_CLASSES = {
    name: "".join(rf"\x{low:02x}-\x{high:02x}" for low, high in ranges) for name, ranges in POSIX_RANGES.items()
}
_NAMED_CLASS = re.compile(rf"\[:({'|'.join(_POSIX_CLASSES)}):\]")

PathTest = Callable[[str, str], bool]
"""Says whether a path matches: gets the relative path with ``/`` between its parts, and its last part."""


def path_test(pattern: str, *, ignore_case: bool = False) -> PathTest:
    """Return the test for a pattern: without ``/`` it looks at names at any depth, with one at the whole path.

    :raises ToolError: the pattern is malformed.
    """
    anchored = pattern.startswith("/")
    while pattern.startswith("./"):
        pattern = pattern[2:]
    pattern = pattern.lstrip("/")
    try:
        alternatives = [translate(alternative) for alternative in _expand(pattern)]
        compiled = re.compile("|".join(alternatives), re.IGNORECASE if ignore_case else 0)
    except (ValueError, re.error) as error:
        raise ToolError(f"Invalid glob pattern {pattern!r}: {error}") from None
    matches = compiled.fullmatch
    if anchored or "/" in pattern:
        return lambda path, name: matches(path) is not None
    return lambda path, name: matches(name) is not None


def _expand(pattern: str) -> list[str]:
    """Return the patterns without braces that a pattern stands for."""
    start = _find(pattern, "{")
    if start < 0:
        return [pattern]
    depth, begin, parts, position = 0, start + 1, [], start
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            position += 1
        elif character == "[":
            position = _class_end(pattern, position)
        elif character == "{":
            depth += 1
        elif character in ",}" and depth == 1:
            parts.append(pattern[begin:position])
            begin = position + 1
            if character == "}":
                break
        elif character == "}":
            depth -= 1
        position += 1
    else:
        raise ValueError("'{' without '}'")
    expanded = [pattern[:start] + part + rest for rest in _expand(pattern[begin:]) for part in parts]
    results: list[str] = []
    for item in expanded:
        results += _expand(item)
        if len(results) > MAX_ALTERNATIVES:
            raise ValueError(f"its braces stand for more than {MAX_ALTERNATIVES} patterns")
    return results


def _find(pattern: str, wanted: str) -> int:
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == wanted:
            return position
        if character == "\\":
            position += 1
        elif character == "[":
            position = _class_end(pattern, position)
        position += 1
    return -1


def _class_end(pattern: str, start: int) -> int:
    """Return where the character class that begins at ``start`` ends."""
    position = start + 2 if pattern[start + 1 : start + 2] in ("!", "^") else start + 1
    first = position
    while position < len(pattern):
        character = pattern[position]
        if character == "]" and position > first:
            return position
        if character == "\\":
            position += 1
        elif character == "[" and (named := _NAMED_CLASS.match(pattern, position)) is not None:
            position = named.end() - 1
        position += 1
    raise ValueError("'[' without ']'")


def translate(pattern: str) -> str:
    """Return the regular expression of a pattern without braces, for :func:`re.fullmatch` on a path.

    Atomic groups take the first place for all between two stars, so that no pattern takes for ever.

    :raises ValueError: a character class is not closed.
    """
    chunks: list[list[str]] = [[]]
    for part in _split(pattern):
        if part != "**":
            chunks[-1].append(_translate_part(part))
        elif chunks[-1] or len(chunks) == 1:
            chunks.append([])
    if len(chunks) == 1:
        return "/".join(chunks[0])
    result = "".join(part + "/" for part in chunks[0])
    for chunk in chunks[1:-1]:
        result += f"(?>(?:[^/]+/)*?{''.join(part + '/' for part in chunk)})"
    return result + (f"(?:[^/]+/)*{'/'.join(chunks[-1])}" if chunks[-1] else "(?s:.+)")


def _split(pattern: str) -> list[str]:
    parts, begin, position = [], 0, 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            position += 1
        elif character == "[":
            position = _class_end(pattern, position)
        elif character == "/":
            parts.append(pattern[begin:position])
            begin = position + 1
        position += 1
    parts.append(pattern[begin:])
    return parts


def _translate_part(part: str) -> str:
    """Translate one part of a path."""
    pieces, piece, position = [], "", 0
    while position < len(part):
        character = part[position]
        if character == "*":
            pieces.append(piece)
            piece = ""
        elif character == "?":
            piece += "[^/]"
        elif character == "[":
            end = _class_end(part, position)
            piece += _translate_class(part[position + 1 : end])
            position = end
        elif character == "\\" and position + 1 < len(part):
            position += 1
            piece += re.escape(part[position])
        else:
            piece += re.escape(character)
        position += 1
    pieces.append(piece)
    if len(pieces) == 1:
        return pieces[0]
    if not any(pieces):
        return "[^/]+"
    middle = "".join(f"(?>[^/]*?{piece})" for piece in pieces[1:-1] if piece)
    return pieces[0] + middle + "[^/]*" + pieces[-1]


def _translate_class(content: str) -> str:
    negated = content[0] in "!^"
    result, position = "", 1 if negated else 0
    while position < len(content):
        character = content[position]
        named = _NAMED_CLASS.match(content, position)
        if named is not None:
            result += _POSIX_CLASSES[named[1]]
            position = named.end()
            continue
        if character == "\\" and position + 1 < len(content):
            position += 1
            character = content[position]
        result += "-" if character == "-" else re.escape(character)
        position += 1
    return f"(?!/)[{'^' if negated else ''}{result}]"
