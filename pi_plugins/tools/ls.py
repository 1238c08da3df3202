"""The ``ls`` tool: what a directory holds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pi_core import Tool, ToolContext, ToolResult

from ._arguments import count
from ._errors import ToolError, system_error
from ._paths import resolve_existing, shown
from ._threads import Stop, in_thread
from ._truncate import format_size, truncate_lines, with_notices

if TYPE_CHECKING:
    from . import ToolsOptions

_LIMIT = 500


def ls_tool(options: ToolsOptions) -> Tool:
    """Make the ``ls`` tool."""

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return await in_thread(lambda: _list(arguments, options), Stop(context.signal))

    return Tool(
        name="ls",
        description=f"List a directory, hidden files too. Shows at most {_LIMIT} entries.",
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Directory; default: the working directory"},
                "limit": {"type": "number", "description": "Most entries"},
            },
        },
        execute=execute,
        replay="safe",
        prompt_snippet="list a directory",
    )


def _list(arguments: dict[str, Any], options: ToolsOptions) -> ToolResult:
    limit = count(arguments, "limit", _LIMIT)
    path = resolve_existing(arguments.get("path") or ".", options.directory())
    try:
        with os.scandir(path) as scan:
            entries = sorted(scan, key=lambda entry: (entry.name.lower(), entry.name))
    except FileNotFoundError:
        raise ToolError(f"Path not found: {path}") from None
    except NotADirectoryError:
        raise ToolError(f"Not a directory: {path}") from None
    except OSError as error:
        raise system_error(error, "scandir", path) from None
    if not entries:
        return ToolResult.text("(empty directory)")
    details: dict[str, Any] = {}
    notices = []
    if len(entries) > limit:
        notices.append(f"{limit} entries limit reached. Use limit={limit * 2} for more")
        details["entryLimitReached"] = limit
    output = truncate_lines([_line(entry) for entry in entries[:limit]], options.max_bytes)
    if output.truncated:
        notices.append(f"{format_size(options.max_bytes)} limit reached")
        details["truncation"] = output.to_json()
    return ToolResult.text(with_notices(output.content, notices), details=details or None)


def _line(entry: os.DirEntry[str]) -> str:
    try:
        is_directory = entry.is_dir()
    except OSError:
        is_directory = False
    return shown(entry.name) + ("/" if is_directory else "")
