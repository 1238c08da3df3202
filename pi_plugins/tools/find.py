"""The ``find`` tool: files and directories by a glob pattern."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pi_core import Tool, ToolContext, ToolResult

from ._arguments import count, unreadable_notice
from ._errors import ToolError
from ._glob import path_test
from ._paths import resolve_existing, shown
from ._threads import Stop, in_thread
from ._truncate import format_size, truncate_lines, with_notices
from ._walk import Walk

if TYPE_CHECKING:
    from . import ToolsOptions

_LIMIT = 1000


def find_tool(options: ToolsOptions) -> Tool:
    """Make the ``find`` tool."""

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        stop = Stop(context.signal)
        return await in_thread(lambda: _find(arguments, options, stop), stop)

    return Tool(
        name="find",
        description=f"Find files by glob pattern; honours .gitignore. Shows at most {_LIMIT} paths.",
        parameters={
            "type": "object",
            "required": ["pattern"],
            "properties": {
                "pattern": {"type": "string", "description": "Glob such as *.py, src/*.py or **/test_*.py"},
                "path": {"type": "string", "description": "Directory to search; default: the working directory"},
                "limit": {"type": "number", "description": "Most paths"},
            },
        },
        execute=execute,
        timeout=options.search_timeout,
        replay="safe",
        prompt_snippet="look for files by name",
        prompt_guidelines=("Look for files with find, not with a command.",),
    )


def _find(arguments: dict[str, Any], options: ToolsOptions, stop: Stop) -> ToolResult:
    limit = count(arguments, "limit", _LIMIT)
    cwd = options.directory()
    root = resolve_existing(arguments.get("path") or ".", cwd)
    if not os.path.exists(root):
        raise ToolError(f"Path not found: {root}")
    if not os.path.isdir(root):
        raise ToolError(f"Not a directory: {root}")
    pattern = arguments["pattern"]
    only_directories = pattern.endswith("/") and len(pattern) > 1
    pattern = pattern.rstrip("/") if only_directories else pattern
    matches = path_test(pattern, ignore_case=not any(character.isupper() for character in pattern))
    walk = Walk(root, cwd, stop)
    paths: list[str] = []
    more = False
    for found in walk:
        if not matches(found.path, found.name) or (only_directories and not found.is_directory):
            continue
        if len(paths) == limit:
            more = True
            break
        paths.append(shown(found.path) + ("/" if found.is_directory else ""))
    details: dict[str, Any] = {}
    notices = []
    if more:
        notices.append(f"{limit} results limit reached. Use limit={limit * 2} for more, or refine pattern")
        details["resultLimitReached"] = limit
    output = truncate_lines(paths, options.max_bytes)
    if output.truncated:
        notices.append(f"{format_size(options.max_bytes)} limit reached")
        details["truncation"] = output.to_json()
    notices += unreadable_notice(walk.unreadable, "directory", "directories")
    text = output.content if paths else "No files found matching pattern"
    return ToolResult.text(with_notices(text, notices), details=details or None)
