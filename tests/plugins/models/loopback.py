"""A server on this machine, in a thread."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Quiet(BaseHTTPRequestHandler):
    """Answers requests and logs none."""

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


class Loopback:
    """Serves until it is closed.

    :ivar port: where it listens.
    """

    def __init__(self, handler: type[Quiet]) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
