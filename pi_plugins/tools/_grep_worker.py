"""Searches files for lines, the way ripgrep is asked to: run as a program where there is no ripgrep.

A program of its own can be ended while a regular expression is at work; a thread could not. Its arguments are the
pattern, ``literal`` or ``regex``, ``ignore-case`` or ``case``, the lines of context, the most matches of one file, the
most characters of a line, and the files. It prints ``file NUL number : line``, with ``-`` instead of ``:`` for context.
It imports as little as it can, since every search waits for it to start.
"""

from __future__ import annotations

import os
import re
import sys
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

WHOLE_BYTES = 8 * 1024 * 1024
LINE_BYTES = 16 * 1024 * 1024

_MARKS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_POSIX = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    "space": r"\s",
    "upper": "A-Z",
    "word": r"\w",
    "xdigit": "0-9a-fA-F",
}


def compile_pattern(pattern: str, *, literal: bool, ignore_case: bool) -> re.Pattern[str]:
    """Return the pattern as Python has it; named POSIX classes and ``\\z`` are translated.

    :raises re.error: it is no regular expression.
    """
    if literal:
        pattern = re.escape(pattern)
    else:
        pattern = re.sub(r"\[:(\w+):\]", lambda match: _POSIX.get(match[1], match[0]), pattern)
        pattern = re.sub(r"(?<!\\)((?:\\\\)*)\\z", r"\1\\Z", pattern)
    return re.compile(pattern, re.IGNORECASE if ignore_case else 0)


def text_prefilter(pattern: re.Pattern[str]) -> re.Pattern[str] | None:
    """Return a pattern that a text must match if one of its lines does, ``None`` when there is no such pattern."""
    if re.search(r"\\[AZ]|\(\?[<=!>(]|[*+?}]\+", pattern.pattern):
        return None
    return re.compile(pattern.pattern, pattern.flags | re.MULTILINE)


def lines_of(file: BinaryIO, prefilter: re.Pattern[str] | None) -> Iterator[str]:
    """Give the lines of a file without their ends; none when the prefilter says that no line matches."""
    data = file.read(WHOLE_BYTES + 1)
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    if len(data) > WHOLE_BYTES and encoding == "utf-8":
        file.seek(3 if data.startswith(b"\xef\xbb\xbf") else 0)
        del data
        while line := file.readline(LINE_BYTES):
            yield line.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")
        return
    text = (data + file.read()).decode(encoding, "replace").removeprefix("\ufeff").replace("\r\n", "\n")
    if prefilter is None or prefilter.search(text):
        lines = text.split("\n")
        yield from lines if lines[-1] else lines[:-1]


class Printer:
    """Prints the matching lines of files and those around them.

    :param context: lines before and after each match.
    :param limit: most matches of one file.
    :param columns: most characters of a line.
    """

    def __init__(self, pattern: re.Pattern[str], output: BinaryIO, context: int, limit: int, columns: int) -> None:
        self._pattern = pattern
        self._output = output
        self._context = context
        self._limit = limit
        self._columns = columns

    def search(self, name: bytes, lines: Iterator[str]) -> None:
        """Print what there is in one file."""
        before: deque[tuple[int, str]] = deque(maxlen=self._context)
        matches = after = 0
        for number, line in enumerate(lines, 1):
            if matches < self._limit and self._pattern.search(line):
                for earlier, text in before:
                    self._print(name, earlier, "-", text)
                before.clear()
                self._print(name, number, ":", line)
                matches += 1
                after = self._context
            elif after:
                self._print(name, number, "-", line)
                after -= 1
            elif matches >= self._limit:
                return
            else:
                before.append((number, line))

    def _print(self, name: bytes, number: int, mark: str, line: str) -> None:
        shown = line[: self._columns].encode("utf-8", "replace")
        self._output.write(name + b"\0" + f"{number}{mark}".encode() + shown + b"\n")


def main(arguments: list[str]) -> int:
    """Search the files named in the arguments; ``2`` says that the pattern or a file could not be read."""
    text, kind, case, context, limit, columns, *files = arguments
    try:
        pattern = compile_pattern(text, literal=kind == "literal", ignore_case=case == "ignore-case")
    except (re.error, OverflowError, RecursionError) as error:
        print(f"regex parse error: {error}", file=sys.stderr)
        return 2
    printer = Printer(pattern, sys.stdout.buffer, int(context), int(limit), int(columns))
    prefilter = text_prefilter(pattern)
    code = 0
    for name in files:
        try:
            with open(name, "rb") as file:
                printer.search(os.fsencode(name), lines_of(file, prefilter))
        except OSError as error:
            print(f"{os.fsencode(name)!r}: {error.strerror} (os error {error.errno})", file=sys.stderr)
            code = 2
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
