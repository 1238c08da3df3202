"""Runs the program that searches files: ripgrep where there is one, else our own."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import re
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from ._batches import Batch
from ._errors import ToolError, system_error
from ._process import Pipe, end, start
from ._regex import LinePattern

MAX_COLUMNS = 2000
"""How much of a line the programs print, more than is ever shown."""

_PART_BYTES = 64 * 1024
_PROGRAMS = min(4, os.cpu_count() or 1)
_LEAST_VERSION = 14
_LINE = re.compile(rb"(?s)(.+?)\0(\d+)([:-])(.*)")
_UNREADABLE = re.compile(r"\(os error \d+\)$")


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for.

    :param context: lines wanted before and after each match.
    :param limit: most matches of one file.
    """

    pattern: LinePattern
    ignore_case: bool
    context: int
    limit: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line that matches, or one near it."""

    path: str
    number: int
    is_match: bool
    text: str


def find_ripgrep() -> str | None:
    """Return the path of a ripgrep that finds what our own program finds, from PATH or beside the Python in use."""
    beside = os.path.join(os.path.dirname(sys.executable or ""), "rg")
    for path in (shutil.which("rg"), shutil.which(beside)):
        with contextlib.suppress(OSError):
            if path is not None and _is_suitable(path, os.stat(path).st_mtime_ns):
                return path
    return None


@functools.cache
def _is_suitable(program: str, changed: int) -> bool:
    """Say whether a program is a ripgrep of a version that reads a lone carriage return as we do.

    :param changed: when the program was changed last, so that another one is asked again.
    """
    try:
        answer = subprocess.run([program, "--version"], capture_output=True, stdin=subprocess.DEVNULL, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return False
    version = re.match(rb"ripgrep (\d+)\.", answer.stdout)
    return version is not None and int(version[1]) >= _LEAST_VERSION


class Search:
    """One search, made by several programs side by side.

    :param cwd: the directory that the paths of files are relative to.
    :param unreadable: how many files could not be read so far.
    """

    def __init__(self, query: Query, cwd: str) -> None:
        ripgrep = find_ripgrep()
        self._query = query
        self._argv = _own_program(query) if ripgrep is None else _ripgrep(ripgrep, query)
        self.cwd = cwd
        self.unreadable = 0
        self._running: deque[_Program] = deque()

    @property
    def is_running(self) -> bool:
        """Whether there are files whose lines were not given yet."""
        return bool(self._running)

    @property
    def has_room(self) -> bool:
        """Whether another program may be started."""
        return len(self._running) < _PROGRAMS

    async def start(self, batch: Batch) -> None:
        """Begin to search some files.

        :raises ToolError: the program cannot be started.
        """
        program = await _Program.open()
        self._running.append(program)
        argv = _own_program(self._query) if batch.large else self._argv
        files = ["./-" if path == "-" else path for path in batch.files]  # a bare one would be the standard input
        await program.start([*argv, *files], self.cwd)

    async def lines(self) -> AsyncGenerator[Line]:
        """Give what was found in the files that were started first, in the order of the files.

        :raises ToolError: the pattern is no regular expression, or the program fails.
        """
        program = self._running[0]
        async for raw in program.output():
            match = _LINE.fullmatch(raw)
            if match is not None:
                text = match[4].rstrip(b"\r").decode("utf-8", "replace").removeprefix("\ufeff")
                yield Line(os.fsdecode(match[1]).removeprefix("./"), int(match[2]), match[3] == b":", text)
        self.unreadable += await program.unreadable()
        self._running.popleft()
        await program.close()

    async def close(self) -> None:
        """End the programs that still run."""
        await asyncio.gather(*(program.close() for program in self._running))


class _Program:
    """A program that searches some files."""

    def __init__(self, stdout: Pipe, stderr: Pipe) -> None:
        self._stdout = stdout
        self._stderr = stderr
        self._process: asyncio.subprocess.Process | None = None
        self._complaints = asyncio.create_task(_collect(stderr))

    @classmethod
    async def open(cls) -> _Program:
        stdout = await Pipe.open()
        try:
            return cls(stdout, await Pipe.open())
        except BaseException:
            stdout.close()
            raise

    async def start(self, argv: list[str], cwd: str) -> None:
        try:
            self._process = await start(argv, cwd=cwd, stdout=self._stdout, stderr=self._stderr)
        except OSError as error:
            raise system_error(error, "run", argv[0]) from None

    async def output(self) -> AsyncGenerator[bytes]:
        """Give the lines it prints."""
        rest = b""
        while chunk := await self._stdout.read():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line

    async def unreadable(self) -> int:
        """Wait until it ends, and return how many files it could not read."""
        assert self._process is not None
        code = await self._process.wait()
        complaints = (await self._complaints).decode("utf-8", "replace").strip()
        if code in (0, 1):
            return 0
        lines = complaints.split("\n")
        unreadable = [line for line in lines if _UNREADABLE.search(line)]
        if len(unreadable) < len(lines):
            raise ToolError(complaints.removeprefix("rg: ") or f"the search failed with code {code}")
        return len(unreadable)

    async def close(self) -> None:
        """End it, if it still runs."""
        try:
            if self._process is not None and self._process.returncode is None:
                await end(self._process, 0)
        finally:
            self._complaints.cancel()
            self._stdout.close()
            self._stderr.close()


def _ripgrep(program: str, query: Query) -> list[str]:
    argv = [program, "--no-config", "--null", "--with-filename", "--line-number", "--no-heading", "--color=never"]
    argv += ["--text", "--crlf", "--no-mmap", "--threads=1", "--no-ignore", "--hidden"]
    argv += [f"--max-columns={MAX_COLUMNS}", "--max-columns-preview", f"--max-count={query.limit}"]
    argv += [f"--context={query.context}"]
    if query.ignore_case:
        argv.append("--ignore-case")
    return [*argv, "--regexp", query.pattern.ripgrep, "--"]


def _own_program(query: Query) -> list[str]:
    if not sys.executable:
        raise ToolError("grep needs ripgrep here: install rg")
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_grep_worker.py")
    argv = [sys.executable, "-I", "-S", "-X", "utf8", program, query.pattern.python]
    argv.append("ignore-case" if query.ignore_case else "case")
    return [*argv, str(query.context), str(query.limit), str(MAX_COLUMNS)]


async def _collect(pipe: Pipe) -> bytes:
    """Return the first part of what is written, and read the rest so that the program is not held up."""
    collected = b""
    while chunk := await pipe.read():
        collected = (collected + chunk)[:_PART_BYTES]
    return collected
