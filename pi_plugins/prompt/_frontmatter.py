"""Markdown files that begin with a header in YAML between two lines of ``---``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_HEADER = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_DEEPEST = 32


@dataclass(frozen=True, slots=True)
class Document:
    """A file taken apart.

    :param header: the values by name; every scalar is a text, as it is written.
    :param body: what follows the header.
    :param problem: what is wrong with the header, with its line; such a header has no values.
    """

    header: Mapping[str, object]
    body: str
    problem: str | None = None

    def text(self, key: str) -> str | None:
        """Return a value in one line, ``None`` if there is none; ``[a, b]`` is the text it looks like."""
        value = self.header.get(key)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            value = f"[{', '.join(value)}]"
        return " ".join(value.split()) or None if isinstance(value, str) else None


def parse(text: str) -> Document:
    """Take a file apart; a text without a header is all body."""
    found = _HEADER.match(text)
    if found is None:
        return Document({}, text.strip())
    body = text[found.end() :].strip()
    import yaml

    # The loader of texts: with the others `no` would be False and 1.10 a number.
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        depth = 0
        for event in yaml.parse(found[1], Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:  # loading it could use up the stack, which some versions of libyaml do not survive
                return Document({}, body, f"line {_line(event.start_mark)}: more than {_DEEPEST} levels of values")
        header = yaml.load(found[1], Loader=loader)
    except yaml.MarkedYAMLError as error:
        problem = f"line {_line(error.problem_mark)}: {error.problem}; put a text with colons or brackets in quotes"
        return Document({}, body, problem)
    except yaml.YAMLError as error:
        return Document({}, body, f"line 2: {error}")
    if header in (None, ""):
        return Document({}, body)
    if not isinstance(header, dict):
        return Document({}, body, "line 2: expected lines of name: value")
    return Document(header, body)


def _line(mark: Any) -> int:
    """The line in the file of a place in its header, whose first line is the second one."""
    return 2 if mark is None else mark.line + 2
