"""Ends a server that nobody uses: looks at its slots from time to time, instead of standing in the way of requests."""

from __future__ import annotations

import http.client
import json
import threading
import time
from typing import Any, Final

from filelock import Timeout

from .state import ServerFiles, ServerState

_LOOKS: Final = 5
_LONGEST_SECONDS: Final = 15.0
_TIMEOUT_SECONDS: Final = 60.0


class IdleWatch:
    """Watches one server.

    :param idle_seconds: how long nothing may happen.
    """

    def __init__(self, files: ServerFiles, state: ServerState, idle_seconds: float) -> None:
        self._files = files
        self._state = state
        self._idle_seconds = idle_seconds

    def run(self, stopped: threading.Event) -> None:
        """Return when the event is set, or when the server was idle for long enough and its state is withdrawn."""
        seen = self._activity()
        since = time.monotonic()
        while not stopped.wait(min(_LONGEST_SECONDS, self._idle_seconds / _LOOKS)):
            now = self._activity()
            if now is None or now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since >= self._idle_seconds and self._withdraw(seen):
                return

    def _withdraw(self, seen: object) -> bool:
        """Withdraw the state, unless somebody is just taking up the server."""
        lock = self._files.start_lock()
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return False
        try:
            if self._activity() != seen:
                return False
            self._files.remove_state()
            return True
        finally:
            lock.release()

    def _activity(self) -> object | None:
        """A value that changes with every use; ``None`` while it works on a request."""
        try:
            slots = self._slots()
        except (OSError, http.client.HTTPException, ValueError):
            return None  # too busy to answer
        if any(slot.get("is_processing") for slot in slots):
            return None
        return self._files.touched(), [slot.get("id_task") for slot in slots]

    def _slots(self) -> list[dict[str, Any]]:
        connection = http.client.HTTPConnection("127.0.0.1", self._state.port, timeout=_TIMEOUT_SECONDS)
        try:
            connection.request("GET", "/slots", headers={"Authorization": f"Bearer {self._state.token}"})
            data: Any = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return [slot for slot in data if isinstance(slot, dict)] if isinstance(data, list) else []
