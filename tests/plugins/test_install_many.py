"""Ten plugins of strangers in one environment: good, slow, broken, and at odds with each other."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.install, pytest.mark.timeout(900)]

SLOW_SECONDS = 2

TOOL = """
from pi_core import hookimpl, tool

@tool
def {tool}(text: str) -> str:
    "Say it in a way of its own."
    return "{plugin}: " + text

class Plugin:
    @hookimpl
    def register_tools(self):
        return [{tool}]
"""
HOOK = """
from pi_core import hookimpl

class Plugin:
    @hookimpl
    {line}
        {body}
"""
MESSAGE = """
from typing import Literal
from pi_core import CustomMessage, hookimpl

class Remark(CustomMessage):
    role: Literal["remark"] = "remark"

class Plugin:
    @hookimpl
    def register_message_types(self):
        return [Remark]
"""
PROVIDER = """
from pi_core import MessageAssembler, Model, hookimpl

class Parrot:
    api = "parrot"

    async def stream(self, model, context, options):
        answer = MessageAssembler(model.api, model.provider, model.id)
        yield answer.start()
        yield answer.text_start(0, "again: " + context.messages[-1].content[0].text)
        yield answer.text_end(0)
        yield answer.done("stop")

class Plugin:
    @hookimpl
    def register_providers(self):
        return [Parrot()]

    @hookimpl
    async def resolve_model(self, name):
        return Model(id="grey", api="parrot", provider="parrot") if name == "parrot/grey" else None
"""
MARKED = """
import os
from pathlib import Path
(Path(os.environ["IMPORTED"]) / "{plugin}").touch()
"""
SLOW = f"import time\ntime.sleep({SLOW_SECONDS})\n"

PLUGINS = {
    "audit": HOOK.format(line="def before_tool_call(self, call):", body="return None"),
    "blame": TOOL.format(tool="blame", plugin="blame"),
    "crash": "from pi_core import NoSuchName",
    "deaf": HOOK.format(line="async def register_tools(self):", body="return []"),
    "early": 'import sys\n\nclass Plugin:\n    requires = "pi-agent-framework>=99"\n\n'
    "    def __init__(self):\n        sys.exit('not to be called')",
    "first": TOOL.format(tool="shout", plugin="first"),
    "parrot": PROVIDER,
    "remark": MESSAGE,
    "second": TOOL.format(tool="shout", plugin="second"),
    "slow": SLOW + TOOL.format(tool="wait", plugin="slow"),
}
GOOD = ["audit", "blame", "first", "parrot", "remark", "second", "slow"]
FAILED = {
    "crash": "ImportError: cannot import name 'NoSuchName'",
    "deaf": "is async, but the hook is called without await",
    "early": "it needs pi-agent-framework>=99, installed is ",
}


class Many:
    """All of them, installed from wheels."""

    def __init__(self, folder: Path, workshop: Any) -> None:
        self.folder = folder
        self.imported = folder / "imported"
        wheels = [
            workshop.plugin(f"pi-x-{name}", "1.0", name, MARKED.format(plugin=name) + source)
            for name, source in PLUGINS.items()
        ]
        self.environment = workshop.environment(folder / "venv", *wheels)

    @property
    def site(self) -> Path:
        return next((self.folder / "venv").rglob("site-packages"))

    def run(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        shutil.rmtree(self.imported, ignore_errors=True)
        self.imported.mkdir()
        done: subprocess.CompletedProcess[str] = self.environment.run(
            "pi", *arguments, cwd=self.folder, IMPORTED=str(self.imported), **environ
        )
        return done

    def rows(self, **environ: str) -> list[dict[str, Any]]:
        """What ``pi plugins list`` says of them, in its order."""
        done = self.run("plugins", "list", "--json", **environ)
        assert (done.returncode, done.stderr) == (0, "")
        rows = json.loads(done.stdout)["plugins"]
        return [row for row in rows if row["distribution"].startswith("pi-x-")]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory, workshop: Any) -> Many:
    return Many(tmp_path_factory.mktemp("many"), workshop)


def test_each_is_listed_as_what_it_is(many: Many) -> None:
    rows = many.rows()
    assert [row["name"] for row in rows] == sorted(PLUGINS)
    assert {row["name"]: row["state"] for row in rows} == {
        name: "loaded" if name in GOOD else "failed" for name in PLUGINS
    }
    for row in rows:
        name = row["name"]
        assert (row["distribution"], row["target"]) == (f"pi-x-{name} 1.0", f"pi_x_{name}:Plugin")
        if name in FAILED:
            assert FAILED[name] in row["reason"]
            assert f"plugin '{name}' (pi-x-{name} 1.0)" in row["reason"]
            assert row["reason"].endswith(f"To run without it: PI_BLOCK={name}")
        else:
            assert row["reason"] == ""
    assert {path.name for path in many.imported.iterdir()} == set(PLUGINS)


def test_the_time_of_a_slow_one_is_shown_and_its_alone(many: Many) -> None:
    times = {row["name"]: row["importMs"] for row in many.rows()}
    assert times.pop("slow") >= SLOW_SECONDS * 1000
    assert max(times.values()) < SLOW_SECONDS * 1000
    (line,) = [line for line in many.run("plugins", "list").stdout.splitlines() if line.startswith("slow ")]
    assert int(line.split()[-2]) >= SLOW_SECONDS * 1000
    assert line.endswith(" ms")


def test_a_blocked_slow_one_costs_nothing(many: Many) -> None:
    rows = {row["name"]: row for row in many.rows(PI_BLOCK="slow,pi-x-crash")}
    for name in ("slow", "crash"):
        assert (rows[name]["state"], rows[name]["importMs"]) == ("blocked", 0)
        assert rows[name]["reason"] == "blocked by configuration, not imported"
    assert {path.name for path in many.imported.iterdir()} == set(PLUGINS) - {"slow", "crash"}


def test_blocked_ones_are_not_imported(many: Many) -> None:
    many.rows(PI_BLOCK=",".join(PLUGINS))
    assert list(many.imported.iterdir()) == []


def test_the_rest_works(many: Many) -> None:
    done = many.run("-p", "--model", "parrot/grey", "hello", PI_BLOCK="slow")
    assert (done.returncode, done.stdout) == (0, "again: hello\n")
    notices = done.stderr.splitlines()
    assert len(notices) == len(FAILED) + 1
    assert all(line.startswith("pi: ") for line in notices)
    script = [{"blocks": [{"toolCall": {"name": "blame", "arguments": {"text": "you"}}}]}, "done"]
    (many.folder / "script.json").write_text(json.dumps(script), encoding="utf-8")
    arguments = ["--model", "scripted/scripted", "--tools", "blame", "--mode", "json", "go"]
    done = many.run(*arguments, PI_BLOCK="slow", PI_SCRIPT=str(many.folder / "script.json"))
    ends = [json.loads(line) for line in done.stdout.splitlines() if '"tool_execution_end"' in line]
    assert [end["result"]["content"][0]["text"] for end in ends] == ["blame: you"]
    assert many.run("plugins", "why", "remark", PI_BLOCK="slow").stdout.startswith("message role 'remark' comes from")
    shown = many.run("hooks", "show", "before_tool_call", PI_BLOCK="slow").stdout
    assert "audit" in shown


def test_two_that_own_one_tool_are_both_named(many: Many) -> None:
    said = many.run("plugins", "why", "shout", PI_BLOCK="slow").stdout
    assert "plugin 'first' (pi-x-first 1.0)" in said
    assert "plugin 'second' (pi-x-second 1.0)" in said
    assert "use 'first/shout' or 'second/shout'" in said
    done = many.run("plugins", "check", PI_BLOCK="slow")
    assert (done.returncode, len(done.stdout.splitlines())) == (1, len(FAILED) + 1)
    assert many.run("plugins", "check", PI_BLOCK=",".join(["slow", "second", *FAILED])).returncode == 0


def test_the_order_does_not_depend_on_the_file_system(many: Many, tmp_path: Path) -> None:
    """The metadata of each plugin in a folder of its own, in several orders on the path."""
    expected = [(row["name"], row["state"]) for row in many.rows(PI_BLOCK="slow")]
    moved = tmp_path / "moved"
    for name in PLUGINS:
        for part in (f"pi_x_{name}.py", f"pi_x_{name}-1.0.dist-info"):
            target = moved / name / part
            target.parent.mkdir(parents=True, exist_ok=True)
            source = many.site / part
            shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    parts = [part for name in PLUGINS for part in many.site.glob(f"pi_x_{name}*")]
    try:
        for part in parts:
            shutil.move(part, hidden / part.name)
        for seed in range(4):
            names = list(PLUGINS)
            random.Random(seed).shuffle(names)
            path = os.pathsep.join(str(moved / name) for name in names)
            rows = many.rows(PYTHONPATH=path, PI_BLOCK="slow")
            assert [(row["name"], row["state"]) for row in rows] == expected
    finally:
        for part in parts:
            shutil.move(hidden / part.name, part)
