"""A tool of a server as a tool of an agent."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from typing import Any

from mcp.types import CallToolResult
from mcp.types import Tool as Described

from pi_core import ImageContent, TextContent, Tool, ToolContext, ToolResult

from ._connection import Connection, reason

_LONGEST_NAME = 64


def tool_name(server: str, tool: str) -> str:
    """Return a name that every model API takes."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", f"{server}_{tool}")[:_LONGEST_NAME]


def make_tool(connection: Connection, described: Described, submit: Callable[[Any], Future[Any]]) -> Tool:
    """Return a tool that calls the one of the server."""

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        loop = asyncio.get_running_loop()

        async def report(progress: float, total: float | None, message: str | None) -> None:
            text = message or (f"{progress:g}" if total is None else f"{progress:g} of {total:g}")
            loop.call_soon_threadsafe(context.update, text)

        async def call() -> CallToolResult:
            return await connection.client.call_tool(described.name, arguments, progress_callback=report)

        signal = context.signal
        future = submit(call())
        remove = None if signal is None else signal.on_abort(partial(_cancel, future))
        try:
            return made_of(await asyncio.wrap_future(future))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if signal is None or not signal.aborted or (task is not None and task.cancelling()):
                raise
            raise RuntimeError("The call was aborted") from None
        except Exception as error:
            text = reason(error, connection.server.timeout_seconds)
            raise RuntimeError(f"MCP server '{connection.name}': {text}") from error
        finally:
            if remove is not None:
                remove()

    return Tool(
        tool_name(connection.name, described.name),
        described.description or described.title or described.name,
        {"type": "object", "properties": {}, **described.input_schema},
        execute,
        label=described.title or described.name,
        output_schema=described.output_schema,
    )


def _cancel(future: Future[Any]) -> None:
    future.cancel()


def made_of(result: CallToolResult) -> ToolResult:
    """Return the result of a call as a tool gives it."""
    fields: dict[str, Any] = {}
    if result.structured_content is not None:
        fields["structured_content"] = result.structured_content
    return ToolResult(content=list(_blocks(result)), is_error=True if result.is_error else None, **fields)


def _blocks(result: CallToolResult) -> Iterator[TextContent | ImageContent]:
    for block in result.content:
        if block.type == "text":
            yield TextContent(text=block.text)
        elif block.type == "image":
            yield ImageContent(data=block.data, mime_type=block.mime_type)
        elif block.type == "resource" and hasattr(block.resource, "text"):
            yield TextContent(text=f"{block.resource.uri}:\n{block.resource.text}")
        elif block.type == "resource_link":
            yield TextContent(text=f"{block.name}: {block.uri}")
        else:
            yield TextContent(text=f"({block.type} omitted: models do not read it)")
