"""What a command line of the shell would run, as rules look at it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ._shell import Redirect, ShellCommand, read_commands
from ._shell_words import ShellSyntaxError, Word

_SHELLS: Final = frozenset({"sh", "bash", "rbash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh"})
_RUNNERS: Final = frozenset(
    {
        *(
            "builtin",
            "busybox",
            "chroot",
            "chrt",
            "command",
            "doas",
            "entr",
            "env",
            "exec",
            "flock",
            "ionice",
            "ltrace",
        ),
        *("nice", "nohup", "parallel", "script", "setsid", "stdbuf", "strace", "su", "sudo", "systemd-run", "taskset"),
        *("time", "timeout", "unshare", "watch", "xargs", "xvfb-run"),
    }
)
"""Programs that run the program named in their arguments."""
_LINE_RUNNERS: Final = frozenset({"entr", "parallel", "script", "su", "watch"})
"""Programs that have a shell run an argument."""
_FIND_ACTIONS: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_LONE_OPTIONS: Final = frozenset({"--norc", "--noprofile", "--login", "--posix", "--verbose", "--restricted"})
_PLAIN: Final = re.compile(r"[^\s'\"\\;&|()<>`#$]+")
_DEEPEST: Final = 5
_MOVES: Final = frozenset({"cd", "pushd", "popd"})


@dataclass(frozen=True, slots=True)
class Command:
    """A command that a line may run.

    :param text: all of it, words with blanks in them quoted. A rule that allows it has to match this.
    :param variants: other ways to look at it: without assignments and quotes, without the folder of the program, and
        what a program such as ``env`` runs. A rule that denies needs to match any.
    :param certain: how many characters of each variant are certain; a rule that denies may match what comes after.
    """

    text: str
    variants: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class CommandLine:
    """What is known of a command line.

    :param commands: the commands it may run.
    :param files: files that redirections name; a target that is not certain is ``None``.
    :param unclear: why it is not certain what runs; ``None`` when it is.
    """

    commands: tuple[Command, ...] = ()
    files: tuple[tuple[str | None, bool], ...] = ()
    unclear: str | None = None


def look_at(line: str) -> CommandLine:
    """Return what a command line may run. It is unclear rather than an error when that cannot be told."""
    try:
        found = list(_all_commands(line, 0))
    except ShellSyntaxError as error:
        return CommandLine((Command(line, ((line, 0),)),), unclear=str(error))
    moves = any(_program(word.text) in _MOVES for command in found for word in command.words[:2])
    files = [_file(redirect, moves) for command in found for redirect in command.redirects]
    commands = [_command(command) for command in found if command.words or command.assignments]
    return CommandLine(tuple(commands), tuple(file for file in files if file is not None))


def _all_commands(line: str, depth: int) -> Iterator[ShellCommand]:
    """The commands of a line, and of the lines that shells and ``eval`` in it are given."""
    if depth > _DEEPEST:
        raise ShellSyntaxError("shells run shells too deeply")
    for command in read_commands(line):
        yield command
        for text in _inner_lines(command.words):
            yield from _all_commands(text, depth + 1)


def _inner_lines(words: Sequence[Word]) -> Iterator[str]:
    for position in _starts(words):
        program, arguments = _program(words[position].text), words[position + 1 :]
        if program in _SHELLS:
            yield from _shell_lines(arguments)
        elif program in ("eval", "trap"):
            wanted = arguments if program == "eval" else arguments[:1]
            yield " ".join(_certain(word, f"what {program} runs") for word in wanted)
        elif program in _LINE_RUNNERS:
            yield from (word.text for word in arguments if word.certain and re.search(r"[\s;&|`$]", word.text))
        elif program == "env" and any(re.match(r"-[A-Za-z]*S|--split-string", word.text) for word in arguments):
            raise ShellSyntaxError("env makes a command of a text")


def _shell_lines(arguments: Sequence[Word]) -> Iterator[str]:
    """The command that a shell is given with ``-c``. One that reads commands from its input is unclear."""
    takes_command, skips = False, False
    for word in arguments:
        text = _certain(word, "what the shell runs")
        if skips:
            skips = False
        elif not re.match(r"[-+].", text):
            if text in ("", "-"):
                break
            if takes_command:
                yield text
            return
        elif re.fullmatch(r"[-+][A-Za-z]+", text):
            takes_command = takes_command or "c" in text
            skips = "o" in text or "O" in text
            if "s" in text or (skips and "c" in text):
                break
        elif text not in _LONE_OPTIONS:
            break
    raise ShellSyntaxError("it is not certain where a shell reads its commands from")


def _starts(words: Sequence[Word]) -> Iterator[int]:
    """Where a program may be named: first, and anywhere behind a program that runs others."""
    if not words:
        return
    yield 0
    runs, actions = False, False
    for position, word in enumerate(words):
        if position and (runs or (actions and words[position - 1].text in _FIND_ACTIONS)):
            yield position
        program = _program(word.text)
        runs = runs or (position == 0 and program in _RUNNERS)
        actions = actions or program == "find"


def _command(command: ShellCommand) -> Command:
    words = command.words
    variants = [_joined([*command.assignments, *words], quote=True), _joined([*command.assignments, *words])]
    for start in _starts(words):
        shown = [_joined(words[start:]), _joined([_without_folder(words[start]), *words[start + 1 :]])]
        # Which program it is decides over all the rest: one that is not certain may be a shell.
        variants += shown if words[start].certain else [(text, 0) for text, _ in shown]
    return Command(variants[0][0], tuple(dict.fromkeys(variants)))


def _joined(words: Iterable[Word], *, quote: bool = False) -> tuple[str, int]:
    """The words with blanks between them, and how much of that is certain."""
    parts: list[str] = []
    length, certain, sure = 0, 0, True
    for word in words:
        shown = word.text
        if quote and word.certain and not _PLAIN.fullmatch(shown):
            shown = shlex.quote(shown)
        if sure:
            certain = length + (len(shown) if word.certain else word.known)
            sure = word.certain
        parts.append(shown)
        length += len(shown) + 1
    text = " ".join(parts)
    return text, len(text) if sure else certain


def _without_folder(word: Word) -> Word:
    name = _program(word.text)
    cut = len(word.text) - len(name)
    return Word(name, max(word.known - cut, 0), word.quoted, word.certain)


def _program(text: str) -> str:
    return text.rsplit("/", 1)[-1]


def _certain(word: Word, what: str) -> str:
    if not word.certain:
        raise ShellSyntaxError(f"{what} is only known when it runs")
    return word.text


def _file(redirect: Redirect, moves: bool) -> tuple[str | None, bool] | None:
    """The file of a redirection; ``None`` for those that are always there and harmless."""
    target = redirect.target
    text = target.text
    if target.certain and re.fullmatch(r"/dev/(?:null|stdin|stdout|stderr|tty|fd/\d+)", text):
        return None
    unclear = not target.certain or (text.startswith("~") and target.quoted) or (moves and not text.startswith("/"))
    return (None if unclear else text), redirect.writes
