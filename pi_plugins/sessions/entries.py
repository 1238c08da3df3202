"""The entries of a session, and the header of its file."""

from __future__ import annotations

import secrets
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

from pydantic import ValidationError

from pi_core import AgentMessage, CustomMessage, WireModel, parse_message

from ._lines import json_of
from .bodies import BODIES, OpaqueBody
from .messages import MESSAGE_TYPES

MessageTypes = Mapping[str, type[CustomMessage]]

VERSION: Final = 3
ENVELOPE: Final = frozenset({"type", "id", "parentId", "timestamp"})
_MESSAGE: Final = ENVELOPE | {"message"}
OWN_TYPES: Final[MessageTypes] = {kind.model_fields["role"].default: kind for kind in MESSAGE_TYPES}


def iso_now() -> str:
    """Return the current time as entries write it: UTC with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_to_ms(timestamp: str) -> int:
    """Return the Unix milliseconds of an entry's time; 0 if it is none."""
    try:
        return round(datetime.fromisoformat(timestamp).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0


def new_entry_id(taken: Container[str]) -> str:
    """Return an id that no entry of the session has."""
    while (made := secrets.token_hex(4)) in taken:
        pass
    return made


class SessionHeader(WireModel):
    """The first line of a session file.

    :param cwd: the folder the session works in.
    :param parent_session: the file it was forked from.
    """

    type: Literal["session"] = "session"
    version: int = VERSION
    id: str
    timestamp: str = ""
    cwd: str = ""
    parent_session: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """What happened, and after which other entry.

    Entries that were read are turned into objects when they are asked for, since most of a long session never is.

    :param id: unique in the session.
    :param parent_id: the entry before; ``None`` at a root.
    :param timestamp: ISO 8601, UTC.
    """

    type: str
    id: str
    parent_id: str | None
    timestamp: str
    _content: WireModel | dict[str, Any] = field(repr=False)
    _types: MessageTypes = field(default_factory=lambda: OWN_TYPES, repr=False)
    _more: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def body(self) -> WireModel:
        """What the entry holds: a message, or an object of :mod:`~pi_plugins.sessions.bodies`."""
        content = self._content
        if not isinstance(content, dict):
            return content
        made, more = _parse(self.type, content, self._types)
        object.__setattr__(self, "_content", made)
        object.__setattr__(self, "_more", more)
        return made

    @property
    def message(self) -> AgentMessage | None:
        """The message of an entry of type ``message``; ``None`` for others, and when it is malformed."""
        if self.type != "message":
            return None
        body = self.body
        return None if isinstance(body, OpaqueBody) else body  # type: ignore[return-value]

    @property
    def role(self) -> str | None:
        """The role of the message of an entry of type ``message``."""
        if self.type != "message":
            return None
        message: object = self._content
        if isinstance(message, dict):
            message = message.get("message")
        elif isinstance(message, OpaqueBody):
            message = getattr(message, "message", None)
        role = message.get("role") if isinstance(message, dict) else getattr(message, "role", None)
        return role if isinstance(role, str) else None

    def to_json(self) -> dict[str, Any]:
        """Return the line of the file as an object."""
        envelope = {"type": self.type, "id": self.id, "parentId": self.parent_id, "timestamp": self.timestamp}
        content = self._content
        if isinstance(content, dict):
            return envelope | {key: value for key, value in content.items() if key not in ENVELOPE}
        held = json_of(content)
        if self.type == "message" and not isinstance(content, OpaqueBody):
            held = {"message": held}
        return {**envelope, **held, **(self._more or {})}


def _parse(kind: str, record: dict[str, Any], types: MessageTypes) -> tuple[WireModel, Mapping[str, Any] | None]:
    """Return the object of a record, and the fields of the entry that are not part of it."""
    try:
        if kind == "message":
            more = {key: value for key, value in record.items() if key not in _MESSAGE} if len(record) > 5 else None
            return parse_message(record["message"], types), more
        held = {key: value for key, value in record.items() if key not in ENVELOPE}
        return BODIES.get(kind, OpaqueBody).model_validate(held), None
    except (ValidationError, KeyError, AttributeError, TypeError):
        return OpaqueBody.model_validate({key: value for key, value in record.items() if key not in ENVELOPE}), None
