"""The entries of a session as a tree, and the position in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pi_core import ConfigError

from .bodies import Label, SessionName
from .entries import Entry
from .loading import collection_paused
from .projection import ProjectionBuilder


@dataclass(slots=True)
class TreeNode:
    """An entry with what follows it.

    :param children: in the order in which they were appended.
    :param label: the mark it has on the present branch.
    """

    entry: Entry
    children: list[TreeNode] = field(default_factory=list)
    label: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, as deep as the session is long."""
        made: dict[str, Any] = {}
        waiting: list[tuple[TreeNode, dict[str, Any]]] = [(self, made)]
        while waiting:
            node, data = waiting.pop()
            children: list[dict[str, Any]] = [{} for _ in node.children]
            data.update(entry=node.entry.to_json(), children=children)
            if node.label is not None:
                data["label"] = node.label
            waiting.extend(zip(node.children, children, strict=True))
        return made


class EntryTree:
    """Entries in the order in which they were appended. A new one becomes a child of the leaf, and the leaf.

    :param entries: those that are there already; the last one is the leaf.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.order = list(entries)
        self.by_id = {entry.id: entry for entry in self.order}
        self.leaf_id = self.order[-1].id if self.order else None
        self.name: str | None = None
        for entry in self.order:
            self._named(entry)
        self._context: ProjectionBuilder | None = None
        self._labels: dict[str, str] | None = None

    @property
    def context(self) -> ProjectionBuilder:
        """What the model reads at the leaf."""
        if self._context is None:
            with collection_paused():
                self._context = ProjectionBuilder(self.path_to(self.leaf_id))
        return self._context

    def add(self, entry: Entry) -> None:
        """Append an entry whose parent is the leaf."""
        context = self.context
        self.order.append(entry)
        self.by_id[entry.id] = entry
        self.leaf_id = entry.id
        self._named(entry)
        context.add(entry)
        if self._labels is not None:
            self._labelled(entry)

    def branch(self, entry_id: str | None) -> None:
        """Move the leaf.

        :param entry_id: an entry; ``None`` is before the first one, so that the next entry is another root.
        :raises ConfigError: there is no such entry.
        """
        if entry_id is not None:
            self.get(entry_id)
        if entry_id != self.leaf_id:
            self.leaf_id = entry_id
            self._context = self._labels = None

    def get(self, entry_id: str) -> Entry:
        """Return an entry.

        :raises ConfigError: there is none with this id.
        """
        found = self.by_id.get(entry_id)
        if found is None:
            raise ConfigError(f"The session has no entry {entry_id!r}")
        return found

    def path_to(self, entry_id: str | None) -> list[Entry]:
        """Return the way from a root to an entry.

        :raises ConfigError: there is no such entry.
        """
        path = []
        while entry_id is not None:
            entry = self.get(entry_id)
            path.append(entry)
            entry_id = entry.parent_id
        path.reverse()
        return path

    def label_of(self, entry_id: str) -> str | None:
        """Return the mark that an entry has on the present branch."""
        return self._present_labels().get(entry_id)

    def nodes(self) -> list[TreeNode]:
        """Return the roots with all that follows them."""
        labels = self._present_labels()
        nodes = {entry.id: TreeNode(entry, label=labels.get(entry.id)) for entry in self.order}
        roots: list[TreeNode] = []
        for node in nodes.values():
            parent = node.entry.parent_id
            (roots if parent is None else nodes[parent].children).append(node)
        return roots

    def _present_labels(self) -> dict[str, str]:
        if self._labels is None:
            self._labels = {}
            for entry in self.context.path:
                self._labelled(entry)
        return self._labels

    def _labelled(self, entry: Entry) -> None:
        body = entry.body if entry.type == "label" else None
        if isinstance(body, Label) and self._labels is not None:
            if body.label:
                self._labels[body.target_id] = body.label
            else:
                self._labels.pop(body.target_id, None)

    def _named(self, entry: Entry) -> None:
        body = entry.body if entry.type == "session_info" else None
        if isinstance(body, SessionName):
            self.name = body.name or None
