"""Which models a text means: exactly, or roughly."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple

from pi_core import ConfigError

from ._validation import LEVELS

if TYPE_CHECKING:
    from pi_core import ThinkingLevel

_LEVELS: Final[Mapping[str, ThinkingLevel]] = {level: level for level in LEVELS}
_DATED: Final = re.compile(r"-\d{8}$|-\d{4}-\d{2}-\d{2}$")


class Candidate(NamedTuple):
    """A model as far as its name goes."""

    provider: str
    id: str
    name: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.id}"


@dataclass(frozen=True, slots=True)
class Matcher:
    """Finds models by what people type. Case does not count.

    :param candidates: all models.
    :param providers: all providers, also those without a model.
    :param usable: whether there is a key for a provider; decides between providers that serve the same model.
    """

    candidates: Sequence[Candidate]
    providers: Sequence[str]
    usable: Callable[[str], bool]

    def find(self, text: str, provider: str | None = None) -> list[Candidate]:
        """Return the model a text means; several when it could be as well the one of another provider; none if none.

        :param provider: whose models are looked at.
        """
        named, rest = (provider, text) if provider is not None else self.split(text)
        if provider is not None and text.lower().startswith(f"{provider.lower()}/"):
            rest = text[len(provider) + 1 :]
        own = self._exact(rest, named) if named is not None else []
        others = [one for one in self._exact(text, None) if one not in own] if provider is None else []
        if own:
            return self._own_or_others(own[:1], others)
        return self._decided(others) or self._rough(rest if named is not None else text, named)

    def is_name(self, text: str) -> bool:
        """Whether a text is the id of a model, or ``provider/id``."""
        return any(text.lower() in (one.id.lower(), str(one).lower()) for one in self.candidates)

    def split(self, text: str) -> tuple[str | None, str]:
        """Return the provider that a text starts with, the longest that fits, and the rest."""
        fitting = [name for name in self.providers if text.lower().startswith(f"{name.lower()}/")]
        if not fitting:
            return None, text
        longest = max(fitting, key=len)
        return longest, text[len(longest) + 1 :]

    def matching(self, pattern: str) -> list[Candidate]:
        """Return the models whose id, or ``provider/id``, a pattern with ``*``, ``?`` and ``[...]`` fits.

        Those of the provider that the pattern starts with go before others whose ids start like that.
        """
        wish = pattern.lower()
        named = self.split(pattern)[0]
        own = [one for one in self.candidates if one.provider == named and fnmatchcase(str(one).lower(), wish)]
        return own or [
            one for one in self.candidates if fnmatchcase(str(one).lower(), wish) or fnmatchcase(one.id.lower(), wish)
        ]

    def _exact(self, model_id: str, provider: str | None) -> list[Candidate]:
        wish = model_id.lower()
        found = [one for one in self.candidates if one.id.lower() == wish and provider in (None, one.provider)]
        return [one for one in found if one.id == model_id] or found

    def _own_or_others(self, own: list[Candidate], others: list[Candidate]) -> list[Candidate]:
        """Decide between a model of the provider that was named, and those that are called like the whole text."""
        if self.usable(own[0].provider):
            return own
        usable = [one for one in others if self.usable(one.provider)]
        return usable or own

    def _decided(self, found: list[Candidate]) -> list[Candidate]:
        """Leave those that can be used, if there are any."""
        return [one for one in found if self.usable(one.provider)] or found

    def _rough(self, text: str, provider: str | None) -> list[Candidate]:
        wish = text.lower()
        found = [
            one
            for one in self.candidates
            if provider in (None, one.provider) and (wish in one.id.lower() or wish in one.name.lower())
        ]
        found = self._decided(found)
        aliases = [one for one in found if not _DATED.search(one.id)]
        best = max((one.id for one in aliases or found), key=_rank, default=None)
        return [one for one in found if one.id == best]


def _rank(model_id: str) -> tuple[bool, str]:
    """The higher the better: who makes a model calls it by a plain id, a router puts the maker before it."""
    maker, slash, plain = model_id.rpartition("/")
    return not slash, plain or maker


def split_level(text: str) -> tuple[str, str | None]:
    """Return a text without what follows its last colon, and that."""
    base, colon, level = text.rpartition(":")
    return (base, level) if colon and base else (text, None)


def level_of(word: str | None) -> ThinkingLevel | None:
    """Return the thinking level that a word is, ``None`` if it is none."""
    return None if word is None else _LEVELS.get(word.lower())


def ambiguous(text: str, found: Iterable[Candidate], matcher: Matcher, *, inline_key: bool) -> ConfigError:
    """Return the error for a text that means the model of several providers."""
    listed = sorted(map(str, found))
    if inline_key:
        hint = "--api-key does not choose a provider."
    elif any(matcher.usable(one.provider) for one in found):
        hint = "More than one of these providers has a key."
    else:
        hint = "None of these providers has a key."
    return ConfigError(
        f"The model '{text}' is served by several providers: {', '.join(listed)}. {hint} Name one of them"
    )


def is_pattern(text: str) -> bool:
    """Whether a text has the characters of a pattern."""
    return any(char in text for char in "*?[")
