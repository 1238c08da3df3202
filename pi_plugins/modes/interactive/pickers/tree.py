"""The choice of a place in the tree of a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ..ui import Choice

if TYPE_CHECKING:
    from pi_plugins.coding_agent import AgentSession
    from pi_plugins.sessions import OutlineRow, Session

    from ..ui import Ui

FORK: Final = "c-f"
LABEL: Final = "c-l"
SUMMARISE: Final = "c-s"
NEXT_FILTER: Final = "c-o"

TreeFilter: TypeAlias = Literal["default", "no-tools", "user-only", "labeled-only", "all"]
"""Which entries are shown; the values of the setting ``treeFilterMode``."""

_FILTERS: Final[Sequence[TreeFilter]] = ("default", "no-tools", "user-only", "labeled-only", "all")
_SAID: Final = frozenset({"message", "compaction", "branch_summary", "custom_message"})
_DEEPEST: Final = 6


@dataclass(frozen=True, slots=True)
class TreePick:
    """What the user wants with an entry.

    :param key: ``enter`` to go there, or one of the keys of the picker.
    """

    entry_id: str
    key: str
    label: str | None = None


async def pick_entry(
    ui: Ui, store: Session, *, shown: TreeFilter = "default", selected: str | None = None
) -> TreePick | None:
    """Let the user choose an entry of the tree, and what to do with it.

    :param shown: which entries are listed to begin with.
    :param selected: id of the entry to begin at; the present position by default.
    """
    from pi_plugins.sessions import outline

    keys = {SUMMARISE: "summarise", FORK: "fork", LABEL: "label", NEXT_FILTER: "filter"}
    every = list(outline(store))
    if not any(_is_shown(row, "default") for row in every):
        ui.show("Nothing was said in this session yet")
        return None
    at = selected or store.leaf_id
    while True:
        current = {entry.id for entry in store.path_to()} if store.leaf_id is not None else set()
        rows = [row for row in every if _is_shown(row, shown)]
        if not rows:
            shown = _after(shown)
            continue
        choices = [Choice(row, _line(row, current), _short_time(row.entry.timestamp)) for row in rows]
        position = next((place for place, row in enumerate(rows) if row.entry.id == at), max(0, len(rows) - 1))
        chosen = await ui.select(f"Tree: {shown}", choices, keys=keys, selected=position)
        if chosen is None:
            return None
        row, key = chosen[0].value, chosen[1]
        if key != NEXT_FILTER:
            return TreePick(row.entry.id, key, row.label)
        at = row.entry.id
        shown = _after(shown)


def _after(shown: TreeFilter) -> TreeFilter:
    return _FILTERS[(_FILTERS.index(shown) + 1) % len(_FILTERS)]


def _is_shown(row: OutlineRow, shown: TreeFilter) -> bool:
    entry = row.entry
    match shown:
        case "all":
            return True
        case "labeled-only":
            return row.label is not None
        case "user-only":
            return entry.role == "user"
        case "no-tools" if entry.role == "toolResult":
            return False
    return (entry.type in _SAID and entry.role != "system") or row.label is not None


def _line(row: OutlineRow, current: set[str]) -> str:
    mark = "●" if row.is_leaf else "│" if row.entry.id in current else " "
    label = f"[{row.label}] " if row.label else ""
    return f"{mark} {'  ' * min(row.depth, _DEEPEST)}{label}{_saying(row)}"


def _saying(row: OutlineRow) -> str:
    """What an entry says, with who says it as short as that can be."""
    match row.entry.role:
        case "user":
            return f"> {row.words}"
        case "assistant":
            return row.words or "(nothing)"
        case "toolResult":
            return row.title
    return row.text


def _short_time(timestamp: str) -> str:
    return timestamp[11:16]


async def pick_message(ui: Ui, session: AgentSession) -> str | None:
    """Let the user choose one of the own messages on the present branch; returns the id of its entry."""
    points = session.moves.fork_points()
    if not points:
        ui.show("Nothing was said in this session yet")
        return None
    choices = [Choice(entry_id, " ".join(text.split()) or "(no text)") for entry_id, text in points]
    chosen = await ui.select("Fork before", choices, selected=len(choices) - 1)
    return None if chosen is None else str(chosen[0].value)


__all__ = [
    "FORK",
    "LABEL",
    "NEXT_FILTER",
    "SUMMARISE",
    "TreeFilter",
    "TreePick",
    "pick_entry",
    "pick_message",
]
