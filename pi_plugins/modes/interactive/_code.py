"""Code with colors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound
from rich.text import Text

from .theme import CODE

CONTEXT: Final = 60
"""Lines before a piece of code that are looked at to color it: long strings and comments begin there."""


@lru_cache(maxsize=64)
def lexer_for(language: str) -> Lexer | None:
    """Return what knows a language, by its name; ``None`` when nothing does."""
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@lru_cache(maxsize=64)
def language_of(file_name: str) -> str:
    """Return the language of a file by its name; empty when it is none that is known."""
    try:
        return str(get_lexer_for_filename(file_name).aliases[0])
    except (ClassNotFound, IndexError):
        return ""


def highlighted(lines: Sequence[str], language: str, before: Sequence[str] = ()) -> Text:
    """Return lines of code with colors.

    :param before: lines that stand before them and are not returned.
    """
    code = "\n".join(lines)
    lexer = lexer_for(language) if language else None
    if lexer is None:
        return Text(code)
    context = list(before[-CONTEXT:])
    text = Text()
    text.append_tokens(
        (token, CODE.get_style_for_token(kind)) for kind, token in lexer.get_tokens("\n".join([*context, code]))
    )
    colored = text.split("\n", allow_blank=True)
    return Text("\n").join(colored[len(context) : len(context) + len(lines)])
