"""Runs measurements in processes of their own, taking turns, and reads their results."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
"""The folder this package is in, from which the processes are started."""

_PATIENCE_SECONDS: Final = 120


class MeasurementError(Exception):
    """A measurement that could not be made; the text says which and why."""


@dataclass(frozen=True)
class Job:
    """One side of a comparison: a case of a module of this package, or any other command.

    :param side: module of the package.
    :param command: run in place of ``python -m benchmarks.child``.
    :param reports: whether that command prints what it measured; else the CPU time of its process is what counts.
    """

    side: str = ""
    case: str = ""
    n: int = 0
    memory: bool = False
    command: tuple[str, ...] = ()
    reports: bool = False
    python: str = sys.executable
    environ: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)

    def __str__(self) -> str:
        return " ".join(self.command) if self.command and not self.reports else f"{self.side} {self.case} {self.n}"

    def measure(self) -> dict[str, float]:
        """Run it once.

        :raises MeasurementError: the process failed.
        """
        if self.command and not self.reports:
            return {"cpu_s": process_cpu(self.command, self.environ)}
        command = list(self.command) or [self.python, "-m", f"{__package__}.child", self.side, self.case, str(self.n)]
        command += ["--memory"] if self.memory else []
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env={**os.environ, **self.environ},
                capture_output=True,
                text=True,
                timeout=_PATIENCE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise MeasurementError(f"{self}: no result after {_PATIENCE_SECONDS} seconds") from None
        if done.returncode:
            raise MeasurementError(f"{self}: {_last_line(done.stderr)}")
        result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return result


def take_turns(jobs: Sequence[Job], rounds: int) -> list[dict[str, float]]:
    """Measure the jobs in turn, every second round backwards, and return the medians of each.

    :raises MeasurementError: one of them failed.
    """
    results: list[list[dict[str, float]]] = [[] for _ in jobs]
    for number in range(rounds):
        order = range(len(jobs)) if number % 2 == 0 else range(len(jobs) - 1, -1, -1)
        for position in order:
            results[position].append(jobs[position].measure())
    return [{key: median(one[key] for one in found) for key in found[0]} for found in results]


def process_cpu(command: Sequence[str], environ: Mapping[str, str]) -> float:
    """Return the CPU seconds of a process from start to end.

    :raises MeasurementError: it failed.
    """
    with subprocess.Popen(
        command, env=dict(environ) or None, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read()
        error = process.stderr.read().decode(errors="replace")
        status, seconds = _reap(process)
    if status:
        raise MeasurementError(f"{' '.join(command)}: {_last_line(error)}")
    return seconds


def cpu_to_first_byte(command: Sequence[str], environ: Mapping[str, str], listener: socket.socket) -> float:
    """Return the CPU seconds a process has used when it sends the first byte to the listener; then it is killed.

    :raises MeasurementError: it ends, or goes quiet, without sending any.
    """
    with subprocess.Popen(
        command, env=dict(environ), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        watched: tuple[Any, ...] = (listener, process.stderr)
        error = b""
        while listener not in (ready := select.select(watched, (), (), _PATIENCE_SECONDS)[0]):
            said = os.read(process.stderr.fileno(), 65536) if ready else b""
            error += said
            if not said:
                process.kill()
                raise MeasurementError(f"{' '.join(command)}: nothing was sent. {_last_line(error.decode())}")
        connection, _ = listener.accept()
        with connection:
            connection.recv(1)
            process.send_signal(signal.SIGKILL)
            return _reap(process)[1]


def _reap(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_utime + used.ru_stime


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it failed without a word"


@contextlib.contextmanager
def running_server(n: int) -> Iterator[dict[str, str]]:
    """Serve answers of ``n`` chunks; gives the environment that names the address."""
    from .network import ADDRESS

    with subprocess.Popen(
        [sys.executable, "-m", f"{__package__}.server", str(n)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield {ADDRESS: f"http://127.0.0.1:{int(server.stdout.readline())}/v1"}
        finally:
            server.terminate()


def facts() -> dict[str, Any]:
    """Return what is known of the machine."""
    import platform

    name = platform.processor() or platform.machine()
    cpu_info = Path("/proc/cpuinfo")
    if cpu_info.exists():
        models = [line.partition(":")[2].strip() for line in cpu_info.read_text().splitlines() if "model name" in line]
        name = models[0] if models else name
    return {
        "system": f"{platform.system()} {platform.release()}",
        "cpu": name,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
    }
