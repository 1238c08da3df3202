"""Moving in the tree of a session, and from one session to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pi_core import Block, ConfigError, UserMessage
from pi_plugins.models.levels import clamp_level
from pi_plugins.sessions import Entry, Session
from pi_plugins.sessions.compaction import summarize_branch

from .events import EntryEvent, texts

if TYPE_CHECKING:
    from .session import AgentSession


class TreeMoves:
    """Moves a session to another entry of its tree, or to another session. Nothing may go on meanwhile."""

    def __init__(self, session: AgentSession) -> None:
        self._session = session

    async def navigate(
        self,
        target_id: str,
        *,
        summarize: bool = False,
        focus: str | None = None,
        label: str | None = None,
    ) -> str | None:
        """Go to an entry. What is said next makes a branch there.

        A message of the user is gone back *before*, so that it can be said in other words.

        :param summarize: put a summary of the branch that is left at the new place.
        :param focus: what that summary is to attend to.
        :param label: a label for the entry.
        :returns: the text of the user's message that was gone back before.
        :raises ConfigError: there is no such entry, something goes on, or a plugin refuses.
        """
        session, store = self._session, self._session.store
        self._check_idle()
        target = store.entry(target_id)
        left = store.leaf_id
        await self._ask("session_before_tree", target_id=target_id, summarize=summarize)
        text = _user_text(target)
        place = target_id if text is None else target.parent_id
        summary = None
        if summarize and left is not None:
            shared = {entry.id for entry in store.path_to(place)} if place is not None else set()
            abandoned = [entry for entry in store.path_to(left) if entry.id not in shared]
            if abandoned:
                summary = await summarize_branch(
                    abandoned,
                    session.compactor.complete,
                    session.model,
                    session.thinking_level,
                    session.settings.branch_summary,
                    focus=focus,
                )
        store.branch(place)
        if summary is not None and left is not None:
            entry = store.append_branch_summary(left, summary.summary, usage=summary.usage, details=summary.details)
            session.emit_soon(EntryEvent(entry))
        if label is not None:
            session.emit_soon(EntryEvent(store.append_label(target_id, label or None)))
        session.agent.state.messages = store.projection().messages
        await session.call_hook("session_tree", session=session, new_leaf_id=store.leaf_id, old_leaf_id=left)
        return text

    async def new(self, *, parent: str | None = None) -> None:
        """Begin a new session in the same folder.

        :raises ConfigError: something goes on, or a plugin refuses.
        """
        self._check_idle()
        await self._ask("session_before_switch", reason="new", target=None)
        session = self._session
        types = session.message_types
        if session.folder is None:
            store = Session.in_memory(session.cwd, types=types)
        else:
            store = Session.create(session.cwd, directory=session.folder, parent=parent, types=types)
        await self.replace(store, "new")

    async def open(self, path: Path) -> None:
        """Go on with the session of a file.

        :raises SessionInUseError: another process writes it.
        :raises ConfigError: the file is no session, something goes on, or a plugin refuses.
        """
        self._check_idle()
        await self._ask("session_before_switch", reason="resume", target=str(path))
        await self.replace(Session.open(path, types=self._session.message_types), "resume")

    async def copy(self, path: Path) -> None:
        """Go on in a copy of the session of a file, which another process may be writing.

        :raises ConfigError: the file is no session, something goes on, or a plugin refuses.
        """
        self._check_idle()
        await self._ask("session_before_switch", reason="resume", target=str(path))
        session = self._session
        copied = Session.fork(path, session.cwd, directory=session.folder, types=session.message_types)
        await self.replace(copied, "fork")

    async def fork(self, entry_id: str, position: Literal["before", "at"] = "before") -> str | None:
        """Go on in a new session that has the path to an entry.

        :param position: ``before`` leaves the entry itself out.
        :returns: the text of the user's message that was left out.
        :raises ConfigError: there is no such entry, something goes on, or a plugin refuses.
        """
        self._check_idle()
        session, store = self._session, self._session.store
        entry = store.entry(entry_id)
        await self._ask("session_before_fork", entry_id=entry_id, position=position)
        path = store.path_to(entry_id)
        kept = path[:-1] if position == "before" else path
        forked = Session.fork(store, session.cwd, directory=session.folder, entries=kept, types=session.message_types)
        await self.replace(forked, "fork")
        return _user_text(entry) if position == "before" else None

    def fork_points(self) -> list[tuple[str, str]]:
        """Return id and text of each message of the user on the current branch."""
        found = []
        for entry in self._session.store.path_to():
            text = _user_text(entry)
            if text is not None:
                found.append((entry.id, text))
        return found

    async def replace(self, store: Session, reason: str) -> None:
        """Let another session take the place of this one; listeners and agent stay."""
        session = self._session
        await session.call_hook("session_shutdown", session=session, reason=reason)
        session.store.close()
        session.store = store
        session.clear_queue()
        session.agent.reset()
        projection = store.projection()
        session.agent.state.messages = projection.messages
        if projection.model is not None:
            model = await session.find_model(*projection.model)
            if model is not None:
                session.agent.state.model = model
        if projection.thinking_level is not None:
            session.agent.state.thinking_level = clamp_level(session.model, projection.thinking_level)
        await session.start(reason)

    def _check_idle(self) -> None:
        if not self._session.is_idle:
            raise ConfigError("The agent works: wait until it is done, or abort it first")

    async def _ask(self, hook: str, **arguments: object) -> None:
        verdict = await self._session.call_hook(hook, session=self._session, **arguments)
        if isinstance(verdict, Block):
            raise ConfigError(verdict.reason or f"A plugin refuses it ({hook})")


def _user_text(entry: Entry) -> str | None:
    """The text of a user's message, ``None`` for every other entry."""
    message = getattr(entry, "message", None)
    return texts([message])[0] if isinstance(message, UserMessage) else None
