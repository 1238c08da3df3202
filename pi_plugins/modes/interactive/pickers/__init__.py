"""What the user chooses from lists: a model, a session, a place in the tree, one of the own messages."""

from __future__ import annotations

from .models import DEFAULT, pick_model
from .sessions import ALL_FOLDERS, pick_session
from .tree import FORK, LABEL, NEXT_FILTER, SUMMARISE, TreeFilter, TreePick, pick_entry, pick_message

__all__ = [
    "ALL_FOLDERS",
    "DEFAULT",
    "FORK",
    "LABEL",
    "NEXT_FILTER",
    "SUMMARISE",
    "TreeFilter",
    "TreePick",
    "pick_entry",
    "pick_message",
    "pick_model",
    "pick_session",
]
