"""The ``read`` tool: a part of a text file, or an image."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from pi_core import Model, TextContent, Tool, ToolContext, ToolResult

from ._arguments import STRICT, count
from ._content import HEAD_BYTES, IMAGES, as_utf8, sniff, to_text
from ._errors import ToolError, system_error
from ._files import open_regular
from ._images import ImageLimits, prepare_image, require_small_image
from ._lines import Selection, select_lines
from ._paths import resolve_existing
from ._threads import Stop, in_thread
from ._truncate import format_size

if TYPE_CHECKING:
    from . import ToolsOptions

_CHUNK = 1024 * 1024


def read_tool(options: ToolsOptions) -> Tool:
    """Make the ``read`` tool."""

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        stop = Stop(context.signal)
        model = context.run.model if context.run is not None else None
        return await in_thread(lambda: _read(arguments, options, stop, model), stop)

    return Tool(
        name="read",
        description=(
            f"Read a text file or an image. Shows at most {options.max_lines} lines or "
            f"{format_size(options.max_bytes)}; go on with offset."
        ),
        parameters={
            "type": "object",
            "required": ["path"],
            "properties": {
                "path": {"type": "string", "description": "File to read"},
                "offset": {"type": "number", "description": "First line, from 1"},
                "limit": {"type": "number", "description": "Number of lines"},
            },
        },
        execute=execute,
        constrained_sampling=STRICT,
        replay="safe",
        prompt_snippet="look at a file or an image",
    )


def _read(arguments: dict[str, Any], options: ToolsOptions, stop: Stop, model: Model | None) -> ToolResult:
    path = resolve_existing(arguments["path"], options.directory())
    try:
        with open_regular(path) as file:
            head = file.read(HEAD_BYTES)
            content = sniff(head)
            if content.mime in IMAGES:
                size = os.fstat(file.fileno()).st_size
                limits = ImageLimits.of(options, model)
                require_small_image(arguments["path"], size, limits)
                sees_images = model is None or model.id == "unknown" or "image" in model.input
                return _image(arguments["path"], head + file.read(size), limits, sees_images)
            if content.encoding is None:
                size = os.fstat(file.fileno()).st_size
                raise ToolError(
                    f"{arguments['path']} is a binary file ({content.mime}, {format_size(size)}); "
                    "use bash to look into it"
                )
            return _text(arguments, as_utf8(_chunks(head, file, stop), content.encoding), options)
    except FileNotFoundError as error:
        raise system_error(error, "access", path) from None
    except IsADirectoryError as error:
        raise system_error(error, "read", path) from None
    except OSError as error:
        raise system_error(error, "open", path) from None


def _chunks(head: bytes, file: BinaryIO, stop: Stop) -> Iterator[bytes]:
    yield head
    while chunk := file.read(_CHUNK):
        stop.check()
        yield chunk


def _text(arguments: dict[str, Any], chunks: Iterator[bytes], options: ToolsOptions) -> ToolResult:
    offset = count(arguments, "offset", 1)
    limit = None if arguments.get("limit") is None else count(arguments, "limit", 1)
    selection = select_lines(
        chunks, offset=offset, limit=limit, max_lines=options.max_lines, max_bytes=options.max_bytes
    )
    if offset > max(1, selection.total_lines):
        raise ToolError(f"Offset {offset} is beyond end of file ({selection.total_lines} lines total)")
    text = selection.text + _notice(to_text(arguments["path"]), offset, selection, options)
    details = None
    if selection.stopped_by in ("lines", "bytes"):
        details = {"truncation": selection.truncation(options.max_lines, options.max_bytes).to_json()}
    return ToolResult.text(text, details=details, structured_content=text)


def _notice(path: str, offset: int, selection: Selection, options: ToolsOptions) -> str:
    following = offset + selection.lines
    if selection.stopped_by is None:
        return ""
    if selection.stopped_by == "limit":
        left = selection.total_lines - following + 1
        return f"\n\n[{left} more lines in file. Use offset={following} to continue.]"
    if selection.long_line is not None:
        limit = format_size(options.max_bytes)
        return (
            f"[Line {offset} is {format_size(selection.long_line)}, exceeds {limit} limit. "
            f"Use bash: sed -n '{offset}p' {shlex.quote(path)} | head -c {options.max_bytes}]"
        )
    shown = f"Showing lines {offset}-{following - 1} of {selection.total_lines}"
    if selection.stopped_by == "bytes":
        shown += f" ({format_size(options.max_bytes)} limit)"
    return f"\n\n[{shown}. Use offset={following} to continue.]"


def _image(path: str, data: bytes, limits: ImageLimits, sees_images: bool) -> ToolResult:
    prepared = prepare_image(path, data, limits)
    image = prepared.image
    note = "\n".join([f"Read image file [{image.mime_type}]", *prepared.notes])
    if not sees_images:
        text = f"{note}\nThe current model takes no images, so it is left out."
        return ToolResult.text(text, details={"imageUnsupportedByModel": True}, structured_content=text)
    return ToolResult(content=[TextContent(text=note), image], structured_content={**image.to_json(), "note": note})
