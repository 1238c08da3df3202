"""How the markdown of answers looks: a margin where others draw boxes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import (
    BlockQuote,
    CodeBlock,
    Heading,
    HorizontalRule,
    ImageItem,
    ListElement,
    ListItem,
    Markdown,
    MarkdownElement,
    TableElement,
)
from rich.padding import Padding
from rich.rule import Rule
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ._code import highlighted

PARSER: Final = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
"""Reads answers; HTML is text in them."""


class _Heading(Heading):
    LEVEL_ALIGN: ClassVar = {}


class _CodeBlock(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        language = "" if self.lexer_name == "text" else self.lexer_name
        lines = str(self.text).rstrip("\n").split("\n")
        yield Padding(highlighted(lines, language), (0, 0, 0, 2), expand=False)


class _BlockQuote(BlockQuote):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(
            self.elements, options.update(width=options.max_width - 2), style=self.style, pad=False
        )
        for line in lines:
            yield Segment("│ ", self.style)
            yield from line
            yield Segment("\n")


class _Rule(HorizontalRule):
    new_line: ClassVar[bool] = True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Rule(style=console.get_style("markdown.hr"), characters="─")


class _Table(TableElement):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False)
        header = self.header.row.cells if self.header is not None and self.header.row is not None else []
        for cell in header:
            heading = cell.content.copy()
            heading.stylize("markdown.table.header")
            table.add_column(heading, justify=cell.justify, overflow="fold")
        for row in self.body.rows if self.body is not None else []:
            table.add_row(*[cell.content for cell in row.cells])
        yield table


class _List(ListElement):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        bullet = self.list_type == "bullet_list_open"
        for index, item in enumerate(self.items):
            yield from _item(item, console, options, "•" if bullet else f"{(self.list_start or 0) + index}.")


def _item(item: ListItem, console: Console, options: ConsoleOptions, mark: str) -> RenderResult:
    # All numbers below 100 have the same width, since the items of a list come one by one.
    width = 2 if mark == "•" else max(4, len(mark) + 1)
    style = console.get_style("markdown.item.bullet")
    lines = console.render_lines(
        item.elements, options.update(width=options.max_width - width), style=item.style, pad=False
    )
    for number, line in enumerate(lines):
        yield Segment(" " * width if number else f"{mark:>{width - 1}} ", style)
        yield from line
        yield Segment("\n")


class _Image(ImageItem):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        name = str(self.text) or self.destination
        yield Text(f"[image: {name}]" if name == self.destination else f"[image: {name}, {self.destination}]", end="")


class Answer(Markdown):
    """Parsed markdown.

    :param tokens: what the parser made of it.
    :param hyperlinks: whether links can be clicked; else their addresses are printed.
    """

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _CodeBlock,
        "code_block": _CodeBlock,
        "blockquote_open": _BlockQuote,
        "hr": _Rule,
        "table_open": _Table,
        "bullet_list_open": _List,
        "ordered_list_open": _List,
        "image": _Image,
    }

    def __init__(self, tokens: Sequence[Token], *, hyperlinks: bool = False) -> None:
        super().__init__("", hyperlinks=hyperlinks)
        self.parsed = list(tokens) if hyperlinks else [_with_addresses(token) for token in tokens]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        begun = False
        for part in super().__rich_console__(console, options):
            # An empty line comes before each block that has blocks in it, also before the first one.
            begun = begun or not isinstance(part, Segment) or part.text != "\n"
            if begun:
                yield part

    @classmethod
    def parse(cls, text: str, *, hyperlinks: bool = False) -> Answer:
        """Return the markdown of a whole text."""
        return cls(PARSER.parse(text), hyperlinks=hyperlinks)


def _with_addresses(token: Token) -> Token:
    """Return a token with the addresses of its links as text behind them, once where link and address are the same."""
    if not token.children or token.type != "inline":
        return token
    made = token.copy()
    made.children = list(_spelled_out(token.children))
    return made


def _spelled_out(children: Iterable[Token]) -> Iterable[Token]:
    address, shown = "", ""
    for child in children:
        if child.type == "link_open":
            address, shown = str(child.attrs.get("href", "")), ""
        elif child.type == "link_close":
            if address.removeprefix("mailto:") != shown:
                yield Token("text", "", 0, content=f" ({address})")
        else:
            shown += child.content
            yield child
