"""Runs ``pi`` as a user would: a process with a script for the model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SECONDS = 60


class Pi:
    """Starts ``pi`` in a folder, without keys, settings or plugins of this machine.

    :param folder: where it runs, and where the script is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PI_", "PYTEST_"))}
        self.environment = {
            **{name: value for name, value in kept.items() if not name.endswith(("_API_KEY", "HF_TOKEN"))},
            "PI_SCRIPT": str(folder / "script.json"),
            "PI_RETRY_ENABLED": "false",
            "HOME": str(folder),
        }

    def command(self, *arguments: str, script: Sequence[Any] | None = None) -> list[str]:
        """Write a script and return the command that plays it; without one, whatever model ``pi`` finds is used."""
        model: list[str] = []
        if script is not None:
            (self.folder / "script.json").write_text(json.dumps(list(script)), encoding="utf-8")
            model = ["--model", "scripted/scripted"]
        return [sys.executable, "-m", "pi_core", *model, *arguments]

    def run(
        self,
        *arguments: str,
        script: Sequence[Any] | None = None,
        stdin: bytes | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end; ``stdin`` is piped, and nothing is without it."""
        source: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
        done = subprocess.run(
            self.command(*arguments, script=script),
            cwd=self.folder,
            env={**self.environment, **(environ or {})},
            capture_output=True,
            timeout=SECONDS,
            check=False,
            **source,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
        )

    def start(self, *arguments: str, script: Sequence[Any]) -> subprocess.Popen[bytes]:
        """Start it and let it run."""
        return subprocess.Popen(
            self.command(*arguments, script=script),
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )


def events(text: str) -> list[dict[str, Any]]:
    """The events that JSON mode printed."""
    return [json.loads(line) for line in text.splitlines()]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A reply that calls a tool."""
    return {"blocks": [{"toolCall": {"name": name, "arguments": arguments}}]}


def state(pid: int) -> str:
    """The state of a process as ``ps`` shows it: ``S`` sleeps, ``Z`` is over; empty when there is none."""
    if not Path("/proc/self/stat").exists():
        done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
        return done.stdout.strip()[:1]
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


def alive(pid: int) -> bool:
    """Whether a process runs; one that is over but not yet waited for does not."""
    return state(pid) not in ("", "Z")
