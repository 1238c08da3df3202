"""An MCP server with a few tools: over stdio, or over HTTP when a port is given."""

import asyncio
import os
import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("tests")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    """Fail."""
    raise ToolError("no luck")


@server.tool()
def environment(name: str) -> str:
    """Tell a variable of the environment."""
    return os.environ.get(name, "not set")


@server.tool()
async def slow(context: Context) -> str:
    """Take its time."""
    await context.report_progress(1, 2, "half of it")
    await asyncio.sleep(30)
    return "done"


@server.tool()
def leave() -> str:
    """End the server."""
    os._exit(3)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run()
