"""The ``write`` tool: a file with this content, whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pi_core import Tool, ToolContext, ToolResult

from ._arguments import STRICT
from ._content import to_text
from ._errors import system_error
from ._files import replace_file
from ._locks import change_file
from ._paths import resolve
from ._threads import Stop

if TYPE_CHECKING:
    from . import ToolsOptions


def write_tool(options: ToolsOptions) -> Tool:
    """Make the ``write`` tool."""

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        stop = Stop(context.signal)
        path = resolve(arguments["path"], options.directory())
        data = to_text(arguments["content"]).encode()

        def change() -> None:
            try:
                replace_file(path, data, stop)
            except OSError as error:
                raise system_error(error, "open", path) from None

        await change_file(path, change, stop)
        return ToolResult.text(f"Successfully wrote to {arguments['path']}")

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
