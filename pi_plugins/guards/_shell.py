"""Reads a command line of a POSIX shell, only as far as it is certain what would run.

Every command is found, also in lists, pipelines, groups, loops and substitutions. What the reader does not know is an
error, so that nothing runs because it was misread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_BLANK: Final = " \t"
_META: Final = " \t\n;&|()<>"
_DEEPEST: Final = 20
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?\+?=")
_NAME: Final = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_SKIPPED: Final = frozenset({"if", "then", "else", "elif", "fi", "while", "until", "do", "done", "!", "{", "}"})
_UNKNOWN: Final = frozenset({"case", "select", "function", "coproc"})
_HARMLESS_EXPANSION: Final = re.compile(r"\{(?![^}]*@[A-Za-z]\})[^}{`'\"\n$\\]*\}")
_LATE_COMMAND: Final = re.compile(r"\[[^]\n]*(?:\$[({]|`)")
"""Text that a shell runs when it reads it as the index of an array, as it does in arithmetic."""
_NO_NUMBER: Final = re.compile(r"\$\(|[`'\"\\\n;]")
_REDIRECTIONS: Final = ("<<<", "<<-", "<<", "<(", "<&", "<>", "<", ">(", ">>", ">|", ">&", ">")
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


@dataclass(slots=True)
class Redirect:
    """A file that a command reads or writes beside its arguments."""

    target: Word
    writes: bool


@dataclass(slots=True)
class ShellCommand:
    """A simple command: assignments before it, the program with its arguments, and files."""

    assignments: list[Word] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)


def read_commands(line: str) -> list[ShellCommand]:
    """Return every simple command that a command line may run.

    :raises ShellSyntaxError: it is not certain which ones these are.
    """
    reader = _Reader(line, [], 0)
    reader.read("")
    return reader.found


@dataclass(slots=True)
class _Heredoc:
    delimiter: str
    strip_tabs: bool
    expands: bool


class _Reader:
    """Reads one text; commands of texts inside of it are added to the same list."""

    def __init__(self, text: str, found: list[ShellCommand], depth: int) -> None:
        if depth > _DEEPEST:
            raise ShellSyntaxError("substitutions and groups are nested too deeply")
        self.text = text
        self.found = found
        self.depth = depth
        self.at = 0

    def read(self, closing: str) -> None:
        """Read commands up to ``closing``, or to the end of the text if that is empty."""
        command, in_for = ShellCommand(), False
        heredocs: list[_Heredoc] = []
        while self.at < len(self.text):
            char = self._peek()
            if char in _BLANK or self._starts("\\\n"):
                self.at += 1 if char in _BLANK else 2
            elif char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif char == ")" and closing:
                self._finish(command)
                self._no_more(heredocs)
                self.at += 1
                return
            elif self._starts("&>"):
                self.at += 3 if self._starts("&>>") else 2
                command.redirects.append(Redirect(self._target(), writes=True))
            elif char in "\n;&|":
                command, in_for = self._separator(command), False
                if char == "\n":
                    self._bodies(heredocs)
            elif char == "(":
                if command.words or command.assignments or in_for or self._starts("(("):
                    raise ShellSyntaxError("'(' stands where no group begins")
                self.at += 1
                self._nested()
            elif char == ")":
                raise ShellSyntaxError("')' stands where no group ends")
            elif char in "<>":
                self._redirect(command, heredocs)
            else:
                in_for = self._take(command, self._word(), in_for)
        if closing:
            raise ShellSyntaxError(f"'{closing}' is missing")
        self._finish(command)
        self._no_more(heredocs)

    # --- parts of a list ---

    def _separator(self, command: ShellCommand) -> ShellCommand:
        self._finish(command)
        if self._starts(";;"):
            raise ShellSyntaxError("';;' stands where there is no case")
        self.at += 2 if self.text[self.at : self.at + 2] in ("&&", "||", "|&") else 1
        return ShellCommand()

    def _take(self, command: ShellCommand, word: Word, in_for: bool) -> bool:
        """Put a word where it belongs, and return whether the words of ``for`` go on."""
        if in_for:
            return True
        plain = word.text if word.certain and not word.quoted else ""
        if plain.isdigit() and self._peek() in ("<", ">"):
            return False
        if not command.words:
            if not command.assignments:
                if plain == "for":
                    return True
                if plain in _UNKNOWN:
                    raise ShellSyntaxError(f"'{plain}' is not understood here")
                if plain == "[[":
                    self._condition()
                    return False
                if plain in _SKIPPED:
                    return False
            if _ASSIGNMENT.match(word.text[: word.known] if word.quoted else word.text):
                command.assignments.append(word)
                return False
        command.words.append(word)
        return False

    def _condition(self) -> None:
        """Read a condition up to ``]]``; only substitutions in it run anything."""
        while self.at < len(self.text):
            if self._peek() == ";" or self._starts("<(") or self._starts(">("):
                raise ShellSyntaxError("a condition is not understood")
            if self._peek() in _META:
                self.at += 1
            elif self._word().text == "]]":
                return
        raise ShellSyntaxError("']]' is missing")

    def _finish(self, command: ShellCommand) -> None:
        if command.words or command.assignments or command.redirects:
            self.found.append(command)

    def _nested(self) -> None:
        """Read a list in parentheses, the first of which was read."""
        inner = _Reader(self.text, self.found, self.depth + 1)
        inner.at = self.at
        inner.read(")")
        self.at = inner.at

    def _redirect(self, command: ShellCommand, heredocs: list[_Heredoc]) -> None:
        operator = next(sign for sign in _REDIRECTIONS if self._starts(sign))
        self.at += len(operator)
        if operator in ("<(", ">("):
            self._nested()
            command.words.append(_unknown(operator + "...)"))
        elif operator in ("<<", "<<-"):
            begin = self.at
            word = self._target()
            if not word.certain:
                raise ShellSyntaxError("the end of a here-document is not certain")
            raw = self.text[begin : self.at]
            heredocs.append(_Heredoc(word.text, operator == "<<-", not re.search(r"['\"\\]", raw)))
        elif operator == "<<<":
            self._target()
        else:
            target = self._target()
            copies = operator in ("<&", ">&") and re.fullmatch(r"\d*-?", target.text) and target.certain
            if not copies:
                command.redirects.append(Redirect(target, writes=operator not in ("<", "<&")))

    def _target(self) -> Word:
        while self._peek() in _BLANK and self._peek():
            self.at += 1
        if not self._peek() or self._peek() in _META:
            raise ShellSyntaxError("a redirection names no file")
        return self._word()

    def _bodies(self, heredocs: list[_Heredoc]) -> None:
        """Read the here-documents that begin after this line."""
        for heredoc in heredocs:
            begin = self.at
            while True:
                if self.at >= len(self.text):
                    raise ShellSyntaxError(f"the here-document has no end {heredoc.delimiter!r}")
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end]
                body = self.text[begin : self.at]
                self.at = end + 1
                if (line.lstrip("\t") if heredoc.strip_tabs else line) == heredoc.delimiter:
                    break
            if heredoc.expands and "\\\n" in body:
                raise ShellSyntaxError("a here-document with lines put together is not understood")
            if heredoc.expands:
                _Reader(body, self.found, self.depth + 1)._expansions()
        heredocs.clear()

    @staticmethod
    def _no_more(heredocs: list[_Heredoc]) -> None:
        if heredocs:
            raise ShellSyntaxError(f"the here-document has no end {heredocs[0].delimiter!r}")

    # --- words ---

    def _word(self) -> Word:
        word = Word()
        begin = self.at
        while self.at < len(self.text) and self._peek() not in _META:
            char = self._peek()
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
                if not self._starts("\\\n"):
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
        opens = char in "[{" and following and following not in _META and not (char == "{" and following == "}")
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
        while (char := self._peek()) != '"':
            if not char:
                raise ShellSyntaxError("a quote is not closed")
            if char in "$`":
                self._expansion(word, in_quotes=True)
            elif char == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                if not self._starts("\\\n"):
                    word.add(self.text[self.at + 1])
                self.at += 2
            else:
                word.add(char)
                self.at += 1
        self.at += 1

    def _expansions(self) -> None:
        """Read a text in which only expansions mean something."""
        word = Word()
        while char := self._peek():
            if char in "$`":
                self._expansion(word, in_quotes=True)
            else:
                self.at += 2 if char == "\\" else 1

    def _expansion(self, word: Word, *, in_quotes: bool) -> None:
        begin = self.at
        if self._peek() == "`":
            self._backticks()
        elif self._starts("$(("):
            self._arithmetic()
        elif self._starts("$("):
            self.at += 2
            self._nested()
        elif self._starts("${"):
            self.at += 1
            found = _HARMLESS_EXPANSION.match(self.text, self.at)
            if found is None:
                raise ShellSyntaxError("an expansion of a variable is not understood")
            self.at = found.end()
        elif self._starts("$'") and not in_quotes:
            self._ansi_quoted(word)
            return
        elif self._starts('$"') and not in_quotes:
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
        _Reader(inner, self.found, self.depth + 1).read("")
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
        while (char := self._peek()) != "'":
            if not char:
                raise ShellSyntaxError("a quote is not closed")
            if char == "\\":
                self.at += 1
                if (char := _ANSI_ESCAPES.get(self._peek(), "")) == "":
                    raise ShellSyntaxError("an escape in $'...' is not understood")
            word.add(char)
            self.at += 1
        self.at += 1

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _starts(self, text: str) -> bool:
        return self.text.startswith(text, self.at)


def _balanced(text: str) -> bool:
    depth = 0
    for char in text:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth < 0:
            return False
    return depth == 0


def _unknown(source: str) -> Word:
    word = Word()
    word.add_unknown(source)
    return word
