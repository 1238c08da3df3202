"""What is known of sessions between their requests: what the server holds of them, and what it refused."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

_SESSION_LIMIT: Final = 10_000
_PER_REQUEST: Final = frozenset(
    {"messages", "max_tokens", "stream", "temperature", "tool_choice", "metadata", "thread"}
)
"""Fields that every request of a thread has anew."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A conversation on the server: how many messages, a digest of them, and the id of its latest answer."""

    settings: bytes
    count: int
    digest: bytes
    message_id: str


@dataclass(slots=True)
class _Session:
    held: _Held | None = None
    threads_off: bool = False
    strict_off: bool = False


class Sessions:
    """The sessions of one provider; those longest out of use are forgotten."""

    def __init__(self, limit: int = _SESSION_LIMIT) -> None:
        self._limit = limit
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    def uses_threads(self, session_id: str) -> bool:
        """Return whether the server did not refuse threads so far."""
        session = self._sessions.get(session_id)
        return session is None or not session.threads_off

    def strict_refused(self, session_id: str | None) -> bool:
        """Return whether the server refused the strict tools of a session."""
        session = self._sessions.get(session_id or "")
        return session is not None and session.strict_off

    def refuse_strict(self, session_id: str | None) -> None:
        """Remember that the server refused the strict tools of a session."""
        if session_id:
            self._session(session_id).strict_off = True

    def refuse_threads(self, session_id: str) -> None:
        """Remember that the server has no threads."""
        session = self._session(session_id)
        session.threads_off, session.held = True, None

    def forget_thread(self, session_id: str) -> None:
        """Forget what the server holds of a session."""
        self._session(session_id).held = None

    def split(self, session_id: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the payload without what the server holds already; it begins a thread when that is nothing."""
        held = self._session(session_id).held
        messages = payload["messages"]
        if (
            held is None
            or held.count >= len(messages)
            or held.settings != _settings(payload)
            or held.digest != _digest(messages[: held.count])
        ):
            return {**payload, "thread": {"type": "create"}}
        rest = {name: value for name, value in payload.items() if name not in ("system", "tools")}
        thread = {"type": "continue", "previous_message_id": held.message_id}
        return {**rest, "messages": messages[held.count :], "thread": thread}

    def keep(self, session_id: str, payload: dict[str, Any], answer: dict[str, Any] | None, message_id: str) -> None:
        """Remember what the server holds after an answer.

        :param payload: the whole request, not what is left of it after :meth:`split`.
        :param answer: the answer as it will be sent back.
        """
        session = self._session(session_id)
        if answer is None or not message_id:
            session.held = None
            return
        messages = [*payload["messages"], answer]
        session.held = _Held(_settings(payload), len(messages), _digest(messages), message_id)

    def _session(self, session_id: str) -> _Session:
        session = self._sessions.setdefault(session_id, _Session())
        self._sessions.move_to_end(session_id)
        while len(self._sessions) > self._limit:
            self._sessions.popitem(last=False)
        return session


def _settings(payload: dict[str, Any]) -> bytes:
    return _hash({name: value for name, value in payload.items() if name not in _PER_REQUEST})


def _digest(messages: Sequence[dict[str, Any]]) -> bytes:
    """A digest of messages in whatever form they are: cache marks move, and turn a text into a list of one block."""
    return _hash([{**message, "content": _blocks(message.get("content"))} for message in messages])


def _blocks(content: Any) -> Any:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _hash(value: Any) -> bytes:
    text = json.dumps(_unmarked(value), sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(item) for key, item in value.items() if key != "cache_control"}
    return [_unmarked(item) for item in value] if isinstance(value, list) else value
