"""The tree of a session as lines: one for each entry, further in where branches part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .entries import Entry
from .session import Session
from .transcript import items


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
    def text(self) -> str:
        """What the entry says, in one line."""
        item = next(items([self.entry]), None)
        if item is None:
            return self.entry.role or self.entry.type
        text = " ".join(next((part.text for part in item.parts if part.text), "").split())
        return f"{item.title}: {text[:80]}" if text else item.title


def outline(session: Session) -> Iterator[OutlineRow]:
    """Return a row for each entry, a branch to its end before the next one."""
    waiting = [(root, 0) for root in reversed(session.tree())]
    while waiting:
        node, depth = waiting.pop()
        yield OutlineRow(node.entry, depth, node.label, node.entry.id == session.leaf_id)
        deeper = depth + (len(node.children) > 1)
        waiting.extend((child, deeper) for child in reversed(node.children))


__all__ = ["OutlineRow", "outline"]
