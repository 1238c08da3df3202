"""The conformance scenarios, played as durable runs: with steps for requests and calls the trace stays what it is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dbos import DBOS
from pi_dbos._engine import database_url, launch, prepare
from pi_dbos._run import DurableRun

from pi_core import Agent
from tests.conformance import agent_kind, check, runner
from tests.conformance.world import Variant, World

FOLDER = Path(__file__).parents[3] / "tests" / "conformance"


def is_meant(scenario: dict[str, Any]) -> bool:
    """Whether a scenario drives an agent."""
    return runner.kind_of(scenario) == "agent"


SCENARIOS = [
    path
    for path in sorted((FOLDER / "scenarios").glob("*.json"))
    if is_meant(json.loads(path.read_text(encoding="utf-8")))
]


class DurableAgent(Agent):
    """An agent whose runs are durable."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        DurableRun("conformance", self, recorded={}, owner="conformance", rules={})


async def settled_ticks(self: World, count: int) -> None:
    """Let run whatever can run, also what waits for the database, which takes longer than passes of the loop."""
    for _ in range(count):
        await asyncio.sleep(0.05)


@DBOS.workflow(name="conformance")
async def play(name: str) -> str:
    """Play a scenario within a workflow and return its trace as JSON."""
    scenario = json.loads((FOLDER / "scenarios" / name).read_text(encoding="utf-8"))
    return json.dumps(await runner._play(scenario, Variant()))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The engine on a database of its own."""
    url = database_url(f"sqlite:///{tmp_path_factory.mktemp('engine') / 'runs.sqlite'}")
    prepare(url)
    launch(url, version="conformance", executor="conformance")
    yield
    DBOS.destroy()


@pytest.mark.parametrize("path", SCENARIOS, ids=[path.stem for path in SCENARIOS])
def test_the_trace_is_that_of_the_plain_run(path: Path, engine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Play a scenario and compare."""
    monkeypatch.setattr(agent_kind, "Agent", DurableAgent)
    monkeypatch.setattr(World, "ticks", settled_ticks)
    trace = json.loads(DBOS.start_workflow(play, path.name).get_result(polling_interval_sec=0.01))
    golden = json.loads((FOLDER / "golden" / path.name).read_text(encoding="utf-8"))
    assert [*check.problems(trace), *check.differences(golden, trace)] == []
