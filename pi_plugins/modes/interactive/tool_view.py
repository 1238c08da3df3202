"""How calls of tools and their results look."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from pi_core import ImageContent, TextContent, ToolCallContent, ToolResult

from . import marks
from ._code import highlighted, language_of
from ._text import count, one_line, plain, seconds
from .blocks import Block, folded, lines_of
from .image_view import Picture

_SHOWN: Final = 6
_DIFF_SHOWN: Final = 40
_ERROR_SHOWN: Final = 12
_QUIET: Final = frozenset({"read"})
"""Tools of whose results only the size is shown: the model reads them, people know the files."""


def call_line(call: ToolCallContent, cwd: Path, note: str = "") -> Text:
    """Return the line that says what is called, with what it is about.

    :param note: a few dimmed words behind it.
    """
    line = Text(plain(call.name), "bold", no_wrap=True, overflow="ellipsis")
    about = subject(call, cwd)
    if about:
        line.append(f" {about}", "not bold")
    if note:
        line.append(f" · {note}", "not bold dim")
    return line


def subject(call: ToolCallContent, cwd: Path) -> str:
    """Return what a call is about, in one line."""
    given = call.arguments
    match call.name, given:
        case _, {"command": str(command)}:
            lines = plain(command).strip().split("\n")
            more = f" … {count(len(lines) - 1, 'more line')}" if len(lines) > 1 else ""
            return lines[0] + more
        case _, {"pattern": str(pattern)}:
            where = given.get("path")
            inside = f" in {_path(where, cwd)}" if isinstance(where, str) and where not in ("", ".") else ""
            return one_line(pattern) + inside
        case "read", {"path": str(path)}:
            return _path(path, cwd) + _range(given)
        case _, {"path": str(path)}:
            return _path(path, cwd)
    return one_line(json.dumps(given, ensure_ascii=False)) if given else ""


def _path(path: str, cwd: Path) -> str:
    if os.path.isabs(path):
        inside = os.path.relpath(path, cwd)
        path = path if inside.startswith("..") else inside
    return one_line(path)


def _range(given: Mapping[str, Any]) -> str:
    offset, limit = given.get("offset"), given.get("limit")
    if not isinstance(offset, int) and not isinstance(limit, int):
        return ""
    first = offset if isinstance(offset, int) else 1
    return f":{first}-{first + limit - 1}" if isinstance(limit, int) else f":{first}-"


def finished(
    call: ToolCallContent, result: ToolResult, cwd: Path, *, is_error: bool, duration_ms: int | None = None
) -> Block:
    """Return a call with what came of it, folded when it is long."""
    notes = [_size(call, result)] if not is_error else []
    notes += [seconds(duration_ms / 1000)] if duration_ms is not None and duration_ms >= 1000 else []
    line = call_line(call, cwd, " · ".join(filter(None, notes)))
    body, more = _body(call, result, is_error)
    return Block(
        Group(line, body) if body is not None else line,
        mark=marks.FAILED if is_error else marks.CALL,
        style="error" if is_error else "ok",
        terse=body is None,
        fallback=Text(f"{call.name}\n{_text(result)}"),
        whole=(lambda: Group(line, _whole(call, result))) if more else None,
    )


def running(call: ToolCallContent, progress: ToolResult | None, cwd: Path, note: str, lines: int) -> RenderableType:
    """Return a call that goes on, with the last lines of what it reported."""
    head = call_line(call, cwd, note)
    shown = lines_of(_text(progress))[-lines:] if progress is not None and lines > 0 else []
    return Group(head, Text("\n".join(shown), "dim", no_wrap=True, overflow="ellipsis")) if shown else head


def _quiet(call: ToolCallContent, result: ToolResult) -> bool:
    return call.name in _QUIET and not any(isinstance(block, ImageContent) for block in result.content or [])


def _size(call: ToolCallContent, result: ToolResult) -> str:
    return count(len(lines_of(_text(result))), "line") if _quiet(call, result) else ""


def _body(call: ToolCallContent, result: ToolResult, is_error: bool) -> tuple[RenderableType | None, bool]:
    text = _text(result)
    if is_error:
        return folded(lines_of(text), _ERROR_SHOWN, style="error") if text.strip() else (None, False)
    details = result.details
    if isinstance(details, dict) and isinstance(details.get("diff"), str):
        return folded(plain(details["diff"]).split("\n"), _DIFF_SHOWN, draw=diff)
    written = call.arguments.get("content")
    if call.name == "write" and isinstance(written, str):
        language = language_of(str(call.arguments.get("path", "")))
        return folded(lines_of(written), _SHOWN, draw=lambda lines: highlighted(lines, language))
    lines = lines_of(text)
    if _quiet(call, result):
        return None, bool(lines)
    images = [block for block in result.content or [] if isinstance(block, ImageContent)]
    body, more = folded(lines, _SHOWN, end=call.name == "bash")
    pictures = [Picture(image) for image in images]
    return (Group(*([body] if lines else []), *pictures) if lines or pictures else None), more


def _whole(call: ToolCallContent, result: ToolResult) -> RenderableType:
    details = result.details
    if isinstance(details, dict) and isinstance(details.get("diff"), str):
        return diff(plain(details["diff"]).split("\n"))
    written = call.arguments.get("content")
    if call.name == "write" and isinstance(written, str):
        return highlighted(plain(written).split("\n"), language_of(str(call.arguments.get("path", ""))))
    return Text(plain(_text(result)), "dim")


def diff(lines: list[str]) -> Text:
    """Return the lines of a difference in colors; signs stay, so that it can be read without."""
    shown = Text()
    for number, line in enumerate(lines):
        style = {"+": "diff.added", "-": "diff.removed"}.get(line[:1], "dim")
        shown.append("\n" if number else "").append(line, style)
    return shown


def _text(result: ToolResult) -> str:
    return "\n".join(block.text for block in result.content or [] if isinstance(block, TextContent))
