"""Connections to servers, which live in a thread of their own.

A connection belongs to one event loop, and agents may run in several, one after another. So all connections live in the
loop of one thread, and calls are handed to it.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from pi_core import Tool

from ._connection import Connection, ServerError
from ._tools import make_tool

if TYPE_CHECKING:
    from . import Server

T = TypeVar("T")
CLOSE_SECONDS = 10.0


class Servers:
    """The servers of one plugin.

    :param servers: by name.
    """

    def __init__(self, servers: Mapping[str, Server]) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="pi-mcp", daemon=True)
        self._thread.start()
        self._connections = {name: Connection(name, server) for name, server in servers.items()}
        self._tools: list[Tool] | None = None
        atexit.register(self.close)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run something in the loop of the connections."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def tools(self) -> list[Tool]:
        """Connect to all servers at once and return their tools.

        :raises ServerError: one that is required cannot be reached, or lacks a tool that is wanted.
        """
        if self._tools is None:
            opened = {name: self.submit(connection.open()) for name, connection in self._connections.items()}
            self._tools = []
            for name, future in opened.items():
                connection = self._connections[name]
                try:
                    found = future.result()
                except ServerError as error:
                    if connection.server.required:
                        self.close()
                        raise
                    logging.getLogger("pi").warning("%s", error)
                    continue
                self._tools += [make_tool(connection, described, self.submit) for described in found]
        return self._tools

    def close(self) -> None:
        """End all connections."""
        atexit.unregister(self.close)
        if not self._thread.is_alive():
            return
        closing = [self.submit(connection.close()) for connection in self._connections.values()]
        for future in closing:
            with contextlib.suppress(Exception):
                future.result(CLOSE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()
