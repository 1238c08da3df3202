"""From the bytes of a session file to its header and entries; what is wrong with them is said line by line."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pi_core import ConfigError

from . import _migrate
from ._lines import Found, decode
from .bodies import BODIES, Compaction, OpaqueBody
from .entries import OWN_TYPES, VERSION, Entry, MessageTypes, SessionHeader
from .files import header_of


@dataclass(slots=True)
class Loaded:
    """What a session file holds.

    :param entries: by id, in the order of the file; each one's parent comes before it.
    :param problems: what is wrong with the file, one sentence each with the line.
    :param version: the version of the format that was read.
    """

    header: SessionHeader
    entries: dict[str, Entry] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    version: int = VERSION


@contextmanager
def collection_paused() -> Iterator[None]:
    """Keep the garbage collector from looking again and again at many objects that are made and all kept.

    It sees them when it next looks at everything.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() == 0:
            gc.freeze()  # together: what is young becomes old without being looked at
            gc.unfreeze()
        gc.enable()


def load(data: bytes, path: Path, types: MessageTypes = OWN_TYPES) -> Loaded:
    """Read a session file.

    Damaged lines are left out. An entry whose parent is not there follows the entry before it in the file, so that a
    damaged line costs no more than itself.

    :param path: for messages.
    :param types: custom message types by role.
    :raises ConfigError: it is no session file.
    """
    with collection_paused():
        records = list(decode(data))
        loaded = Loaded(_header(records, path))
        declared = loaded.header.version
        if declared < VERSION:
            loaded.version = declared
            _migrate.migrate(records, declared)
            loaded.header = loaded.header.model_copy(update={"version": VERSION})
        elif declared > VERSION:
            raise ConfigError(f"{path} has version {declared} of the session format; this pi reads up to {VERSION}")
        _take(loaded, records, path, types)
    return loaded


def _header(records: list[Found], path: Path) -> SessionHeader:
    """Take the header out of the records; a damaged first line may hold it whole."""
    at = 1 if len(records) > 1 and records[1][0] == records[0][0] else 0
    if not records:
        raise ConfigError(f"{path} is no session file: it is empty")
    _, record, _ = records[at]
    if record is None or record.get("type") != "session":
        raise ConfigError(f"{path} is no session file: its first line is no session header. It is left as it is")
    del records[at]
    try:
        return header_of(record, path)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, fault["loc"]))
        raise ConfigError(f"{path}:1: the session header has a wrong {where}: {fault['msg']}") from None


def _take(loaded: Loaded, records: list[Found], path: Path, types: MessageTypes) -> None:
    entries, problems = loaded.entries, loaded.problems
    last: str | None = None
    for number, record, fault in records:
        if fault is not None:
            problems.append(f"{path}:{number}: the line {fault}")
        if record is None:
            continue
        kind, made, parent = record.get("type"), record.get("id"), record.get("parentId")
        if not isinstance(kind, str) or not isinstance(made, str) or not made:
            problems.append(
                f"{path}:{number}: the line has no {'id' if isinstance(kind, str) else 'type'}; it is skipped"
            )
            continue
        if made in entries:
            problems.append(f"{path}:{number}: an earlier line has the same id {made}; this one is skipped")
            continue
        if parent is not None and not (isinstance(parent, str) and parent in entries):
            after = "is a root" if last is None else f"follows {last}"
            problems.append(f"{path}:{number}: its parent {str(parent)[:80]} is no earlier entry; it now {after}")
            parent = last
        timestamp = record.get("timestamp")
        entry = Entry(kind, made, parent, timestamp if isinstance(timestamp, str) else "", record, types)
        wrong = _wrong(entry, record, entries)
        if wrong is not None:
            problems.append(f"{path}:{number}: {wrong}")
        entries[made] = entry
        last = made


def _wrong(entry: Entry, record: Mapping[str, Any], earlier: Mapping[str, Entry]) -> str | None:
    """Say what is wrong with an entry; one that is malformed keeps its place and has no effect."""
    if entry.type == "message":
        message = record.get("message")
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            return "an entry of type message has no message with a role; the model does not read it"
        return None
    if entry.type not in BODIES:
        return None
    body = entry.body
    if isinstance(body, OpaqueBody):
        return f"an entry of type {entry.type} lacks a field or has a wrong one; it has no effect"
    if isinstance(body, Compaction) and (kept := body.first_kept_entry_id) not in earlier and kept != entry.id:
        return f"a compaction keeps what follows {kept}, which is no earlier entry; it keeps nothing"
    return None
