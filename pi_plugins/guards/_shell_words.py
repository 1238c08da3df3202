"""The words of a command line of a POSIX shell: quotes, expansions, and how much of a word is certain."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

META: Final = " \t\n;&|()<>"
"""What ends a word."""
_NAME: Final = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_HARMLESS_EXPANSION: Final = re.compile(r"\{(?![^}]*@[A-Za-z]\})[^}{`'\"\n$\\]*\}")
_LATE_COMMAND: Final = re.compile(r"\[[^]\n]*(?:\$[({]|`)")
"""Text that a shell runs when it reads it as the index of an array, as it does in arithmetic."""
_NO_NUMBER: Final = re.compile(r"\$\(|[`'\"\\\n;]")
_ANSI_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}


class ShellSyntaxError(Exception):
    """It is not certain what the command line would run; the text says what was not understood."""


@dataclass(slots=True)
class Word:
    """A word of a command.

    :param text: as the command gets it; what is only known when it runs stands as it was written.
    :param known: how many characters of the text are certain.
    :param quoted: whether a part of it was quoted.
    :param certain: whether all of the text is.
    :param literal: the text without what is only known when the command runs.
    """

    text: str = ""
    known: int = 0
    quoted: bool = False
    certain: bool = True
    literal: str = ""

    def add(self, text: str) -> None:
        """Append text that is certain."""
        self.text += text
        self.literal += text
        if self.certain:
            self.known = len(self.text)

    def add_unknown(self, source: str) -> None:
        """Append what is only known when the command runs."""
        self.certain = False
        self.text += source
        self.literal += "\0"


class WordReader(ABC):
    """Reads words of a text from a position on.

    :ivar at: the position.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    @abstractmethod
    def nested(self) -> None:
        """Read the commands of a list in parentheses, the first of which was read."""

    @abstractmethod
    def inner(self, text: str) -> None:
        """Read the commands of another text."""

    def word(self) -> Word:
        """Read a word, up to what ends one."""
        word = Word()
        begin = self.at
        while self.at < len(self.text) and self.peek() not in META:
            char = self.peek()
            if char == "'":
                end = self.text.find("'", self.at + 1)
                if end < 0:
                    raise ShellSyntaxError("a quote is not closed")
                word.quoted = True
                word.add(self.text[self.at + 1 : end])
                self.at = end + 1
            elif char == '"':
                self._double_quoted(word)
            elif char == "\\":
                if self.at + 1 == len(self.text):
                    raise ShellSyntaxError("the line ends with a backslash")
                if not self.starts("\\\n"):
                    word.quoted = True
                    word.add(self.text[self.at + 1])
                self.at += 2
            elif char in "$`":
                self._expansion(word, in_quotes=False)
            else:
                self._plain(word, char, first=self.at == begin)
        if _LATE_COMMAND.search(word.literal):
            raise ShellSyntaxError("a text holds a command that the shell may run later")
        return word

    def _plain(self, word: Word, char: str, *, first: bool) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        opens = char in "[{" and following and following not in META and not (char == "{" and following == "}")
        tests = char == "[" and following == "[" and first
        if char in "*?" or (opens and not tests) or (first and char == "~" and following in ("+", "-")):
            word.add_unknown(char)
        else:
            word.add(char)
        self.at += 1
        if tests:
            word.add("[")
            self.at += 1

    def _double_quoted(self, word: Word) -> None:
        word.quoted = True
        self.at += 1
        while (char := self.peek()) != '"':
            if not char:
                raise ShellSyntaxError("a quote is not closed")
            if char in "$`":
                self._expansion(word, in_quotes=True)
            elif char == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                if not self.starts("\\\n"):
                    word.add(self.text[self.at + 1])
                self.at += 2
            else:
                word.add(char)
                self.at += 1
        self.at += 1

    def expansions(self) -> None:
        """Read a text in which only expansions mean something."""
        word = Word()
        while char := self.peek():
            if char in "$`":
                self._expansion(word, in_quotes=True)
            else:
                self.at += 2 if char == "\\" else 1

    def _expansion(self, word: Word, *, in_quotes: bool) -> None:
        begin = self.at
        if self.peek() == "`":
            self._backticks()
        elif self.starts("$(("):
            self._arithmetic()
        elif self.starts("$("):
            self.at += 2
            self.nested()
        elif self.starts("${"):
            self.at += 1
            found = _HARMLESS_EXPANSION.match(self.text, self.at)
            if found is None:
                raise ShellSyntaxError("an expansion of a variable is not understood")
            self.at = found.end()
        elif self.starts("$'") and not in_quotes:
            self._ansi_quoted(word)
            return
        elif self.starts('$"') and not in_quotes:
            self.at += 1
            self._double_quoted(word)
            return
        elif (name := _NAME.match(self.text, self.at + 1)) is not None:
            self.at = name.end()
        else:
            self.at += 1
            word.add("$")
            return
        word.add_unknown(self.text[begin : self.at])

    def _backticks(self) -> None:
        end = self.at + 1
        while end < len(self.text) and self.text[end] != "`":
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text):
            raise ShellSyntaxError("a backtick is not closed")
        inner = re.sub(r"\\([$`\\])", r"\1", self.text[self.at + 1 : end])
        self.inner(inner)
        self.at = end + 1

    def _arithmetic(self) -> None:
        """Read an arithmetic expansion; one that could as well be commands in parentheses is an error."""
        begin, depth, end = self.at + 3, 2, self.at + 3
        while end < len(self.text) and depth:
            depth += {"(": 1, ")": -1}.get(self.text[end], 0)
            end += 1
        content = self.text[begin : end - 2]
        if depth or not self.text.startswith("))", end - 2) or not _balanced(content) or _NO_NUMBER.search(content):
            raise ShellSyntaxError("an arithmetic expansion is not understood")
        self.at = end

    def _ansi_quoted(self, word: Word) -> None:
        word.quoted = True
        self.at += 2
        while (char := self.peek()) != "'":
            if not char:
                raise ShellSyntaxError("a quote is not closed")
            if char == "\\":
                self.at += 1
                if (char := _ANSI_ESCAPES.get(self.peek(), "")) == "":
                    raise ShellSyntaxError("an escape in $'...' is not understood")
            word.add(char)
            self.at += 1
        self.at += 1

    def peek(self) -> str:
        """Return the next character, empty at the end."""
        return self.text[self.at : self.at + 1]

    def starts(self, text: str) -> bool:
        """Return whether a text comes next."""
        return self.text.startswith(text, self.at)


def _balanced(text: str) -> bool:
    depth = 0
    for char in text:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth < 0:
            return False
    return depth == 0
