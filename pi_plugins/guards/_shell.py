"""Reads a command line of a POSIX shell, only as far as it is certain what would run.

Every command is found, also in lists, pipelines, groups, loops and substitutions. What the reader does not know is an
error, so that nothing runs because it was misread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from ._shell_words import META, ShellSyntaxError, Word, WordReader

_BLANK: Final = " \t"
_DEEPEST: Final = 20
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?\+?=")
_SPLIT_SIGN: Final = re.compile(r"[$<>&|;(`]\\\n")
"""A sign that the next line may go on, such as ``$`` before ``(``: the shell puts lines together before it looks."""
_SKIPPED: Final = frozenset({"if", "then", "else", "elif", "fi", "while", "until", "do", "done", "!", "{", "}"})
_UNKNOWN: Final = frozenset({"case", "select", "function", "coproc"})
_REDIRECTIONS: Final = ("<<<", "<<-", "<<", "<(", "<&", "<>", "<", ">(", ">>", ">|", ">&", ">")


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
    if _SPLIT_SIGN.search(line):
        raise ShellSyntaxError("a line goes on in the middle of a sign")
    reader = _Reader(line, [], 0)
    reader.read("")
    return reader.found


@dataclass(slots=True)
class _Heredoc:
    delimiter: str
    strip_tabs: bool
    expands: bool


class _Reader(WordReader):
    """Reads one text; commands of texts inside of it are added to the same list."""

    def __init__(self, text: str, found: list[ShellCommand], depth: int) -> None:
        if depth > _DEEPEST:
            raise ShellSyntaxError("substitutions and groups are nested too deeply")
        super().__init__(text)
        self.found = found
        self.depth = depth

    def read(self, closing: str) -> None:
        """Read commands up to ``closing``, or to the end of the text if that is empty."""
        command, in_for = ShellCommand(), False
        heredocs: list[_Heredoc] = []
        while self.at < len(self.text):
            char = self.peek()
            if char in _BLANK or self.starts("\\\n"):
                self.at += 1 if char in _BLANK else 2
            elif char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif char == ")" and closing:
                self._finish(command)
                self._no_more(heredocs)
                self.at += 1
                return
            elif self.starts("&>"):
                self.at += 3 if self.starts("&>>") else 2
                command.redirects.append(Redirect(self._target(), writes=True))
            elif char in "\n;&|":
                command, in_for = self._separator(command), False
                if char == "\n":
                    self._bodies(heredocs)
            elif char == "(":
                if command.words or command.assignments or in_for or self.starts("(("):
                    raise ShellSyntaxError("'(' stands where no group begins")
                self.at += 1
                self.nested()
            elif char == ")":
                raise ShellSyntaxError("')' stands where no group ends")
            elif char in "<>":
                self._redirect(command, heredocs)
            else:
                in_for = self._take(command, self.word(), in_for)
        if closing:
            raise ShellSyntaxError(f"'{closing}' is missing")
        self._finish(command)
        self._no_more(heredocs)

    # --- parts of a list ---

    def _separator(self, command: ShellCommand) -> ShellCommand:
        self._finish(command)
        if self.starts(";;"):
            raise ShellSyntaxError("';;' stands where there is no case")
        self.at += 2 if self.text[self.at : self.at + 2] in ("&&", "||", "|&") else 1
        return ShellCommand()

    def _take(self, command: ShellCommand, word: Word, in_for: bool) -> bool:
        """Put a word where it belongs, and return whether the words of ``for`` go on."""
        if in_for:
            return True
        plain = word.text if word.certain and not word.quoted else ""
        if plain.isdigit() and self.peek() in ("<", ">"):
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
            if self.peek() == ";" or self.starts("<(") or self.starts(">("):
                raise ShellSyntaxError("a condition is not understood")
            if self.peek() in META:
                self.at += 1
            elif self.word().text == "]]":
                return
        raise ShellSyntaxError("']]' is missing")

    def _finish(self, command: ShellCommand) -> None:
        if command.words or command.assignments or command.redirects:
            self.found.append(command)

    def nested(self) -> None:
        """Read a list in parentheses, the first of which was read."""
        reader = _Reader(self.text, self.found, self.depth + 1)
        reader.at = self.at
        reader.read(")")
        self.at = reader.at

    def inner(self, text: str) -> None:
        """Read another text, such as one between backticks."""
        _Reader(text, self.found, self.depth + 1).read("")

    def _redirect(self, command: ShellCommand, heredocs: list[_Heredoc]) -> None:
        operator = next(sign for sign in _REDIRECTIONS if self.starts(sign))
        self.at += len(operator)
        if operator in ("<(", ">("):
            self.nested()
            command.words.append(_unknown(operator + "...)"))
        elif operator in ("<<", "<<-"):
            word = self._target()
            if not word.certain:
                raise ShellSyntaxError("the end of a here-document is not certain")
            heredocs.append(_Heredoc(word.text, operator == "<<-", not word.quoted))
        elif operator == "<<<":
            self._target()
        else:
            target = self._target()
            copies = operator in ("<&", ">&") and re.fullmatch(r"\d*-?", target.text) and target.certain
            if not copies:
                command.redirects.append(Redirect(target, writes=operator not in ("<", "<&")))

    def _target(self) -> Word:
        while self.peek() in _BLANK and self.peek():
            self.at += 1
        if not self.peek() or self.peek() in META:
            raise ShellSyntaxError("a redirection names no file")
        return self.word()

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
                _Reader(body, self.found, self.depth + 1).expansions()
        heredocs.clear()

    @staticmethod
    def _no_more(heredocs: list[_Heredoc]) -> None:
        if heredocs:
            raise ShellSyntaxError(f"the here-document has no end {heredocs[0].delimiter!r}")


def _unknown(source: str) -> Word:
    word = Word()
    word.add_unknown(source)
    return word
