from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from pi_dbos._engine import database_url
from pi_dbos._locks import LockedBuild, locked_build
from pi_dbos.runs import Runs
from sqlalchemy.engine import make_url

from pi_core import AgentMessage, Build, user_message

SITE = Path(__file__).parent / "site"
POSTGRES = os.environ.get("PI_DURABLE_TEST_POSTGRES", "")
"""Address of a PostgreSQL server where databases may be made; without it the tests are done on SQLite alone."""

DATABASES = ["sqlite", *(["postgresql"] if POSTGRES else [])]
PATIENCE_SECONDS = 60.0
BUILD = """
[build]
name = "durable tests"
model = "steps/steps"

[[plugins]]
name = "dbos"

[plugins.options.replay]
note_keyed = "keyed"

[[plugins]]
name = "durable_site"
"""


@dataclass
class Site:
    """A folder with a build and the files that its provider and its tools write, a database, and workers."""

    folder: Path
    url: str
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PI_DURABLE_DATABASE": self.url,
            "PI_DURABLE_SITE": str(self.folder),
            "PYTHONPATH": str(SITE),
            "HOME": str(self.folder),
        }

    @property
    def build(self) -> LockedBuild:
        return locked_build(self.folder)

    @cached_property
    def runs(self) -> Runs:
        return Runs(database_url(self.url), create=True)

    def worker(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a worker and wait until it is ready."""
        log = self.folder / f"worker-{len(self.workers)}.log"
        command = [sys.executable, "-m", "pi_core", "worker", "--build", str(self.folder), *arguments]
        with log.open("wb") as file:
            process = subprocess.Popen(command, env=self.environment, cwd=self.folder, stderr=file, stdout=file)
        self.workers.append(process)
        self.until(lambda: "is ready" in log.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """End a worker as a power failure would."""
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        """End what is left."""
        for process in self.workers:
            if process.poll() is None:
                self.kill(process)
        self.runs.close()

    def pi(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        command = [sys.executable, "-m", "pi_core", *arguments]
        return subprocess.run(
            command, env=self.environment, cwd=self.folder, capture_output=True, text=True, check=False
        )

    def start(self, name: str, *calls: list[str], **prompt: Any) -> str:
        """Start a run: for each turn the kinds of its calls; the last turn has none and is added."""
        text = json.dumps({"name": name, "calls": calls, **prompt})
        return self.runs.start([user_message(text)], self.build, run_id=name)

    def hold(self, stage: str) -> None:
        """Let whoever comes to a stage wait there."""
        (self.folder / f"hold-{stage}").touch()

    def release(self, stage: str) -> None:
        """Let go on who waits."""
        (self.folder / f"hold-{stage}").unlink()

    def reached(self, stage: str) -> None:
        """Wait until somebody has come to a stage that is held."""
        self.until(lambda: any(line["stage"] == stage for line in self.lines("stages")))

    def lines(self, name: str) -> list[dict[str, Any]]:
        """What was written to a file so far."""
        path = self.folder / f"{name}.jsonl"
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]

    def effects(self, text: str) -> list[dict[str, Any]]:
        """The effects of the calls with a text."""
        return [line for line in self.lines("effects") if line["text"] == text]

    def until(self, reached: Callable[[], Any]) -> None:
        """Wait for something that a process does."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not reached():
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.02)

    def ended(self, run_id: str) -> list[AgentMessage]:
        """Wait until a run has ended, and return its transcript."""
        self.until(lambda: self.runs.info(run_id).over)
        return self.runs.transcript(run_id)

    def logs(self) -> str:
        return "\n".join(f"{path.name}: {path.read_text()}" for path in sorted(self.folder.glob("worker-*.log")))


@pytest.fixture(scope="session", autouse=True)
def importable_site() -> Iterator[None]:
    """The plugin of the site can be found in this process too, as in the workers."""
    sys.path.insert(0, str(SITE))
    yield
    sys.path.remove(str(SITE))


@pytest.fixture(params=DATABASES)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """A site with an empty database."""
    made = Site(tmp_path, f"sqlite:///{tmp_path / 'runs.sqlite'}")
    if request.param == "postgresql":
        name = f"pi_{uuid4().hex[:12]}"
        with psycopg.connect(POSTGRES, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        made.url = make_url(POSTGRES).set(database=name).render_as_string(hide_password=False)
    (tmp_path / "pi-build.toml").write_text(BUILD)
    Build.lock(tmp_path)
    yield made
    made.stop()
