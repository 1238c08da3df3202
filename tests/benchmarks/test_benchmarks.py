"""The measurements measure what they say, at sizes that take no time, and the work they measure grows linearly."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import socket
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks import crowd, floor, hookcalls, plots, processes, rows
from benchmarks.__main__ import main
from benchmarks.ours import CASES, Counter, turns
from benchmarks.processes import Job, MeasurementError, take_turns
from benchmarks.startup import Startup
from benchmarks.table import Row, as_text
from benchmarks.work import Work, argument_deltas, measure
from pi_core import AbortSignal, AgentEvent

COUNTED = """
import importlib.metadata, json, sys
from pi_core import Build
found = {{"entry_points": 0, "distributions": 0, "others": 0}}
def counted(name, function):
    def call(*args, **kwargs):
        found[name] += 1
        return function(*args, **kwargs)
    setattr(importlib.metadata, name, call)
for name in ("entry_points", "distributions"):
    counted(name, getattr(importlib.metadata, name))
def audit(event, args):
    found["others"] += event == "open" and "bench_other" in str(args[0])
sys.addaudithook(audit)
{program}
print(json.dumps(found))
"""
"""Runs a program and prints how often it searched, and opened a file of a distribution that offers no plugin.

Only after the import is counted: pydantic searches for plugins of its own with its first model.
"""

TWO_BUILDS = """
for _ in range(2):
    build = Build.from_environment()
    assert sum(record.target.startswith("bench_plugin") for record in build.plugins) == 10
"""

KEYS = {"name", "ours", "floor", "ratio", "target", "unit", "n", "bounds", "against", "met"}


measure_in_a_process = Job.measure


def tiny(job: Job) -> dict[str, float]:
    """Measure a job here and now, with less to do; what holds connections or a terminal, in a process of its own."""
    if job.side == "network" or job.command:
        return measure_in_a_process(job)
    cases = importlib.import_module(f"benchmarks.{job.side}").CASES
    n = job.n if job.memory and job.case == "deltas" else min(job.n, 12)
    return measure(cases[job.case](n), memory=job.memory)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Job, "measure", tiny)
    monkeypatch.setattr(hookcalls, "CALLS", 50)
    for module in (crowd, floor, rows):
        monkeypatch.setattr(module, "CROWD_TURNS", 2)
    monkeypatch.setattr(rows.Settings, "rounds", lambda self, full, quick=3: 1)
    monkeypatch.setattr(rows.Settings, "size", lambda self, full, quick: min(quick, 25_000))


# --- the table ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small")
def test_every_row_is_measured_and_has_the_same_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "rows.json"
    groups = [name for name in rows.GROUPS if name != "startup"]
    arguments = [part for name in groups for part in ("--only", name)]
    assert main(["--quick", *arguments, "--json", str(target), "--plots", str(tmp_path / "plots")]) == 0
    data = json.loads(target.read_text(encoding="utf-8"))
    assert set(data) == {"rows", "versions", "machine"}
    assert {"python", "pydantic", "pluggy"} <= data["versions"].keys()
    assert {"system", "cpu", "cores"} <= data["machine"].keys()
    printed = capsys.readouterr().out
    assert len(data["rows"]) >= 20
    for row in data["rows"]:
        assert row.keys() - {"note", "peers"} == KEYS
        assert row["name"] in printed
        assert row["n"] >= 0
        assert row["ours"] > 0, row
        if row["floor"] is not None:
            assert row["ratio"] == pytest.approx(row["ours"] / row["floor"])
        if row["target"] is not None:
            assert row["met"] is ((row["ratio"] if row["bounds"] == "ratio" else row["ours"]) <= row["target"])
    names = {row["name"] for row in data["rows"]}
    for n in ("200", "1,000", "10,000"):
        assert f"turns, {n}" in names
    for kind in ("turns", "deltas"):
        picture = ElementTree.parse(tmp_path / "plots" / f"{kind}.svg").getroot()
        assert picture.tag == "{http://www.w3.org/2000/svg}svg"
        lines = picture.findall("{http://www.w3.org/2000/svg}polyline")
        assert [len(line.attrib["points"].split()) for line in lines] == [3, 3]


def test_what_falls_short_is_marked_and_what_is_missing_explained() -> None:
    table = [
        Row("good", 2.0, 1.0, 3.0, "us/turn", 1),
        Row("bad", 4.0, 1.0, 3.0, "us/turn", 1, peers={"other": 9.0}),
        Row("slow", 20.0, 12.0, 16.0, "ms", 1, bounds="ours"),
        Row("missing", None, None, 1.0, "ms", 1, note="no module named x"),
        Row("told", 4.0, None, None, "KB", 1, bounds="ours"),
    ]
    assert [row.met for row in table] == [True, False, False, None, None]
    text = as_text(table).splitlines()
    assert [("SHORT" in line) for line in text[2:7]] == [False, True, True, False, False]
    assert "9x other" in text[3]
    assert "1 of 3 targets reached, 2 fall short" in text
    assert text[-1] == "not measured: missing: no module named x"


def test_one_point_is_enough_for_a_picture(tmp_path: Path) -> None:
    assert plots.write_plots([], tmp_path) == []
    (path,) = plots.write_plots([Row("turns, 200", 4.0, 1.0, 6.0, "us/turn", 200)], tmp_path)
    assert "bare loop" in path.read_text(encoding="utf-8")


def test_a_measurement_that_fails_says_which_one_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(MeasurementError, match=r"^ours nothing 1: KeyError: 'nothing'$"):
        take_turns([Job("ours", "nothing", 1)], 1)
    with pytest.raises(SystemExit):
        main(["--only", "nothing"])
    assert "invalid choice: 'nothing'" in capsys.readouterr().err


def test_the_jobs_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def record(job: Job) -> dict[str, float]:
        order.append(job.side)
        return {"cpu_s": float(len(order))}

    monkeypatch.setattr(Job, "measure", record)
    assert take_turns([Job("a"), Job("b")], 3) == [{"cpu_s": 4.0}, {"cpu_s": 3.0}]
    assert order == ["a", "b", "b", "a", "a", "b"]


def test_a_process_measures_both_sides() -> None:
    ours, floor = take_turns([Job("ours", "turns", 30), Job("floor", "turns", 30)], 1)
    assert 0 < floor["cpu_s"] < ours["cpu_s"]
    (traced,) = take_turns([Job("floor", "deltas", 1_000, memory=True)], 1)
    assert traced["peak"] >= traced["kept"] >= 5_000


def test_processes_start_in_an_environment_of_their_own() -> None:
    with Startup() as start:
        for row in (start.imports(1), start.version(1), start.build(1), start.pinned(1), start.search(1)):
            assert row.ours is not None
            assert row.floor is not None
            assert row.ours > 1
            assert row.floor > 1
        pinned = json.loads(start.output(COUNTED.format(program=start.pinned_build)))
        scanned = json.loads(start.output(COUNTED.format(program=TWO_BUILDS)))
        assert pinned == {"entry_points": 0, "distributions": 0, "others": 0}
        assert scanned["entry_points"] == 1
        assert scanned["others"] == 100
        left = Path(start._folder.name)
        assert left.exists()
    assert not left.exists()


def test_a_process_that_sends_nothing_is_no_measurement() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        quiet = [sys.executable, "-c", "raise SystemExit('no network today')"]
        with pytest.raises(MeasurementError, match=r"nothing was sent\. no network today"):
            processes.cpu_to_first_byte(quiet, os.environ, listener)
        code = f"import socket, time\nsocket.create_connection(('127.0.0.1', {port})).send(b'x')\ntime.sleep(60)"
        assert 0 < processes.cpu_to_first_byte([sys.executable, "-c", code], os.environ, listener) < 10


# --- the work -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cases", [CASES, floor.CASES], ids=["ours", "floor"])
def test_work_that_is_not_done_is_noticed(cases: dict[str, Callable[[int], Work]]) -> None:
    for name, make in cases.items():
        work = make(3)
        with pytest.raises((AssertionError, IndexError, KeyError)):
            work.check()
        assert measure(make(3))["cpu_s"] > 0, name


def test_the_argument_deltas_are_one_json_text() -> None:
    for n in (20, 2_000):
        pieces = argument_deltas(n)
        assert len(pieces) == n
        assert json.loads("".join(pieces)).keys() == {"path", "content"}


def operations(work: Work) -> int:
    """How many functions are called while the work is done."""
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    async def counted() -> None:
        sys.setprofile(profile)
        try:
            await work.run()
        finally:
            sys.setprofile(None)

    gc.collect()
    gc.disable()
    try:
        asyncio.run(counted())
    finally:
        gc.enable()
    work.check()
    return count


@pytest.mark.parametrize(
    "make",
    [CASES["turns"], CASES["deltas"], CASES["arguments"], floor.CASES["turns"], floor.CASES["deltas"]],
    ids=lambda make: f"{make.__module__}-{make.__name__}",
)
def test_twice_the_work_is_twice_the_calls(make: Callable[[int], Work]) -> None:
    operations(make(20))
    few, more, most = (operations(make(n)) for n in (100, 200, 400))
    each = (more - few) / 100
    assert each > 1
    assert (most - more) / 200 == pytest.approx(each, rel=0.01)


class Watcher(Counter):
    """Notes how much memory a turn needs beside what it leaves behind."""

    def __init__(self) -> None:
        super().__init__()
        self.transient: list[int] = []

    async def __call__(self, event: AgentEvent, signal: AbortSignal) -> None:
        await super().__call__(event, signal)
        if event.type == "turn_start":
            tracemalloc.reset_peak()
        elif event.type == "turn_end":
            current, peak = tracemalloc.get_traced_memory()
            self.transient.append(peak - current)


def test_no_turn_copies_the_history() -> None:
    watcher = Watcher()
    work = turns(600, counter=watcher)
    measure(work, memory=True)
    early, late = sorted(watcher.transient[50:150]), sorted(watcher.transient[450:550])
    assert late[50] < early[50] + 500, "a copy of 900 messages takes 7 KB"


def test_deltas_leave_only_their_text() -> None:
    few, many = (measure(CASES["deltas"](n), memory=True) for n in (2_000, 12_000))
    text = 10_000 * 5
    assert text <= many["kept"] - few["kept"] < 1.05 * text
