"""What is said of a session in a list: its first words, its name, and how long it is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pi_core import ConfigError

from ._lines import first_record
from .files import SessionRef, refs
from .store import SessionFile

_MESSAGE: Final = (b'{"type":"message"', b'{"type": "message"')
_NAME: Final = b"session_info"


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session as a list shows it.

    :param name: the display name.
    :param first_text: what the user said first.
    :param messages: how many messages there are, on all branches.
    """

    ref: SessionRef
    name: str | None = None
    first_text: str = ""
    messages: int = 0

    @property
    def title(self) -> str:
        """The name, else what was said first, in one line."""
        return " ".join((self.name or self.first_text).split())

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        header = self.ref.header
        modified = datetime.fromtimestamp(self.ref.modified / 1e9, UTC).isoformat(timespec="milliseconds")
        found = {
            "path": str(self.ref.path),
            "id": header.id,
            "cwd": header.cwd,
            "name": self.name,
            "created": header.timestamp,
            "modified": modified.replace("+00:00", "Z"),
            "messages": self.messages,
            "firstText": self.first_text,
            "parentSession": header.parent_session,
        }
        return {key: value for key, value in found.items() if value is not None}


def list_sessions(cwd: Path | str | None, directory: Path) -> list[SessionInfo]:
    """Return what there is to say of each session, the one written last first.

    :param cwd: only sessions that work in this folder; ``None`` for all.
    :param directory: the folder of all sessions.
    """
    found = []
    for ref in refs(directory, cwd):
        try:
            found.append(session_info(ref))
        except ConfigError:  # it went away since
            continue
    return found


def session_info(ref: SessionRef) -> SessionInfo:
    """Return what there is to say of a session. Only a few of its lines are parsed.

    :raises ConfigError: it cannot be read.
    """
    name, first, messages = None, "", 0
    for line in SessionFile.read(ref.path).split(b"\n"):
        if line.startswith(_MESSAGE):
            messages += 1
            if not first:
                first = _user_text(first_record(line))
        elif _NAME in line[:40]:
            record = first_record(line) or {}
            if record.get("type") == "session_info":
                given = record.get("name")
                name = given if isinstance(given, str) and given else None
    return SessionInfo(ref, name, first, messages)


def _user_text(record: dict[str, Any] | None) -> str:
    message = (record or {}).get("message")
    if not isinstance(message, dict) or message.get("role") != "user":
        return ""
    content = message.get("content")
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = (block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text")
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")
