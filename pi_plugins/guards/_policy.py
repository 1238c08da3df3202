"""What the rules say about a call."""

from __future__ import annotations

import enum
import fnmatch
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ._commands import Command
from ._paths import PathPattern
from ._subjects import Request, Subject
from .options import Effect, PermissionOptions, Rule

_STRICTNESS: Final[dict[Effect, int]] = {"allow": 0, "ask": 1, "deny": 2}
_WILDCARD: Final = re.compile(r"[*?\[]")


class Match(enum.Enum):
    """Whether a rule is about something."""

    NO = 0
    MAY = 1
    YES = 2


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a call, and why.

    :param subject: what of the call decided.
    :param rule: the rule that decided; ``None`` when none is about it.
    :param outside: whether it was decided by the folders in which file tools may work.
    """

    effect: Effect
    subject: Subject
    rule: Rule | None = None
    outside: bool = False


class Policy:
    """The rules of one set of options, ready to be asked.

    :param cwd: the absolute directory that relative paths start from, without symbolic links.
    :param first: rules that come before those of the options.
    :raises ConfigError: a pattern is malformed.
    """

    def __init__(self, options: PermissionOptions, cwd: str, first: Sequence[Rule] = ()) -> None:
        self.cwd = cwd
        self.roots = [os.path.realpath(os.path.join(cwd, os.path.expanduser(root))) for root in options.roots]
        self._mode = options.mode
        self._outside = options.outside
        self._rules = [_CompiledRule(rule, cwd) for rule in (*first, *options.rules)]

    def judge(self, request: Request) -> Verdict:
        """Return what becomes of a call: the strictest of what becomes of the things it is about."""
        verdicts = [self._judge(subject) for subject in request.subjects]
        whole = next((found.rule for found in self._rules if found.is_about_line(request)), None)
        if whole is not None and not any(map(_is_forbidden, verdicts)):
            verdicts = [
                Verdict("allow", verdict.subject, whole) if verdict.subject.of_line else verdict for verdict in verdicts
            ]
        return max(verdicts, key=lambda verdict: _STRICTNESS[verdict.effect])

    def _judge(self, subject: Subject) -> Verdict:
        matches = [(rule, rule.match(subject)) for rule in self._rules]
        for rule, match in matches:
            if rule.rule.effect == "deny" and match is Match.YES:
                return Verdict("deny", subject, rule.rule)
        outside = self._is_outside(subject)
        if outside and self._outside == "deny":
            return Verdict("deny", subject, outside=True)
        for rule, match in matches:
            effect = rule.rule.effect
            if match is Match.NO or (effect == "allow" and outside and rule.rule.path is None):
                continue
            return Verdict("ask" if effect == "deny" else effect, subject, rule.rule)
        if outside and self._mode != "deny":
            return Verdict("ask", subject, outside=True)
        return Verdict(self._mode, subject)

    def _is_outside(self, subject: Subject) -> bool:
        if not self.roots or not subject.is_file:
            return False
        file = subject.file
        return file is None or not any(file.is_within(root) for root in self.roots)


def _is_forbidden(verdict: Verdict) -> bool:
    """Whether it was denied by what cannot be overruled, rather than because nothing allows it."""
    return verdict.effect == "deny" and (verdict.rule is not None or verdict.outside)


class _CompiledRule:
    def __init__(self, rule: Rule, cwd: str) -> None:
        self.rule = rule
        self._paths = None if rule.path is None else [PathPattern(pattern, cwd) for pattern in rule.path]

    def is_about_line(self, request: Request) -> bool:
        """Whether it allows the whole of a command line, letter by letter."""
        rule = self.rule
        if rule.effect != "allow" or rule.command is None or request.line is None:
            return False
        return fnmatch.fnmatchcase(request.tool, rule.tool) and any(
            literal_text(pattern) == request.line for pattern in rule.command
        )

    def match(self, subject: Subject) -> Match:
        rule = self.rule
        if not any(fnmatch.fnmatchcase(tool, rule.tool) for tool in subject.tools):
            return Match.NO
        if self._paths is not None:
            return self._match_file(subject)
        if rule.command is not None:
            return self._match_command(subject, rule.command)
        return Match.YES

    def _match_file(self, subject: Subject) -> Match:
        assert self._paths is not None
        file, allows = subject.file, self.rule.effect == "allow"
        if not subject.is_file:
            return Match.NO
        if file is None:
            return Match.NO if allows else Match.MAY
        if allows:
            return Match.YES if any(pattern.matches(file) for pattern in self._paths) else Match.NO
        if any(pattern.touches(file) for pattern in self._paths):
            return Match.YES
        below = file.searched and any(pattern.may_touch_below(file) for pattern in self._paths)
        return Match.MAY if below else Match.NO

    def _match_command(self, subject: Subject, patterns: Iterable[str]) -> Match:
        command = subject.command
        if command is None:
            return Match.NO
        if self.rule.effect == "allow":
            fits = any(
                pattern == "*" or (not subject.unclear and fits_text(pattern, command.text)) for pattern in patterns
            )
            return Match.YES if fits else Match.NO
        return max((_match_variants(pattern, command) for pattern in patterns), key=lambda match: match.value)


def _match_variants(pattern: str, command: Command) -> Match:
    if any(fits_text(pattern, text) for text, _ in command.variants):
        return Match.YES
    return Match.MAY if any(_may_fit(pattern, text, certain) for text, certain in command.variants) else Match.NO


def _may_fit(pattern: str, text: str, certain: int) -> bool:
    """Whether a text of which only the beginning is certain may turn out to fit."""
    if certain >= len(text):
        return False
    wildcard = _WILDCARD.search(pattern)
    begins = pattern if wildcard is None else pattern[: wildcard.start()]
    known = text[:certain]
    return begins.startswith(known) or (known.startswith(begins) and wildcard is not None)


def fits_text(pattern: str, text: str) -> bool:
    """Return whether a pattern is one of a command; one that ends with `` *`` is so without arguments too."""
    return _text_test(pattern).fullmatch(text) is not None or (
        pattern.endswith(" *") and _text_test(pattern[:-2]).fullmatch(text) is not None
    )


def literal_text(pattern: str) -> str | None:
    """Return the one text that a pattern fits; ``None`` when it fits several."""
    plain = re.sub(r"\[([*?\[])\]", "\0", pattern)
    if _WILDCARD.search(plain):
        return None
    return re.sub(r"\[([*?\[])\]", r"\1", pattern)


@lru_cache(maxsize=512)
def _text_test(pattern: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern))


__all__ = ["Match", "Policy", "Verdict", "fits_text", "literal_text"]
