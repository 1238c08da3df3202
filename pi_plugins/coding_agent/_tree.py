"""Moving in the tree of a session, and from one session to another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pi_core import Block, ConfigError, PiError, UserMessage
from pi_plugins.sessions import Entry, Session
from pi_plugins.sessions.compaction import BranchSummaryResult, summarize_branch

from ._summaries import SummaryRequests
from .events import EntryEvent, texts

if TYPE_CHECKING:
    from .session import AgentSession


class TreeMoves:
    """Moves a session to another entry of its tree, or to another session. Nothing may go on meanwhile.

    What is submitted during a move runs when it is over, at the new place.
    """

    def __init__(self, session: AgentSession) -> None:
        self._session = session
        self._summary: asyncio.Task[BranchSummaryResult | None] | None = None

    def abort(self) -> None:
        """Give up the summary of a branch, and the move with it."""
        if self._summary is not None:
            self._summary.cancel()

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
        :raises ConfigError: there is no such entry, something goes on, a plugin refuses, or the summary was given up.
        :raises CompactionError: no summary could be made.
        """
        session, store = self._session, self._session.store
        with self._moving():
            target = store.entry(target_id)
            left = store.leaf_id
            await self._ask("session_before_tree", target_id=target_id, summarize=summarize)
            text = _user_text(target)
            place = target_id if text is None else target.parent_id
            summary = None
            if summarize and left is not None:
                shared = {entry.id for entry in store.path_to(place)} if place is not None else set()
                abandoned = [entry for entry in store.path_to(left) if entry.id not in shared]
                summary = await self._summarize(abandoned, focus)
            store.branch(place)
            if summary is not None and left is not None:
                entry = store.append_branch_summary(left, summary.summary, usage=summary.usage, details=summary.details)
                session.emit_soon(EntryEvent(entry))
            if label is not None:
                session.emit_soon(EntryEvent(store.append_label(target_id, label or None)))
            session.agent.state.messages = store.projection().messages
        await session.call_hook("session_tree", session=session, new_leaf_id=store.leaf_id, old_leaf_id=left)
        return text

    async def _summarize(self, abandoned: list[Entry], focus: str | None) -> BranchSummaryResult | None:
        if not abandoned:
            return None
        session = self._session
        requests = SummaryRequests(session, "branchSummary")
        task = self._summary = asyncio.create_task(
            summarize_branch(
                abandoned,
                requests,
                session.model,
                session.thinking_level,
                session.settings.branch_summary,
                focus=focus,
            )
        )
        try:
            await asyncio.wait([task])
            if not task.cancelled():
                return task.result()
        except PiError:
            requests.note_lost()
            raise
        finally:
            task.cancel()
            self._summary = None
        requests.note_lost()
        raise ConfigError("The summary of the branch was given up: the session is where it was")

    async def new(self, *, parent: str | None = None) -> None:
        """Begin a new session in the same folder.

        :raises ConfigError: something goes on, or a plugin refuses.
        """
        session = self._session
        with self._moving():
            await self._ask("session_before_switch", reason="new", target=None)
            types = session.message_types
            if session.folder is None:
                store = Session.in_memory(session.cwd, types=types)
            else:
                store = Session.create(session.cwd, directory=session.folder, parent=parent, types=types)
            await self._replace(store, "new")
        await session.announce("new")

    async def open(self, path: Path) -> None:
        """Go on with the session of a file; nothing when it is the one that is open.

        :raises SessionInUseError: another process writes it.
        :raises ConfigError: the file is no session, something goes on, or a plugin refuses.
        """
        session = self._session
        if self._is_open(path):
            return
        with self._moving():
            await self._ask("session_before_switch", reason="resume", target=str(path))
            await self._replace(Session.open(path, types=session.message_types), "resume")
        await session.announce("resume")

    def _is_open(self, path: Path) -> bool:
        own = self._session.store.path
        return own is not None and path.absolute() == own.absolute()

    async def copy(self, path: Path) -> None:
        """Go on in a copy of the session of a file, which another process may be writing.

        :raises ConfigError: the file is no session, something goes on, or a plugin refuses.
        """
        session = self._session
        with self._moving():
            await self._ask("session_before_switch", reason="resume", target=str(path))
            copied = Session.fork(path, session.cwd, directory=session.folder, types=session.message_types)
            await self._replace(copied, "fork")
        await session.announce("fork")

    async def fork(self, entry_id: str, position: Literal["before", "at"] = "before") -> str | None:
        """Go on in a new session that has the path to an entry.

        :param position: ``before`` leaves the entry itself out.
        :returns: the text of the user's message that was left out.
        :raises ConfigError: there is no such entry, something goes on, or a plugin refuses.
        """
        session, store = self._session, self._session.store
        with self._moving():
            entry = store.entry(entry_id)
            await self._ask("session_before_fork", entry_id=entry_id, position=position)
            path = store.path_to(entry_id)
            kept = path[:-1] if position == "before" else path
            types = session.message_types
            forked = Session.fork(store, session.cwd, directory=session.folder, entries=kept, types=types)
            await self._replace(forked, "fork")
        await session.announce("fork")
        return _user_text(entry) if position == "before" else None

    def fork_points(self) -> list[tuple[str, str]]:
        """Return id and text of each message of the user on the current branch."""
        found = []
        for entry in self._session.store.path_to():
            text = _user_text(entry)
            if text is not None:
                found.append((entry.id, text))
        return found

    async def _replace(self, store: Session, reason: str) -> None:
        """Let another session take the place of this one; listeners and agent stay."""
        session = self._session
        await session.call_hook("session_shutdown", session=session, reason=reason)
        left, session.store = session.store, store
        left.close()
        session.clear_queue()
        agent = session.agent
        agent.reset()
        if agent.options.session_id == left.id:
            agent.options = agent.options.replace(session_id=store.id)
        projection = store.projection()
        agent.state.messages = projection.messages
        if projection.model is not None:
            model = await session.find_model(*projection.model)
            if model is not None:
                agent.state.model = model
            else:
                name = "/".join(projection.model)
                session.notify(f"The session's model {name} cannot be used here: the present one goes on", "warning")
        if projection.thinking_level is not None:
            session.choice.restore(projection.thinking_level)
        await session.make_ready()

    @contextmanager
    def _moving(self) -> Iterator[None]:
        """Keep everything else away, a command of the user too: what it prints belongs to where it was begun."""
        if self._session.bash.active:
            raise ConfigError("A command runs: wait for its end, or abort it")
        with self._session.alone():
            yield

    async def _ask(self, hook: str, **arguments: object) -> None:
        verdict = await self._session.call_hook(hook, session=self._session, **arguments)
        if isinstance(verdict, Block):
            raise ConfigError(verdict.reason or f"A plugin refuses it ({hook})")


def _user_text(entry: Entry) -> str | None:
    """The text of a user's message, ``None`` for every other entry."""
    message = getattr(entry, "message", None)
    return texts([message])[0] if isinstance(message, UserMessage) else None
