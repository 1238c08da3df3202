"""The tree of a session as lines: one for each entry, further in where branches part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .entries import Entry
from .session import Session
from .transcript import items

_LONGEST: Final = 1000


@dataclass(frozen=True, slots=True)
class OutlineRow:
    """An entry in the outline of a session.

    :param depth: how many times branches parted before it.
    :param label: its mark, if it has one.
    :param is_leaf: whether it is the present position.
    """

    entry: Entry
    depth: int
    label: str | None
    is_leaf: bool

    @property
    def title(self) -> str:
        """Who or what the entry is of."""
        item = next(items([self.entry]), None)
        return (self.entry.role or self.entry.type) if item is None else item.title

    @property
    def words(self) -> str:
        """The beginning of what it says, in one line; empty when it says nothing."""
        item = next(items([self.entry]), None)
        first = "" if item is None else next((part.text for part in item.parts if part.text), "")
        return " ".join(first[:_LONGEST].split())[:80]

    @property
    def text(self) -> str:
        """Title and words."""
        words = self.words
        return f"{self.title}: {words}" if words else self.title


def outline(session: Session) -> Iterator[OutlineRow]:
    """Return a row for each entry, a branch to its end before the next one."""
    waiting = [(root, 0) for root in reversed(session.tree())]
    while waiting:
        node, depth = waiting.pop()
        yield OutlineRow(node.entry, depth, node.label, node.entry.id == session.leaf_id)
        deeper = depth + (len(node.children) > 1)
        waiting.extend((child, deeper) for child in reversed(node.children))


__all__ = ["OutlineRow", "outline"]
