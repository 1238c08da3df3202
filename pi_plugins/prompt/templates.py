"""Prompt templates: prompts that are kept in a file, called as ``/name arguments``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ._frontmatter import parse
from .files import read_file_or_warn

_ARGUMENT = re.compile(r'"((?:\\"|[^"])*)"(?=\s|\Z)|\'((?:\\\'|[^\'])*)\'(?=\s|\Z)|\S+')
_PLACEHOLDER = re.compile(
    r"""\$(?:
        (?P<place>[1-9]\d*)
        | (?P<all>@|ARGUMENTS\b)
        | \{(?P<which>[1-9]\d*|@):-(?P<default>[^}]*)\}
        | \{@:(?P<first>\d+)(?::(?P<count>\d+))?\}
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt template.

    :param description: one line for lists.
    :param argument_hint: what it takes, for people; ``None`` if it does not say.
    :param body: the prompt, with placeholders.
    :param origin: who brought it, for people.
    """

    name: str
    description: str
    argument_hint: str | None
    body: str
    path: Path
    origin: str

    def expand(self, arguments: str) -> str:
        """Return the prompt with the arguments put in; one without placeholders is followed by them."""
        if not _PLACEHOLDER.search(self.body):
            return f"{self.body}\n\n{arguments}" if arguments else self.body
        return substitute(self.body, split_arguments(arguments))


def split_arguments(text: str) -> list[str]:
    r"""Split what was typed at white space.

    A single or double quote that begins an argument and another one that ends it hold it together, and ``\"`` inside
    is a quote. Any other quote is a character like others, so that ``it's`` needs no care.
    """
    arguments = []
    for found in _ARGUMENT.finditer(text):
        double, single = found.groups()
        if double is not None:
            arguments.append(double.replace('\\"', '"'))
        elif single is not None:
            arguments.append(single.replace("\\'", "'"))
        else:
            arguments.append(found[0])
    return arguments


def substitute(body: str, arguments: list[str]) -> str:
    """Put arguments in, in one pass: what an argument holds is not looked at again.

    ``$1`` is the first one and ``$@`` or ``$ARGUMENTS`` all, with a space between them. ``${1:-text}`` and
    ``${@:-text}`` have a text for what is missing or empty. ``${@:2}`` is all from the second on, ``${@:2:3}`` three of
    them. What is missing is empty.
    """

    def argument(place: str) -> str:
        number = int(place)
        return arguments[number - 1] if number <= len(arguments) else ""

    def value(found: re.Match[str]) -> str:
        if found["place"]:
            return argument(found["place"])
        if found["all"]:
            return " ".join(arguments)
        if found["which"]:
            given = " ".join(arguments) if found["which"] == "@" else argument(found["which"])
            return given or found["default"]
        first = max(int(found["first"]) - 1, 0)
        last = None if found["count"] is None else first + int(found["count"])
        return " ".join(arguments[first:last])

    return _PLACEHOLDER.sub(value, body)


def load_template(path: Path, origin: str, warnings: list[str]) -> Template | None:
    """Read a prompt template; what is wrong with it is added to the warnings.

    :returns: ``None`` when it cannot be used: it cannot be read, or is empty.
    """
    file = read_file_or_warn(path, warnings)
    if file is None:
        return None
    document = parse(file.text)
    if not document.body:
        warnings.append(f"{path}: the prompt template is empty, so it is not used")
        return None
    if document.problem is not None:
        warnings.append(f"{path}: {document.problem}. The template is used without its frontmatter")
    first_line = document.body.splitlines()[0].strip()
    return Template(
        name=path.stem,
        description=document.text("description") or first_line,
        argument_hint=document.text("argument-hint"),
        body=document.body,
        path=path,
        origin=origin,
    )


__all__ = ["Template", "load_template", "split_arguments", "substitute"]
