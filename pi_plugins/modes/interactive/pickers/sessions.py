"""The choice of a session."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .._text import count
from ..ui import Choice

if TYPE_CHECKING:
    from pi_plugins.sessions import SessionInfo

    from ..ui import Ui

ALL_FOLDERS: Final = "c-a"
"""The key between the sessions of the folder and those of all folders."""


async def pick_session(ui: Ui, cwd: Path, folder: Path, *, current: Path | None = None) -> SessionInfo | None:
    """Let the user choose a session of the folder, or of all folders.

    :param cwd: the folder that the agent works in.
    :param folder: the folder of all sessions.
    :param current: the file of the session that is open, which is left out.
    """
    from pi_plugins.sessions import list_sessions

    here = True
    while True:
        listed = await asyncio.to_thread(list_sessions, cwd if here else None, folder)
        found = [info for info in listed if info.ref.path != current]
        if not found and here:
            here = False
            continue
        if not found:
            ui.show(f"There is no other session in {folder}")
            return None
        now = time.time()
        choices = [Choice(info, _title(info), _about(info, now, here)) for info in found]
        title = "Sessions of this folder" if here else "Sessions of all folders"
        chosen = await ui.select(title, choices, keys={ALL_FOLDERS: "all folders" if here else "this folder"})
        if chosen is None:
            return None
        if chosen[1] != ALL_FOLDERS:
            picked: SessionInfo = chosen[0].value
            return picked
        here = not here


def _title(info: SessionInfo) -> str:
    return info.title or "(nothing said)"


def _about(info: SessionInfo, now: float, here: bool) -> str:
    about = f"{_age(now - info.ref.modified / 1e9)}, {count(info.messages, 'message')}"
    return about if here else f"{about}, {info.ref.header.cwd}"


def _age(seconds: float) -> str:
    """Return how long ago something was, in few characters."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"


__all__ = ["ALL_FOLDERS", "pick_session"]
