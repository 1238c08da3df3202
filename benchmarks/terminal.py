"""The interactive mode while a model streams: ``python -m benchmarks.terminal DELTAS [RATE]`` prints a line of JSON.

``lag_ms`` is the time from a piece of text to its place on the terminal, ``key_ms`` that from a key to its echo (both:
the value that 95 of 100 stay below), ``cpu`` the share of one core that the process used.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import Final

from .stream_plugin import END

COLUMNS: Final = 80
ROWS: Final = 24

_PATIENCE_SECONDS: Final = 60
_KEY_SECONDS: Final = 0.25
_TIMES: Final = re.compile(rb"<(\d+)>")
_PLUGIN: Final = Path(__file__).with_name("stream_plugin.py")


class _Run:
    """``pi`` in a pseudo terminal.

    :param environ: environment variables of it.
    """

    def __init__(self, environ: dict[str, str], folder: str) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        command = [
            sys.executable,
            "-m",
            "pi_core",
            "-e",
            str(_PLUGIN),
            "--model",
            "clockwork/clockwork",
            "--no-session",
        ]
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environ, cwd=folder, start_new_session=True
        )
        os.close(slave)

    def read(self, seconds: float) -> bytes:
        """Return what was written within a time; nothing once the process has ended."""
        ready, _, _ = select.select([self.master], [], [], max(0.0, seconds))
        try:
            return os.read(self.master, 65536) if ready else b""
        except OSError:
            return b""

    def wait_for(self, text: bytes) -> None:
        """Wait until a text was written.

        :raises SystemExit: it was not.
        """
        seen, end = b"", time.monotonic() + _PATIENCE_SECONDS
        while text not in seen:
            if time.monotonic() > end or self.process.poll() is not None:
                raise SystemExit(f"{text!r} was not shown: {seen[-500:]!r}")
            seen += self.read(1)

    def cpu(self) -> float:
        """Return the CPU seconds that the process has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(deltas: int, rate: int) -> dict[str, float]:
    """Let a model stream, type meanwhile, and return what was measured.

    :param deltas: pieces of text.
    :param rate: pieces in a second.
    """
    with tempfile.TemporaryDirectory(prefix="pi-benchmark-") as folder:
        given = {"PI_STREAM_DELTAS": str(deltas), "PI_STREAM_RATE": str(rate), "HOME": folder, "TERM": "xterm-256color"}
        run = _Run({**os.environ, **given}, folder)
        try:
            run.wait_for(b"clockwork/clockwork")
            os.write(run.master, b"go")
            run.wait_for(b"go")
            used, begun = run.cpu(), time.monotonic()
            os.write(run.master, b"\r")
            lags, keys = _watch(run)
            seconds = time.monotonic() - begun
            return {
                "lag_ms": _percentile(lags),
                "key_ms": _percentile(keys),
                "cpu": (run.cpu() - used) / seconds,
                "rate": deltas / seconds,
            }
        finally:
            run.process.kill()
            run.process.wait()
            os.close(run.master)


def _watch(run: _Run) -> tuple[list[float], list[float]]:
    """Read until the end; how late what was shown was, and how late keys were, in milliseconds."""
    lags: list[float] = []
    keys: list[float] = []
    newest, typed_at, letter = 0, 0.0, 0
    next_key = time.monotonic() + _KEY_SECONDS
    end = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < end:
        data = run.read(next_key - time.monotonic())
        now = time.monotonic()
        times = [found for found in map(int, _TIMES.findall(data)) if found > newest]
        if times:
            # The oldest of what is new waited longest.
            lags.append(now * 1000 - min(times))
            newest = max(times)
        if typed_at and _key(letter) in data:
            keys.append((now - typed_at) * 1000)
            typed_at = 0.0
        if END.encode() in data:
            break
        if now >= next_key and not typed_at:
            letter += 1
            os.write(run.master, b"\x7f\x7f" + _key(letter) if letter > 1 else _key(letter))
            typed_at, next_key = now, now + _KEY_SECONDS
    return lags, keys


def _key(number: int) -> bytes:
    return b"~" + b"abcdefghijklmnopqrstuvwxyz"[number % 26 : number % 26 + 1]


def _percentile(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))] if ordered else float("nan")


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2000)))
