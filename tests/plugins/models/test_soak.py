"""Processes that refresh, log in, change settings and read at once, some of them killed: nothing is torn or lost.

How long it goes on comes from ``PI_TEST_SOAK_SECONDS``; a release is tested with 60.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from pi_plugins.models import Catalog, CredentialStore

from .sources import SourceServer, models_dev, shipped

SECONDS = float(os.environ.get("PI_TEST_SOAK_SECONDS", "1"))

WORKER = """
import asyncio, json, sys, threading
from collections import Counter
from pathlib import Path

from pi_plugins.config import load_settings, save_setting
from pi_plugins.models import Catalog, ModelRuntime
from pi_plugins.models.refresh import refresh

folder, installed, address, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
runtime = ModelRuntime(agent_dir=folder, environ={}, catalog=Catalog(folder / "catalog", installed))
store = runtime.credentials
rounds = Counter()
number = 0


def fetch():
    (report,) = refresh(folder / "catalog", {"models.dev": address}, installed=installed)
    assert not report.failed, report


def log_in():
    global number
    number += 1
    store.set_key(name, f"{name}-{number}", env={"ROUND": str(number)})
    assert asyncio.run(runtime.api_key(name)) == f"{name}-{number}"


def log_out():
    assert number == 0 or store.remove(name) == "api_key"
    assert asyncio.run(runtime.api_key(name)) is None
    log_in()


def change_settings():
    save_setting(f"modelThinkingLevels.{name}", "high" if number % 2 else "low", agent_dir=folder)
    loaded = load_settings(folder, environ={}, agent_dir=folder)
    assert loaded.warnings == [], loaded.warnings
    assert loaded.settings.model_thinking_levels["kept"] == "max"


def read_catalog():
    catalog = Catalog(folder / "catalog", installed)
    rows = catalog.rows()
    assert catalog.problems() == [], catalog.problems()
    assert len({row["contextWindow"] for row in rows}) == 1, "rows of two sets"
    assert len(rows) == (len(list(installed.glob("*.json"))) - 1) * 4, len(rows)


def read_credentials():
    assert dict(store.list())["kept"] == "api_key"
    assert runtime.problems() == [], runtime.problems()
    for provider, _ in store.list():
        found = store.get(provider)
        assert found is None or found.type == "api_key", (provider, found)


print("ready", flush=True)
sys.stdin.readline()
stop = threading.Thread(target=sys.stdin.read, daemon=True)
stop.start()
while stop.is_alive() or not rounds:
    for step in (fetch, log_in, read_catalog, read_credentials, log_out, change_settings, read_catalog, log_in):
        step()
        rounds[step.__name__] += 1
print(json.dumps({"last": f"{name}-{number}", "rounds": rounds}), flush=True)
"""


@pytest.fixture
def source() -> Iterator[SourceServer]:
    """A source whose models change with every answer."""
    made = SourceServer()
    contexts = count(1000)

    def change() -> None:
        made.body = models_dev(context=next(contexts))

    made.before = change
    yield made
    made.close()


class Crowd:
    """Processes on one folder.

    :ivar folder: the agent's folder.
    """

    def __init__(self, folder: Path, installed: Path, address: str) -> None:
        self.folder, self._installed, self._address = folder, installed, address

    def start(self, name: str) -> subprocess.Popen[str]:
        """Start a process that waits for a line before it begins, and works until its input ends."""
        command = [sys.executable, "-c", WORKER, str(self.folder), str(self._installed), self._address, name]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
        return process


def begin(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()


@pytest.mark.timeout(120 + 4 * SECONDS)
@pytest.mark.parametrize("processes", [2, 4])
def test_processes_at_once_tear_and_lose_nothing(
    folder: Path, tmp_path: Path, source: SourceServer, processes: int
) -> None:
    crowd = Crowd(folder, shipped(tmp_path / "installed", models_dev(context=999)), source.address)
    CredentialStore(folder / "auth.json").set_key("kept", "kept")
    (folder / "settings.json").write_text('{"modelThinkingLevels": {"kept": "max"}, "theme": "mine"}')
    names = [f"p{number}" for number in range(processes)]
    workers = [crowd.start(name) for name in names]
    chance = random.Random(processes)
    begin(*workers)
    ends_at = monotonic() + SECONDS
    killed = 0
    while monotonic() < ends_at:
        victim = crowd.start("victim")
        begin(victim)
        try:
            victim.wait(chance.uniform(0, 0.3))
        except subprocess.TimeoutExpired:
            victim.send_signal(signal.SIGKILL)
            killed += 1
        assert victim.communicate()[1] == ""
    done = [worker.communicate(timeout=60) for worker in workers]
    assert [error for _, error in done] == [""] * processes
    reports: list[dict[str, Any]] = [json.loads(output) for output, _ in done]
    assert killed
    assert min(min(report["rounds"].values()) for report in reports) > 0
    stored = json.loads((folder / "auth.json").read_text())
    assert stored["kept"] == {"type": "api_key", "key": "kept"}
    assert [stored[name]["key"] for name in names] == [report["last"] for report in reports]
    settings = json.loads((folder / "settings.json").read_text())
    assert settings["theme"] == "mine"
    assert {"kept", *names} <= settings["modelThinkingLevels"].keys()
    catalog = Catalog(folder / "catalog", tmp_path / "installed")
    assert len({row["contextWindow"] for row in catalog.rows()}) == 1
    assert catalog.problems() == []
    print(f"{processes} processes, {killed} killed, {[sum(report['rounds'].values()) for report in reports]} steps")
