"""Durable runs, where ``pi-dbos`` is installed: what a step costs, and what more workers bring.

``python -m benchmarks.durable step ours|floor N`` or ``workers COUNT RUNS`` measures once and prints JSON. The database
is SQLite, or the PostgreSQL server of ``PI_DURABLE_TEST_POSTGRES``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from .processes import ROOT, Job

ANSWER_SECONDS: Final = 0.2
"""How long the model of the runs takes for an answer."""

_SITE: Final = ROOT / "contrib" / "pi-dbos" / "tests" / "site"
_CALLS: Final = [["safe"], ["safe"]]
_CONCURRENCY: Final = 8
_BUILD: Final = """
[build]
name = "benchmark"
model = "steps/steps"

[[plugins]]
name = "dbos"

[[plugins]]
name = "durable_site"
"""


def is_installed() -> bool:
    """Whether there is anything to measure."""
    return find_spec("pi_dbos") is not None


def durable_job(*arguments: str) -> Job:
    """Return a measurement of this module."""
    command = (sys.executable, "-m", f"{__package__}.durable", *arguments)
    return Job(command=command, reports=True)


@contextmanager
def _database() -> Iterator[tuple[Path, str]]:
    """Make a folder and the address of an empty database."""
    server = os.environ.get("PI_DURABLE_TEST_POSTGRES")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if not server:
            yield folder, f"sqlite:///{folder / 'runs.sqlite'}"
            return
        import psycopg
        from sqlalchemy.engine import make_url

        database = f"pi_{uuid4().hex[:12]}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {database}")
        yield folder, make_url(server).set(database=database).render_as_string(hide_password=False)


def step(side: str, n: int) -> dict[str, float]:
    """Do ``n`` steps, every second one a request: those of a run, or plain ones of the engine with the same records."""
    from dbos import DBOS
    from pi_dbos._engine import database_url, launch, prepare
    from pi_dbos._run import DurableRun

    from pi_core import Agent, tool
    from pi_core.testing import SCRIPTED_MODEL, Call, Reply, ScriptedProvider

    @tool(replay="safe")
    async def note(text: str) -> str:
        """Write a note."""
        return f"noted {text}"

    def agent() -> Agent:
        replies = [Reply(f"turn {turn}", Call("note", {"text": str(turn)})) for turn in range(n // 2)]
        stream = ScriptedProvider(*replies, "done", keep_messages=False).stream
        return Agent(model=SCRIPTED_MODEL, tools=[note], stream=stream)

    @DBOS.workflow(name="ours")
    async def ours() -> list[Any]:
        made = agent()
        DurableRun("run", made, recorded={}, owner="benchmark", rules={})
        began = time.perf_counter()
        await made.prompt("go")
        return [time.perf_counter() - began]

    @DBOS.workflow(name="floor")
    async def floor(records: list[Any]) -> list[Any]:
        async def again(record: Any) -> Any:
            return record

        began = time.perf_counter()
        for record in records:
            await DBOS.run_step_async({"name": "step"}, again, record)
        return [time.perf_counter() - began]

    with _database() as (_, address):
        url = database_url(address)
        prepare(url)
        launch(url, version="benchmark", executor="benchmark")
        handle = DBOS.start_workflow(ours)
        [seconds] = handle.get_result(polling_interval_sec=0.05)
        if side == "floor":
            records = [found["output"] for found in DBOS.list_workflow_steps(handle.workflow_id)]
            [seconds] = DBOS.start_workflow(floor, records).get_result(polling_interval_sec=0.05)
        DBOS.destroy()
    return {"wall_s": seconds}


def workers(count: int, runs: int) -> dict[str, float]:
    """Let workers do runs, and return the seconds from the first request to the last."""
    with _database() as (folder, address):
        environ = {
            **os.environ,
            "PI_DURABLE_DATABASE": address,
            "PI_DURABLE_SITE": str(folder),
            "PYTHONPATH": str(_SITE),
            "HOME": str(folder),
        }
        (folder / "pi-build.toml").write_text(_BUILD)
        prompts = ({"name": f"r{n}", "calls": _CALLS, "delay": ANSWER_SECONDS} for n in range(runs))
        tasks = "".join(json.dumps({"prompt": json.dumps(prompt)}) + "\n" for prompt in prompts)
        (folder / "tasks.jsonl").write_text(tasks)

        def pi(*arguments: str) -> list[str]:
            return [sys.executable, "-m", "pi_core", *arguments, "--build", str(folder)]

        lock = [sys.executable, "-m", "pi_core", "build", "lock", str(folder)]
        batch = pi("durable", "batch", str(folder / "tasks.jsonl"))
        for command in (lock, batch):
            subprocess.run(command, env=environ, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        command = pi("worker", "--concurrency", str(_CONCURRENCY))
        started = [subprocess.Popen(command, env=environ, cwd=folder, stderr=subprocess.DEVNULL) for _ in range(count)]
        try:
            requests = folder / "requests.jsonl"
            while not requests.exists():
                time.sleep(0.005)
            began = time.perf_counter()
            while len(requests.read_bytes().splitlines()) < runs * (len(_CALLS) + 1):
                time.sleep(0.02)
            return {"wall_s": time.perf_counter() - began}
        finally:
            for process in started:
                process.kill()
                process.wait()


if __name__ == "__main__":
    what, first, second = sys.argv[1:]
    print(json.dumps(step(first, int(second)) if what == "step" else workers(int(first), int(second))))
    sys.stdout.flush()
    os._exit(0)
