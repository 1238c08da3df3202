"""The ``grep`` tool: lines of files that match a pattern."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, BinaryIO

from pi_core import Tool, ToolContext, ToolResult

from ._arguments import count, unreadable_notice
from ._batches import Batches
from ._content import to_text
from ._errors import ToolError, system_error
from ._files import open_regular
from ._glob import PathTest, path_test
from ._paths import resolve_existing, shown
from ._regex import line_pattern
from ._search import Line, Query, Search
from ._threads import Stop, in_thread, until_aborted
from ._truncate import MAX_LINE_CHARACTERS, format_size, truncate_line, truncate_lines, with_notices
from ._walk import Walk

if TYPE_CHECKING:
    from . import ToolsOptions

_LIMIT = 100
_FIRST_BATCH_BYTES = 20_000
_BATCH_BYTES = 100_000
_MAX_LIMIT = 1_000_000
_MAX_CONTEXT = 1000


def grep_tool(options: ToolsOptions) -> Tool:
    """Make the ``grep`` tool."""

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return await until_aborted(_grep(arguments, options, Stop(context.signal)), context.signal)

    return Tool(
        name="grep",
        description=(
            f"Search file contents for a regular expression; honours .gitignore. Shows at most {_LIMIT} matches."
        ),
        parameters={
            "type": "object",
            "required": ["pattern"],
            "properties": {
                "pattern": {"type": "string", "description": "Regular expression"},
                "path": {"type": "string", "description": "File or directory; default: the working directory"},
                "glob": {"type": "string", "description": "Only files like this, such as *.py or src/**/*.ts"},
                "ignoreCase": {"type": "boolean", "description": "Ignore case"},
                "literal": {"type": "boolean", "description": "The pattern is plain text"},
                "context": {"type": "number", "description": "Lines to show around each match"},
                "limit": {"type": "number", "description": "Most matches"},
            },
        },
        execute=execute,
        timeout=options.search_timeout,
        replay="safe",
        prompt_snippet="search in files",
        prompt_guidelines=("Search in files with grep, not with a command.",),
    )


async def _grep(arguments: dict[str, Any], options: ToolsOptions, stop: Stop) -> ToolResult:
    search = await in_thread(lambda: _Grep(arguments, options, stop), stop)
    await search.run()
    return search.result()


class _Grep:
    """One search and what it found."""

    def __init__(self, arguments: dict[str, Any], options: ToolsOptions, stop: Stop) -> None:
        self._options = options
        self._stop = stop
        self._limit = min(count(arguments, "limit", _LIMIT), _MAX_LIMIT)
        self._context = min(count(arguments, "context", 0), _MAX_CONTEXT) if arguments.get("context") else 0
        ignore_case = arguments.get("ignoreCase") is True
        pattern = line_pattern(
            to_text(arguments["pattern"]), literal=arguments.get("literal") is True, ignore_case=ignore_case
        )
        path = resolve_existing(arguments.get("path") or ".", options.directory())
        if not os.path.exists(path):
            raise ToolError(f"Path not found: {path}")
        self._walk = Walk(path, options.directory(), stop)
        if os.path.isdir(path):
            directory, files = path, self._below(path_test(arguments.get("glob") or "*"))
        else:
            _open_file(path).close()
            directory, name = os.path.split(path)
            files = iter([name])
        self._batches = Batches(directory, files)
        self._search = Search(
            Query(pattern=pattern, ignore_case=ignore_case, context=self._context, limit=self._limit + 1),
            directory,
        )
        self._output: list[str] = []
        self._before: list[Line] = []
        self._size = 0
        self._matches = 0
        self._last = ("", 0)
        self._more = False
        self._cut = False
        self._judged: tuple[str, bool] = ("", True)
        self._binary = 0

    def _below(self, wanted: PathTest) -> Iterator[str]:
        for found in self._walk:
            if found.is_file and wanted(found.path, found.name):
                yield found.path

    async def run(self) -> None:
        """Search until there is enough: the first few files alone, then the rest side by side."""
        try:
            await self._start_batch(_FIRST_BATCH_BYTES)
            while self._search.is_running:
                async with aclosing(self._search.lines()) as lines:
                    async for line in lines:
                        await self._take(line)
                        if self._done:
                            return
                while self._search.has_room and await self._start_batch(_BATCH_BYTES):
                    pass
        finally:
            await self._search.close()

    async def _start_batch(self, size: int) -> bool:
        batch = await in_thread(lambda: self._batches.next(size), self._stop)
        if batch is not None:
            await self._search.start(batch)
        return batch is not None

    @property
    def _done(self) -> bool:
        return self._more or self._size > self._options.max_bytes

    async def _take(self, line: Line) -> None:
        if line.path != self._judged[0]:
            self._judged = (line.path, await in_thread(lambda: self._batches.is_text(line.path), self._stop))
            self._binary += not self._judged[1]
            self._before.clear()
        if not self._judged[1]:
            return
        path, number = self._last
        if line.is_match:
            if self._matches == self._limit:
                self._more = True
                return
            self._matches += 1
            self._last = (line.path, line.number)
            for earlier in self._before:
                self._show(earlier)
            self._before.clear()
            self._show(line)
        elif line.path == path and line.number <= number + self._context:
            self._show(line)
        else:
            self._before.append(line)

    def _show(self, line: Line) -> None:
        text, cut = truncate_line(line.text)
        self._cut = self._cut or cut
        mark = ":" if line.is_match else "-"
        self._output.append(f"{shown(line.path)}{mark}{line.number}{mark} {text}")
        self._size += len(self._output[-1].encode()) + 1

    def result(self) -> ToolResult:
        """Return what was found, with what is missing."""
        details: dict[str, Any] = {}
        notices = []
        if self._more:
            notices.append(
                f"{self._limit} matches limit reached. Use limit={self._limit * 2} for more, or refine pattern"
            )
            details["matchLimitReached"] = self._limit
        output = truncate_lines(self._output, self._options.max_bytes)
        if output.truncated:
            notices.append(f"{format_size(self._options.max_bytes)} limit reached")
            details["truncation"] = output.to_json()
        if self._cut:
            notices.append(f"Some lines truncated to {MAX_LINE_CHARACTERS} chars. Use read tool to see full lines")
            details["linesTruncated"] = True
        if self._binary:
            notices.append("1 binary file matches" if self._binary == 1 else f"{self._binary} binary files match")
        if self._batches.left_out:
            one = self._batches.left_out == 1
            notices.append(f"{self._batches.left_out} large binary {'file was' if one else 'files were'} not searched")
        notices += unreadable_notice(self._walk.unreadable, "directory", "directories")
        notices += unreadable_notice(self._search.unreadable, "file", "files")
        text = output.content if self._output else "No matches found"
        return ToolResult.text(with_notices(text, notices), details=details or None)


def _open_file(path: str) -> BinaryIO:
    """Open the one file that is to be searched.

    :raises ToolError: it cannot be read, or is no regular file.
    """
    try:
        return open_regular(path)
    except OSError as error:
        raise system_error(error, "open", path) from None
