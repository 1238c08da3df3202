"""One open session: a tree of entries in memory, and the file to which each of them is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from pi_core import AgentMessage, ConfigError, ThinkingLevel, ToolCallContent, ToolResultMessage, Usage, WireModel

from . import bodies
from ._ids import checked_id, uuid7
from ._saver import BEGINNING, Saver
from ._turns import interrupted
from .entries import OWN_TYPES, VERSION, Entry, MessageTypes, SessionHeader, iso_now, new_entry_id
from .files import session_file
from .loading import load
from .messages import CustomEntryMessage
from .projection import JOURNAL, Projection
from .stats import SessionStats, StatsCounter
from .store import SessionFile
from .tree import EntryTree, TreeNode


class Session:
    """An open session; :meth:`create`, :meth:`open`, :meth:`in_memory` and :meth:`fork` make one.

    Its file is made when the first message of the user or of a model comes; what came before is written with it. From
    then on an entry is in the file when the method that appends it returns.

    :param header: the first line of the file.
    :param path: the file; ``None`` keeps the session in memory.
    :param types: custom message types by role, beside those of this package.
    :param durable: whether each entry is forced to the disk, so that it survives the death of the machine too.
    """

    def __init__(
        self,
        header: SessionHeader,
        path: Path | None = None,
        *,
        types: MessageTypes | None = None,
        durable: bool = False,
    ) -> None:
        self.header = header
        self.path = path
        self.problems: list[str] = []
        """What is wrong with the file that was opened, one sentence each, with the line."""
        self.on_append: Callable[[Entry], None] | None = None
        """Called with each entry that was appended; it is in the file then, once there is one."""
        self._tree = EntryTree()
        self._stats = StatsCounter()
        self._saver = None if path is None else Saver(header, path, durable=durable)
        self._unannounced: list[Entry] = []
        self._early: dict[int, Entry] = {}
        self._closed: str | None = None

    @classmethod
    def create(
        cls,
        cwd: Path | str,
        *,
        directory: Path,
        id: str | None = None,  # noqa: A002 - the term of the format
        parent: str | None = None,
        types: MessageTypes | None = None,
        durable: bool = False,
    ) -> Session:
        """Begin a session.

        :param cwd: the folder it works in.
        :param directory: the folder of all sessions; see :func:`~pi_plugins.sessions.files.sessions_dir`.
        :param id: its id; a new one if absent.
        :param parent: the session file it continues.
        :raises ConfigError: the id cannot be one, or a session of the folder has it.
        """
        header = _header(cwd, id, parent)
        return cls(header, _new_file(directory, header, named=id is not None), types=types, durable=durable)

    @classmethod
    def in_memory(cls, cwd: Path | str, *, id: str | None = None, types: MessageTypes | None = None) -> Session:  # noqa: A002
        """Begin a session without a file.

        :raises ConfigError: the id cannot be one.
        """
        return cls(_header(cwd, id, None), types=types)

    @classmethod
    def open(
        cls, path: Path | str, *, types: MessageTypes | None = None, read_only: bool = False, durable: bool = False
    ) -> Session:
        """Open a session file at its last entry.

        :param read_only: leave the file alone; another process may be writing it.
        :raises ConfigError: it is no session file, it cannot be read, or another process writes it.
        """
        path = Path(path)
        file, data = (None, SessionFile.read(path)) if read_only else SessionFile.open(path, durable=durable)
        try:
            loaded = load(data, path, OWN_TYPES if types is None else {**OWN_TYPES, **types})
        except BaseException:
            if file is not None:
                file.close()
            raise
        made = cls(loaded.header, path, types=types, durable=durable)
        made.problems = loaded.problems
        made._tree = EntryTree(loaded.entries.values())
        made._closed = "was opened for reading only" if file is None else None
        if file is not None and made._saver is not None:
            made._saver.resume(file, loaded.version if loaded.version < VERSION else None)
        return made

    @classmethod
    def fork(
        cls,
        source: Session | Path,
        cwd: Path | str,
        *,
        directory: Path | None,
        entries: Sequence[Entry] | None = None,
        id: str | None = None,  # noqa: A002 - the term of the format
        types: MessageTypes | None = None,
        durable: bool = False,
    ) -> Session:
        """Begin a session with a copy of a path of another one.

        :param source: the other session, or its file, which another process may be writing.
        :param directory: the folder of all sessions; ``None`` keeps the copy in memory.
        :param entries: the path that is copied, from a root on; the one to the source's leaf if absent.
        :raises ConfigError: the source cannot be read, the id cannot be one or a session of the folder has it, or the
            copy cannot be written.
        """
        other = cls.open(source, types=types, read_only=True) if isinstance(source, Path) else source
        header = _header(cwd, id, None if other.path is None else str(other.path))
        path = None if directory is None else _new_file(directory, header, named=id is not None)
        made = cls(header, path, types=types, durable=durable)
        made._tree = EntryTree(other.path_to() if entries is None else entries)
        if made._saver is not None:
            made._saver.add(made._tree.order, made._tree.order)
        return made

    def close(self) -> None:
        """Force everything to the disk and give the file free. Nothing can be appended afterwards."""
        if self._saver is not None:
            self._saver.close()
        self._closed = self._closed or "is closed"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def id(self) -> str:
        """The id of the session."""
        return self.header.id

    @property
    def cwd(self) -> str:
        """The folder the session works in."""
        return self.header.cwd

    @property
    def name(self) -> str | None:
        """The display name."""
        return self._tree.name

    @property
    def entries(self) -> Sequence[Entry]:
        """Every entry of every branch, in the order in which they were appended."""
        return self._tree.order

    @property
    def leaf_id(self) -> str | None:
        """The present position: the next entry becomes a child of this one."""
        return self._tree.leaf_id

    @property
    def unsaved(self) -> Sequence[Entry]:
        """Entries that are only in memory: there is no file yet, or it could not be written."""
        return () if self._saver is None else tuple(self._saver.unsaved)

    def entry(self, entry_id: str) -> Entry:
        """Return an entry.

        :raises ConfigError: there is none with this id.
        """
        return self._tree.get(entry_id)

    def path_to(self, entry_id: str | None = None) -> list[Entry]:
        """Return the way from a root to an entry, the leaf if absent.

        :raises ConfigError: there is no such entry.
        """
        return self._tree.path_to(self._tree.leaf_id if entry_id is None else entry_id)

    def tree(self) -> list[TreeNode]:
        """Return the roots with all that follows them."""
        return self._tree.nodes()

    def label_of(self, entry_id: str) -> str | None:
        """Return the mark that an entry has on the present branch."""
        return self._tree.label_of(entry_id)

    def branch(self, entry_id: str | None) -> None:
        """Move to another position; ``None`` is before the first entry.

        :raises ConfigError: there is no such entry.
        """
        self._tree.branch(entry_id)
        self._early = {}

    def projection(self) -> Projection:
        """Return what the model is to read at the present position. Costs as much as that is long: ask once a run."""
        context = self._tree.context
        found = context.projection()
        for entry in context.malformed:
            self.problems.append(f"entry {entry.id}: the message in it is malformed; the model does not read it")
        context.malformed.clear()
        return found

    def stats(self) -> SessionStats:
        """Return what the session has used, on all branches."""
        return self._stats.stats(self._tree.order)

    # --- appending: each returns the new entry, and raises ConfigError when it cannot be written ----------------

    def append_message(self, message: AgentMessage) -> Entry:
        """Append a message; the result of a call that is recorded already is not written again.

        Before a message of the user or of a model, calls that an earlier process left without a result get one.
        """
        if isinstance(message, ToolResultMessage):
            return self._recorded(message) or self._append("message", message)
        if isinstance(message, CustomEntryMessage):
            return self.append_custom_message(
                message.custom_type, message.content, display=message.display, details=message.details
            )
        if message.role in BEGINNING:
            self._settle()
        entry = self._append("message", message)
        self._early = {}
        return entry

    def record_tool_result(self, call: ToolCallContent, result: ToolResultMessage) -> Entry | None:
        """Write the result of a call of the latest message before its batch is over.

        It becomes the message it is when all earlier calls have theirs, and is journaled otherwise, so that messages
        stay in the order of the calls.

        :returns: the entry; ``None`` if the call is none of that message.
        """
        batch = self._tree.context.batch
        at = None if batch is None else batch.position_of(call)
        if batch is None or at is None:
            return None
        if all(earlier in batch.recorded for earlier in range(at)):
            entry = self._append("message", result)
        else:
            entry = self.append_custom(JOURNAL, {"index": at, "message": result})
        self._early[at] = entry
        return entry

    def append_model_change(self, provider: str, model_id: str) -> Entry:
        """Note that another model was chosen."""
        return self._append("model_change", bodies.ModelChange(provider=provider, model_id=model_id))

    def append_thinking_level_change(self, level: ThinkingLevel) -> Entry:
        """Note that another thinking level was chosen."""
        return self._append("thinking_level_change", bodies.ThinkingLevelChange(thinking_level=level))

    def append_usage(self, kind: str, provider: str, model: str, usage: Usage) -> Entry:
        """Note tokens that were spent beside the messages.

        :param kind: what for.
        """
        return self._append("usage", bodies.ExtraUsage(kind=kind, provider=provider, model=model, usage=usage))

    def append_compaction(
        self,
        summary: str,
        first_kept_entry_id: str | None,
        tokens_before: int,
        *,
        usage: Usage | None = None,
        details: Any = None,
        from_hook: bool = False,
    ) -> Entry:
        """Put a summary in the place of what is before an entry.

        :param first_kept_entry_id: that entry; ``None`` keeps nothing.
        :param tokens_before: estimated tokens of the context so far.
        :param from_hook: whether a plugin made the summary.
        """
        entry_id = new_entry_id(self._tree.by_id)
        compaction = bodies.Compaction(
            summary=summary,
            first_kept_entry_id=entry_id if first_kept_entry_id is None else self.entry(first_kept_entry_id).id,
            tokens_before=tokens_before,
            usage=usage,
            details=details,
            from_hook=from_hook,
        )
        return self._append("compaction", compaction, entry_id)

    def append_context_edit(self, target_id: str, content: str | list[Any] | None) -> Entry:
        """Change what the model reads of an entry from here on.

        :param content: a text or blocks that it reads; ``None`` leaves the entry out.
        """
        replacement = None if content is None else bodies.Replacement(content=content)
        edit = bodies.ContextEdit(target_id=self.entry(target_id).id, replacement=replacement)
        return self._append("context_edit", edit)

    def append_branch_summary(
        self,
        from_id: str | None,
        summary: str,
        *,
        usage: Usage | None = None,
        details: Any = None,
        from_hook: bool = False,
    ) -> Entry:
        """Tell the model what the branch that was left came to.

        :param from_id: the entry at which that branch ended; ``None`` if there was none.
        """
        body = bodies.BranchSummary(
            from_id=from_id or "root", summary=summary, usage=usage, details=details, from_hook=from_hook
        )
        return self._append("branch_summary", body)

    def append_custom(self, custom_type: str, data: Any = None) -> Entry:
        """Keep data of a plugin that the model does not read."""
        return self._append("custom", bodies.CustomData(custom_type=custom_type, data=data))

    def append_custom_message(
        self, custom_type: str, content: str | list[Any], *, display: bool = True, details: Any = None
    ) -> Entry:
        """Append a text of a plugin that the model reads.

        :param display: whether people see it.
        :param details: data of the plugin that the model does not read.
        """
        body = bodies.CustomText(custom_type=custom_type, content=content, display=display, details=details)
        return self._append("custom_message", body)

    def append_label(self, target_id: str, label: str | None) -> Entry:
        """Mark an entry; ``None`` takes the mark off."""
        return self._append("label", bodies.Label(target_id=self.entry(target_id).id, label=label or None))

    def append_session_info(self, name: str | None) -> Entry:
        """Give the session a display name; ``None`` takes it away."""
        return self._append("session_info", bodies.SessionName(name=(name or "").strip()))

    def _recorded(self, result: ToolResultMessage) -> Entry | None:
        """Return the entry of a result that was written as a message when its call ended."""
        batch = self._tree.context.batch
        at = next((at for at in sorted(self._early) if batch and batch.calls[at].id == result.tool_call_id), None)
        entry = None if at is None else self._early.pop(at)
        return entry if entry is not None and entry.message == result else None

    def _settle(self) -> None:
        """Write the results that a batch lacks which a process left behind: journaled ones, and that it was cut."""
        batch = self._tree.context.batch
        if batch is None or batch.complete or not batch.ran:
            return
        for at, call in enumerate(batch.calls):
            if at not in batch.recorded:
                journaled = batch.get(at)
                self._append("message", journaled[1] if journaled else interrupted(call))

    def _append(self, kind: str, body: WireModel, entry_id: str | None = None) -> Entry:
        if self._closed is not None:
            raise ConfigError(f"The session {self.path or self.id} {self._closed}: nothing can be added to it")
        tree = self._tree
        entry = Entry(kind, entry_id or new_entry_id(tree.by_id), tree.leaf_id, iso_now(), body)
        tree.add(entry)
        self._unannounced.append(entry)
        if self._saver is not None:
            self._saver.add([entry], tree.order)
        while self._unannounced:
            announced = self._unannounced.pop(0)
            if self.on_append is not None:
                self.on_append(announced)
        return entry


def _header(cwd: Path | str, session_id: str | None, parent: str | None) -> SessionHeader:
    return SessionHeader(
        id=uuid7() if session_id is None else checked_id(session_id),
        timestamp=iso_now(),
        cwd=str(cwd),
        parent_session=parent,
    )


def _new_file(directory: Path, header: SessionHeader, *, named: bool) -> Path:
    """Where a new session goes.

    :param named: whether somebody chose its id, which another session can have then.
    """
    path = session_file(directory, header)
    taken = next(path.parent.glob(f"*_{header.id}.jsonl"), None) if named else None
    if taken is not None:
        raise ConfigError(f"There is a session of the id {header.id!r} already: {taken}")
    return path
