"""Several workers, batches, builds and limits."""

from __future__ import annotations

import json

from pi_core import Build


def test_a_worker_refuses_a_run_of_another_build_and_says_what_differs(site) -> None:
    run = site.start("a", ["safe"])
    build = site.folder / "pi-build.toml"
    build.write_text(build.read_text().replace('name = "durable tests"', 'name = "another"'))
    Build.lock(site.folder)
    site.worker()
    site.until(lambda: f"run {run} is refused" in site.logs())
    assert "build file: " in site.logs()
    assert site.runs.info(run).state == "queued"
    assert site.pi("durable", "resume", run, "--build", ".").returncode == 0
    assert site.ended(run)[-1].text == "done"


def test_a_worker_does_not_start_when_something_else_is_installed_than_is_locked(site) -> None:
    lock = site.folder / "pi-build.lock"
    data = json.loads(lock.read_text())
    data["requirements"]["pluggy"] = "0.0.1"
    lock.write_text(json.dumps(data))
    done = site.pi("worker", "--build", ".")
    assert done.returncode == 1
    assert "pluggy: version 0.0.1 in the lock" in done.stderr


def test_a_batch_is_done_by_all_workers_and_starting_it_again_changes_nothing(site) -> None:
    tasks = [
        {"id": f"t{n}", "prompt": json.dumps({"name": f"t{n}", "calls": [["never"]], "delay": 0.05})} for n in range(12)
    ]
    (site.folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    for _ in range(2):
        site.worker("--concurrency", "2")
    done = site.pi("durable", "batch", "tasks.jsonl", "--build", ".", "--wait")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "12/12: 12 done"
    assert site.pi("durable", "batch", "tasks.jsonl", "--build", ".", "--wait").stdout == "12/12: 12 done\n"
    assert sorted(line["text"] for line in site.lines("effects")) == sorted(f"t{n}-0-0" for n in range(12))
    assert len({line["pid"] for line in site.lines("effects")}) == 2


def test_what_is_wrong_in_a_batch_is_named_and_nothing_is_started(site) -> None:
    (site.folder / "tasks.jsonl").write_text('"one"\n{"prompt": "two", "modell": "x"}\n')
    done = site.pi("durable", "batch", "tasks.jsonl", "--build", ".")
    assert done.returncode == 1
    assert "line 2: unknown key 'modell'" in done.stderr
    assert site.runs.find() == []


def test_all_workers_together_keep_to_the_limit_of_a_provider(site) -> None:
    build = site.folder / "pi-build.toml"
    limits = "[plugins.options.limits.steps]\nrequests_per_minute = 3\n\n[plugins.options.replay]"
    build.write_text(build.read_text().replace("[plugins.options.replay]", limits))
    Build.lock(site.folder)
    for _ in range(2):
        site.worker()
    runs = [site.start(name) for name in "abcde"]
    site.until(lambda: len(site.lines("requests")) == 3)
    site.until(lambda: all(site.runs.info(run).state != "queued" for run in runs))
    # The other two wait for the minute to be over; that nothing more is asked shows that they do.
    site.until(lambda: sum(site.runs.info(run).over for run in runs) == 3)
    assert len(site.lines("requests")) == 3
    for run in runs:
        if not site.runs.info(run).over:
            site.runs.send(run, "abort", "No patience.")
            site.ended(run)
            assert site.runs.info(run).error == "No patience."


def test_the_commands_show_what_there_is(site) -> None:
    site.worker()
    started = site.pi("durable", "start", "--build", ".", "--id", "x", json.dumps({"name": "x", "calls": [["safe"]]}))
    assert started.stdout == "x\n"
    site.ended("x")
    assert site.pi("durable", "list").stdout.split() == ["x", "done"]
    shown = site.pi("durable", "show", "x").stdout
    assert "x: done" in shown
    assert "toolResult note_safe: noted x-0-0" in shown
    data = json.loads(site.pi("durable", "show", "x", "--json").stdout)
    assert [message["role"] for message in data["messages"]] == ["user", "assistant", "toolResult", "assistant"]
    missing = site.pi("durable", "show", "y")
    assert missing.returncode == 1
    assert "There is no run 'y'" in missing.stderr
