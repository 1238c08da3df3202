"""Colors: only the sixteen that every terminal's own theme defines, so that they fit light and dark ones."""

from __future__ import annotations

from typing import Final

from pygments.token import (
    Comment,
    Error,
    Generic,
    Keyword,
    Literal,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
)
from rich.style import Style
from rich.syntax import ANSISyntaxTheme
from rich.theme import Theme

RICH: Final = Theme(
    {
        "accent": "cyan",
        "user": "bold",
        "dim": "dim",
        "ok": "green",
        "warning": "yellow",
        "error": "red",
        "thinking": "dim italic",
        "diff.added": "green",
        "diff.removed": "red",
        "markdown.paragraph": "none",
        "markdown.h1": "bold cyan",
        "markdown.h2": "bold cyan",
        "markdown.h3": "bold",
        "markdown.h4": "bold",
        "markdown.h5": "bold",
        "markdown.h6": "bold",
        "markdown.code": "cyan",
        "markdown.code_block": "none",
        "markdown.block_quote": "dim",
        "markdown.hr": "dim",
        "markdown.item.bullet": "dim",
        "markdown.item.number": "dim",
        "markdown.link": "none",
        "markdown.link_url": "underline",
        "markdown.s": "strike",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
    }
)
"""Styles of what is printed."""

CODE: Final = ANSISyntaxTheme(
    {
        Comment: Style(dim=True, italic=True),
        Error: Style(color="red"),
        Generic.Deleted: Style(color="red"),
        Generic.Inserted: Style(color="green"),
        Generic.Heading: Style(bold=True),
        Keyword: Style(color="magenta"),
        Keyword.Constant: Style(color="cyan"),
        Literal: Style(color="green"),
        Name.Builtin: Style(color="cyan"),
        Name.Class: Style(bold=True),
        Name.Decorator: Style(color="yellow"),
        Name.Function: Style(color="blue"),
        Name.Tag: Style(color="magenta"),
        Number: Style(color="cyan"),
        Operator.Word: Style(color="magenta"),
        Punctuation: Style(),
        String: Style(color="green"),
        String.Doc: Style(dim=True, italic=True),
    }
)
"""Colors of code."""

LIVE: Final = {
    "accent": "ansicyan",
    "dim": "dim",
    "warning": "ansiyellow",
    "error": "ansired",
    "chosen": "ansicyan bold",
    "title": "bold",
    "placeholder": "dim",
}
"""Styles of what is drawn below the conversation."""
