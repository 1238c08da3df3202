"""Values as they are written in configuration files: ``!command``, text with ``$NAME`` or ``${NAME}``, or the value.

``$$`` is a dollar sign and ``$!`` an exclamation mark. Any other ``$`` is what it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_PARTS: Final = re.compile(r"\$(?:(?P<escaped>[$!])|(?P<bare>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)\})", re.ASCII)


class UnresolvedError(Exception):
    """A value that cannot be had now; the text is the reason, without the value."""


class Template:
    """A value as it is written. Its ``repr`` does not show it, since it may be the secret itself.

    :param source: the text in the file.
    """

    __slots__ = ("_source", "command", "variables")

    command: str | None
    """The shell command whose output is the value, ``None`` if it is no command."""
    variables: tuple[str, ...]
    """The names of the variables in the text, in order."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.command = source[1:].strip() if source.startswith("!") else None
        names = [] if self.command is not None else [_name(part) for part in _PARTS.finditer(source)]
        self.variables = tuple(dict.fromkeys(name for name in names if name))

    def __repr__(self) -> str:
        return f"Template({self.kind})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Template) and other._source == self._source

    def __hash__(self) -> int:
        return hash(self._source)

    @property
    def kind(self) -> str:
        """What the value comes from, in words that show no secret: a command, variables, or the file itself."""
        if self.command is not None:
            return "a command"
        return ", ".join(self.variables) or "a text"

    def missing(self, environ: Mapping[str, str]) -> list[str]:
        """Return the names of the variables that are not set, or empty. A command is not run."""
        return [name for name in self.variables if not environ.get(name)]

    async def resolve(self, environ: Mapping[str, str]) -> str:
        """Return the value.

        :param environ: where variables are looked up, and the environment of the command.
        :raises UnresolvedError: a variable is missing or the command failed; says which, and why.
        """
        if self.command is None:
            return self.expand(environ)
        from ._shell import CommandError, output_of

        if not self.command:
            raise UnresolvedError("there is no command after '!'")
        try:
            return await output_of(self.command, environ)
        except CommandError as error:
            raise UnresolvedError(str(error)) from None

    def expand(self, environ: Mapping[str, str]) -> str:
        """Return the value of a template that is no command.

        :raises UnresolvedError: a variable is missing.
        """
        missing = self.missing(environ)
        if missing:
            words = ("variable", "is") if len(missing) == 1 else ("variables", "are")
            raise UnresolvedError(f"the environment {words[0]} {', '.join(missing)} {words[1]} not set, or empty")
        text = _PARTS.sub(lambda part: part["escaped"] or environ[_name(part)], self._source)
        if not text.strip():
            raise UnresolvedError("the value is empty")
        return text


def _name(part: re.Match[str]) -> str:
    return part["bare"] or part["braced"] or ""
