"""Names beside what they mean, for every width of the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


def rows(pairs: Iterable[tuple[str, str]]) -> Table:
    """Return two columns: names, which stay whole, and texts, which are broken where there is no room."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in pairs:
        table.add_row(Text(name), Text(text))
    return table


__all__ = ["rows"]
