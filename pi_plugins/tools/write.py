"""The ``write`` tool: a file with this content, whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pi_core import Tool, ToolContext, ToolResult

from ._arguments import STRICT
from ._content import to_text
from ._errors import system_error
from ._files import open_regular, replace_file
from ._locks import change_file
from ._paths import resolve, shown
from ._text import Style
from ._threads import Stop
from ._truncate import with_notices

if TYPE_CHECKING:
    from . import ToolsOptions

_STYLE_BYTES = 1024 * 1024


def write_tool(options: ToolsOptions) -> Tool:
    """Make the ``write`` tool."""

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        stop = Stop(context.signal)
        path = resolve(arguments["path"], options.directory())
        content = to_text(arguments["content"])

        def change() -> Style:
            try:
                style = _style(path)
                replace_file(path, style.encode(content), stop)
            except OSError as error:
                raise system_error(error, "open", path) from None
            return style

        kept = (await change_file(path, change, stop)).words()
        notices = [f"Kept as it was: {', '.join(kept)}"] if kept else []
        return ToolResult.text(with_notices(f"Successfully wrote to {shown(arguments['path'])}", notices))

    return Tool(
        name="write",
        description="Write a file, replacing what is there. Makes missing directories.",
        parameters={
            "type": "object",
            "required": ["path", "content"],
            "properties": {
                "path": {"type": "string", "description": "File to write"},
                "content": {"type": "string", "description": "The whole content"},
            },
        },
        execute=execute,
        constrained_sampling=STRICT,
        prompt_snippet="make a new file or replace a whole one",
        prompt_guidelines=("Write a whole file only when it is new or most of it changes.",),
    )


def _style(path: str) -> Style:
    """Return how the file to be replaced is laid down; a new one, or one that cannot be read, gets what is usual."""
    try:
        with open_regular(path) as file:
            return Style.of(file.read(_STYLE_BYTES))
    except OSError:
        return Style()
