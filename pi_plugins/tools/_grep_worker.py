"""Searches files for lines, the way ripgrep is asked to: run as a program where there is no ripgrep.

A program of its own can be ended while a regular expression is at work; a thread could not. Its arguments are the
pattern as :mod:`._regex` writes it for Python, ``ignore-case`` or ``case``, the lines of context, the most matches of
one file, the most characters of a line, and the files. It prints ``file NUL number : line``, with ``-`` instead of
``:`` for context. It imports as little as it can, since every search waits for it to start.
"""

from __future__ import annotations

import errno
import os
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

BLOCK_BYTES = 8 * 1024 * 1024
LINE_BYTES = 64 * 1024 * 1024
"""Longest line that is searched."""

_MARKS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


def blocks_of(file: BinaryIO) -> Iterator[str]:
    """Give a file as text in blocks of whole lines that end with ``\\n``; each byte that is no UTF-8 is a surrogate."""
    data = file.read(BLOCK_BYTES)
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            yield _lines((data[2:] + file.read()).decode(encoding, "replace"))
            return
    data = data.removeprefix(b"\xef\xbb\xbf")
    while data:
        if not data.endswith(b"\n"):
            data += file.readline(LINE_BYTES)
            if len(data) > LINE_BYTES:
                raise OSError(errno.EFBIG, "a line is too long")
        yield _lines(data.decode("utf-8", "surrogateescape"))
        data = file.read(BLOCK_BYTES)


def _lines(text: str) -> str:
    text = text.replace("\r\n", "\n")
    return text if text.endswith("\n") or not text else text + "\n"


class Printer:
    """Prints the matching lines of one file and those around them.

    :param context: lines before and after each match.
    :param limit: most matches.
    :param columns: most characters of a line.
    """

    def __init__(self, output: BinaryIO, name: bytes, context: int, limit: int, columns: int) -> None:
        self._output = output
        self._name = name
        self._context = context
        self._limit = limit
        self._columns = columns
        self._number = 1
        self._before: list[str] = []
        self._after = 0
        self._matches = 0

    @property
    def is_done(self) -> bool:
        """Whether nothing more of the file would be printed."""
        return self._matches >= self._limit and not self._after

    def search(self, text: str, pattern: re.Pattern[str]) -> None:
        """Print what there is in a block of lines."""
        subject = text.replace("\r", "\n") if "\r" in text else text  # the pattern's lines end at both
        position = 0
        while position < len(text) and not self.is_done:
            match = pattern.search(subject, position) if self._matches < self._limit else None
            if match is None or match.start() == len(text):
                self._pass(text, position, len(text))
                return
            start = text.rfind("\n", position, match.start()) + 1 or position
            self._pass(text, position, start)
            position = text.index("\n", start) + 1
            self._match(text[start : position - 1])

    def _pass(self, text: str, begin: int, end: int) -> None:
        """Go over lines without a match."""
        while self._after and begin < end:
            line_end = text.index("\n", begin)
            self._print("-", self._number, text[begin:line_end])
            self._number += 1
            self._after -= 1
            begin = line_end + 1
        if begin >= end:
            return
        if self._context:
            first = end
            for _ in range(self._context):
                if first <= begin:
                    break
                first = text.rfind("\n", begin, first - 1) + 1 or begin
            kept = text[first : end - 1].split("\n")
            self._before = [*self._before, *kept][-self._context :]
        self._number += text.count("\n", begin, end)

    def _match(self, line: str) -> None:
        for distance, earlier in enumerate(self._before):
            self._print("-", self._number - len(self._before) + distance, earlier)
        self._before.clear()
        self._print(":", self._number, line)
        self._number += 1
        self._matches += 1
        self._after = self._context

    def _print(self, mark: str, number: int, line: str) -> None:
        shown = line[: self._columns].encode("utf-8", "surrogateescape")
        self._output.write(self._name + b"\0" + f"{number}{mark}".encode() + shown + b"\n")


def main(arguments: list[str]) -> int:
    """Search the files named in the arguments; ``2`` says that a file could not be read."""
    text, case, context, limit, columns, *files = arguments
    pattern = re.compile(text, re.MULTILINE | (re.IGNORECASE if case == "ignore-case" else 0))
    code = 0
    for name in files:
        printer = Printer(sys.stdout.buffer, os.fsencode(name), int(context), int(limit), int(columns))
        try:
            with open(name, "rb") as file:
                for block in blocks_of(file):
                    printer.search(block, pattern)
                    if printer.is_done:
                        break
        except OSError as error:
            print(f"{os.fsencode(name)!r}: {error.strerror} (os error {error.errno})", file=sys.stderr)
            code = 2
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
