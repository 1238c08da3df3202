"""Programs in a session of their own, so that they and everything they start can be ended as one."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass

READ_BYTES = 64 * 1024

_AFTER_KILL_SECONDS = 2.0


class Pipe:
    """A pipe that a program writes to. It is made here, since the end of a program must not wait for its pipe."""

    def __init__(self, reader: asyncio.StreamReader, transport: asyncio.ReadTransport, write_end: int) -> None:
        self._reader = reader
        self._transport = transport
        self.write_end = write_end

    @classmethod
    async def open(cls) -> Pipe:
        """Make a pipe; :meth:`close` frees it."""
        loop = asyncio.get_running_loop()
        read_end, write_end = os.pipe()
        reader = asyncio.StreamReader()
        file = os.fdopen(read_end, "rb", buffering=0)
        try:
            transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
        except BaseException:
            file.close()
            os.close(write_end)
            raise
        return cls(reader, transport, write_end)

    async def read(self) -> bytes:
        """Return what was written, ``b""`` when every writer has closed its end."""
        return await self._reader.read(READ_BYTES)

    def close_write_end(self) -> None:
        """Leave the writing end to the program."""
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1

    def close(self) -> None:
        """Close both ends; a second call does nothing."""
        self.close_write_end()
        self._transport.close()


async def start(
    argv: list[str], *, cwd: str, stdout: Pipe, stderr: Pipe | None = None, env: Mapping[str, str] | None = None
) -> asyncio.subprocess.Process:
    """Start a program in a new session, with nothing to read.

    :param stderr: where errors go; by default where the output goes.
    :raises OSError: it cannot be started.
    """
    try:
        return await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=stdout.write_end,
            stderr=stdout.write_end if stderr is None else stderr.write_end,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )
    finally:
        for pipe in (stdout, stderr):
            if pipe is not None:
                pipe.close_write_end()


async def end(process: asyncio.subprocess.Process, grace: float) -> None:
    """End a program and everything it started: SIGTERM, and SIGKILL for what is left after ``grace`` seconds.

    Returns when all of it is gone. Cancelled meanwhile, it gives no more grace.
    """
    hurry = asyncio.Event()
    ending = asyncio.create_task(_end(process, grace, hurry))
    try:
        await asyncio.shield(ending)
    except asyncio.CancelledError:
        hurry.set()
        await asyncio.wait({ending}, timeout=2 * _AFTER_KILL_SECONDS)
        raise


async def _end(process: asyncio.subprocess.Process, grace: float, hurry: asyncio.Event) -> None:
    family = _Family(process.pid)
    try:
        family.send(signal.SIGTERM)
        await _wait_until_gone(family, grace, hurry)
    finally:
        family.send(signal.SIGKILL)
    await _wait_until_gone(family, _AFTER_KILL_SECONDS, asyncio.Event())
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), _AFTER_KILL_SECONDS)


async def _wait_until_gone(family: _Family, seconds: float, hurry: asyncio.Event) -> None:
    deadline = time.monotonic() + seconds
    for wait in itertools.chain((0.005, 0.01, 0.02), itertools.repeat(0.05)):
        if hurry.is_set() or not family.alive() or time.monotonic() >= deadline:
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(hurry.wait(), wait)


@dataclass(frozen=True, slots=True)
class _Status:
    """What ``/proc`` says about a process; ``started`` tells two with the same number apart."""

    parent: int
    group: int
    session: int
    started: int
    dead: bool


class _Family:
    """A process that leads a session, and all that came from it, in groups and sessions of their own as well."""

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self._known: dict[int, int] = {}

    def alive(self) -> bool:
        """Whether any of them still runs."""
        table = _processes()
        if table is None:
            try:
                os.killpg(self._leader, 0)
            except OSError:
                return False
            return True
        self._learn(table)
        return any(not table[pid].dead for pid in self._known)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to all of them."""
        table = _processes()
        groups, others = {self._leader}, []
        if table is not None:
            self._learn(table)
            groups = {table[pid].group for pid in self._known} & groups
            others = [pid for pid in self._known if table[pid].group != self._leader]
        for group in groups:
            with contextlib.suppress(OSError):
                os.killpg(group, number)
        for pid in others:
            with contextlib.suppress(OSError):
                os.kill(pid, number)

    def _learn(self, table: dict[int, _Status]) -> None:
        """Keep those known before that are still there, and add what belongs to them."""
        known = {pid: start for pid, start in self._known.items() if pid in table and table[pid].started == start}
        grown = True
        while grown:
            grown = False
            for pid, status in table.items():
                if pid not in known and (self._leader in (status.session, status.group) or status.parent in known):
                    known[pid] = status.started
                    grown = True
        self._known = known


def _processes() -> dict[int, _Status] | None:
    """Return all processes, ``None`` where the system has no ``/proc``."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return None
    table: dict[int, _Status] = {}
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        parent, group, session = (int(value) for value in fields[1:4])
        table[int(name)] = _Status(parent, group, session, int(fields[19]), fields[0] in (b"Z", b"X"))
    return table or None
