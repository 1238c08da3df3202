"""The tools of MCP servers as tools of an agent. The client library is imported when there is a server to talk to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pi_core import Tool, hookimpl

if TYPE_CHECKING:
    from ._servers import Servers


class Server(BaseModel):
    """One server: a command that is started, or an address.

    In the values of ``env`` and ``headers``, ``$NAME`` stands for a variable of the environment.

    :param command: program to start; it talks over its standard input and output.
    :param url: address of a server over streamable HTTP.
    :param tools: names of the tools to take; all by default.
    :param required: whether the plugin fails when the server cannot be reached; otherwise a warning is logged.
    :param timeout_seconds: longest wait for the server to be ready, and for the answer to a call.
    """

    model_config = ConfigDict(extra="forbid")

    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    tools: list[str] | None = None
    required: bool = True
    timeout_seconds: Annotated[float, Field(gt=0)] = 60

    @model_validator(mode="after")
    def _one_way(self) -> Server:
        if (self.command is None) == (self.url is None):
            raise ValueError("give either a command or a url")
        return self


class McpOptions(BaseModel):
    """Options of the plugin: the servers by name. A tool is called ``SERVER_TOOL``."""

    model_config = ConfigDict(extra="forbid")

    servers: dict[Annotated[str, Field(pattern="^[A-Za-z0-9_-]+$")], Server] = {}


class McpPlugin:
    """Offers the tools of MCP servers.

    The servers are started when the tools are collected, and end with the process or with :meth:`close`.

    :param options: as a build file would give them.
    """

    requires = "pi-agent-framework>=0.1.0"
    Options = McpOptions

    def __init__(self, options: McpOptions | None = None) -> None:
        self._options = options or McpOptions()
        self._servers: Servers | None = None

    @hookimpl
    def configure(self, options: McpOptions) -> None:
        """Take the options."""
        self._options = options

    @hookimpl
    def register_tools(self) -> Iterable[Tool]:
        """Connect to the servers and offer what they have."""
        if not self._options.servers:
            return []
        from ._servers import Servers

        if self._servers is None:
            self._servers = Servers(self._options.servers)
        return self._servers.tools()

    def close(self) -> None:
        """End the connections, and the servers that were started."""
        if self._servers is not None:
            self._servers.close()
            self._servers = None
