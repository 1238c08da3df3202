"""Commands that go to another session, or to another place in this one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pi_core import ConfigError
from pi_plugins.coding_agent import SlashCommand
from pi_plugins.coding_agent.events import EntryEvent
from pi_plugins.sessions import SessionInUseError

from ..pickers import FORK, LABEL, SUMMARISE, pick_entry, pick_message, pick_session

if TYPE_CHECKING:
    from pi_plugins.coding_agent import AgentSession

    from ..ui import Ui


class MovingCommands:
    """New sessions, others, forks, and the tree."""

    def __init__(self, ui: Ui) -> None:
        self._ui = ui

    def commands(self) -> list[SlashCommand]:
        """Return the commands."""
        return [
            SlashCommand("new", "Begin a new session", self.new),
            SlashCommand("resume", "Go on with another session", self.resume),
            SlashCommand("tree", "Go to another place in this session", self.tree),
            SlashCommand("fork", "Go on in a copy that ends before a message", self.fork),
        ]

    async def new(self, text: str, session: AgentSession) -> str:
        """Begin a session in the same folder."""
        await session.moves.new()
        if text:
            session.set_name(text)
        return "A new session"

    async def resume(self, text: str, session: AgentSession) -> str | None:
        """Go on with the session that a text names, or that the user chooses."""
        if session.folder is None:
            raise ConfigError("This session is kept in memory, beside no others: start pi without --no-session")
        if text:
            from pi_plugins.sessions import find_session

            path, cwd = find_session(text, session.cwd, session.folder), str(session.cwd)
        else:
            _check_idle(session)
            picked = await pick_session(self._ui, session.cwd, session.folder, current=session.store.path)
            if picked is None:
                return None
            path, cwd = picked.ref.path, picked.ref.header.cwd
        if cwd != str(session.cwd):
            message = f"It works in {cwd}. Go on with a copy of it in {session.cwd}?"
            return await self._copy(session, path, "The session is of another folder", message)
        try:
            await session.moves.open(path)
        except SessionInUseError as error:
            return await self._copy(
                session,
                path,
                "The session is in use",
                f"{error.who.capitalize()} writes {error.path}.\nGo on with a copy of it?",
            )
        return _where(session)

    async def _copy(self, session: AgentSession, path: Path, title: str, message: str) -> str | None:
        if not await self._ui.confirm(title, message):
            return None
        await session.moves.copy(path)
        return f"{_where(session)}, a copy"

    async def fork(self, text: str, session: AgentSession) -> str | None:
        """Go on in a copy of this session up to a message, which comes into the editor."""
        _check_idle(session)
        entry_id = await pick_message(self._ui, session)
        if entry_id is None:
            return None
        self._ui.set_editor_text(await session.moves.fork(entry_id) or "")
        return f"{_where(session)}, a copy"

    async def tree(self, text: str, session: AgentSession) -> str | None:
        """Let the user go through the tree: go to an entry, fork there, label it."""
        _check_idle(session)
        selected = None
        while True:
            store = session.store
            shown = session.settings.tree_filter_mode
            picked = await pick_entry(self._ui, store, shown=shown, selected=selected)
            if picked is None:
                return None
            if picked.key == LABEL:
                label = await self._ui.input("Label (empty takes it away)", picked.label or "")
                if label is not None:
                    await session.say(EntryEvent(store.append_label(picked.entry_id, label.strip() or None)))
                selected = picked.entry_id
                continue
            if picked.key == FORK:
                await session.moves.fork(picked.entry_id, "at")
                return f"{_where(session)}, a copy"
            return await self._go(session, picked.entry_id, summarise=picked.key == SUMMARISE)

    async def _go(self, session: AgentSession, entry_id: str, *, summarise: bool) -> str | None:
        focus = None
        if summarise and not session.settings.branch_summary.skip_prompt:
            focus = await self._ui.input("What is the summary to attend to? (empty: everything)")
            if focus is None:
                return None
        if summarise:
            self._ui.set_status("tree", "Summarising the branch…")
        try:
            text = await session.moves.navigate(entry_id, summarize=summarise, focus=(focus or "").strip() or None)
        finally:
            self._ui.set_status("tree", None)
        if text is not None:
            self._ui.set_editor_text(text)
        return "What is said next makes a branch here"


def _check_idle(session: AgentSession) -> None:
    """Say so before the user has chosen anything.

    :raises ConfigError: something goes on.
    """
    if not session.is_idle:
        raise ConfigError("The agent works: wait until it is done, or abort it with Escape")


def _where(session: AgentSession) -> str:
    return f"Session {session.store.name or session.store.id}"


__all__ = ["MovingCommands"]
