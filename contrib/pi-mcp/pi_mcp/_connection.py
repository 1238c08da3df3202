"""One connection to one server."""

from __future__ import annotations

import asyncio
import os
import string
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Tool as Described

if TYPE_CHECKING:
    from . import Server

_SHOWN = 2000


class ServerError(Exception):
    """A server cannot be reached, or is not as it should be."""


class Connection:
    """A connection that is open from :meth:`open` to :meth:`close`, within a task of its own."""

    def __init__(self, name: str, server: Server) -> None:
        self.name = name
        self.server = server
        self._task: asyncio.Task[None] | None = None
        self._client: Client | None = None
        self._end = asyncio.Event()

    @property
    def client(self) -> Client:
        """What calls are made with.

        :raises ServerError: the connection has ended.
        """
        if self._client is None:
            raise ServerError(f"MCP server '{self.name}' is not connected any more")
        return self._client

    async def open(self) -> list[Described]:
        """Connect and return the tools that are wanted.

        :raises ServerError: it did not work, or a wanted tool is not there.
        """
        ready: asyncio.Future[list[Described]] = asyncio.get_running_loop().create_future()
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
            self._task = asyncio.create_task(self._live(ready, said))
            try:
                found = await asyncio.wait_for(ready, self.server.timeout_seconds)
            except Exception as error:
                await self.close()
                said.seek(0)
                raise ServerError(self._explained(error, said.read().strip())) from error
        wanted = self.server.tools
        missing = sorted(set(wanted or ()) - {tool.name for tool in found})
        if missing:
            await self.close()
            there = ", ".join(tool.name for tool in found) or "none"
            raise ServerError(f"MCP server '{self.name}' has no tool '{missing[0]}' (it has {there})")
        return [tool for tool in found if wanted is None or tool.name in wanted]

    async def close(self) -> None:
        """End the connection, and the server if it was started."""
        self._end.set()
        if self._task is not None:
            done, _ = await asyncio.wait([self._task], timeout=5)
            if not done:
                self._task.cancel()
                await asyncio.wait([self._task])

    async def _live(self, ready: asyncio.Future[list[Described]], said: Any) -> None:
        try:
            async with AsyncExitStack() as opened:
                transport = await self._transport(said, opened)
                seconds = self.server.timeout_seconds
                client = await opened.enter_async_context(Client(transport, read_timeout_seconds=seconds))
                found: list[Described] = []
                cursor: str | None = None
                while True:
                    page = await client.list_tools(cursor=cursor)
                    found += page.tools
                    cursor = page.next_cursor
                    if not cursor:
                        break
                self._client = client
                ready.set_result(found)
                await self._end.wait()
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)
        finally:
            self._client = None
            if not ready.done():
                ready.cancel()

    async def _transport(self, said: Any, opened: AsyncExitStack) -> Any:
        server = self.server
        if server.command is not None:
            parameters = StdioServerParameters(
                command=server.command, args=server.args, env=expanded(server.env) or None, cwd=server.cwd
            )
            return stdio_client(parameters, errlog=said)
        assert server.url is not None
        timeout = httpx2.Timeout(server.timeout_seconds)
        client = httpx2.AsyncClient(headers=expanded(server.headers), timeout=timeout, follow_redirects=True)
        return streamable_http_client(server.url, http_client=await opened.enter_async_context(client))

    def _explained(self, error: BaseException, said: str) -> str:
        where = self.server.url or " ".join([self.server.command or "", *self.server.args])
        text = f"MCP server '{self.name}' ({where}) cannot be used: {reason(error, self.server.timeout_seconds)}"
        return f"{text}. It said: {said[-_SHOWN:]}" if said else text


def reason(error: BaseException, seconds: float) -> str:
    """Return what an exception says; of a group the first one's."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"no answer within {seconds:g} s"
    return str(error) or type(error).__name__


def expanded(values: Mapping[str, str]) -> dict[str, str]:
    """Return values with ``$NAME`` replaced from the environment.

    :raises ServerError: a name is not set.
    """
    made = {}
    for name, value in values.items():
        try:
            made[name] = string.Template(value).substitute(os.environ)
        except (KeyError, ValueError) as error:
            raise ServerError(f"the value of {name} names {error}, which is not set in the environment") from error
    return made
