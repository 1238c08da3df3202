"""Plugins that ``pi plugins new`` writes, as their author would go on with them: installed, tested, used."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.install, pytest.mark.timeout(900)]

KINDS = {"weather": "tool", "relay": "provider", "memo": "message", "safe-shell": "hooks"}


class Written:
    """One plugin of each kind, written by the installed ``pi`` and installed as the README of each says."""

    def __init__(self, folder: Path, workshop: Any) -> None:
        self.folder = folder
        self.workshop = workshop
        self.environment = workshop.environment(folder / "venv")
        self.printed = {}
        for name, kind in KINDS.items():
            done = self.run("pi", "plugins", "new", name, "--kind", kind)
            assert (done.returncode, done.stderr) == (0, "")
            self.printed[name] = done.stdout
        self.environment.install(*(f"{self.project(name)}[test]" for name in KINDS), wheels=workshop.wheels)

    def project(self, name: str) -> Path:
        return self.folder / f"pi-{name}"

    def run(
        self, program: str, *arguments: str, cwd: Path | None = None, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        done: subprocess.CompletedProcess[str] = self.environment.run(
            program, *arguments, cwd=cwd or self.folder, **environ
        )
        return done


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, workshop: Any) -> Written:
    return Written(tmp_path_factory.mktemp("written"), workshop)


@pytest.mark.parametrize("name", KINDS)
def test_its_files_are_printed_and_there(written: Written, name: str) -> None:
    *files, next_step = written.printed[name].splitlines()
    assert all((written.folder / file).is_file() for file in files)
    found = {path.relative_to(written.folder) for path in written.project(name).rglob("*") if path.is_file()}
    assert {Path(file) for file in files} <= found
    assert next_step == f"Next: pip install -e pi-{name}, then: pi plugins list"


@pytest.mark.parametrize("name", KINDS)
def test_its_tests_pass(written: Written, name: str) -> None:
    done = written.run("python", "-m", "pytest", "-q", cwd=written.project(name))
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


@pytest.mark.parametrize("name", KINDS)
def test_the_commands_of_its_readme_work(written: Written, name: str) -> None:
    plugin = name.replace("-", "_")
    readme = (written.project(name) / "README.md").read_text(encoding="utf-8")
    commands = readme.split("```")[1].split("\n", 1)[1].strip().splitlines()
    assert commands == ["pip install .", "pi plugins list", f"pi plugins why {plugin}"]
    said = written.run("pi", "plugins", "list").stdout
    assert f"pi-{name} 0.1.0" in said
    assert "failed" not in said
    said = written.run("pi", "plugins", "why", plugin).stdout
    assert f"plugin '{plugin}' (pi_{plugin}:" in said
    assert "is loaded" in said
    assert written.run("pi", "plugins", "check").returncode == 0
    said = written.run("pi", "plugins", "why", plugin, PI_BLOCK=plugin).stdout
    assert "is blocked: blocked by configuration, not imported" in said


def test_each_does_what_it_is_there_for(written: Written) -> None:
    script = [
        {"blocks": [{"toolCall": {"name": "weather", "arguments": {"text": "ho", "times": 2}}}]},
        {"blocks": [{"toolCall": {"name": "bash", "arguments": {"command": "rm -rf nothing"}}}]},
        "done",
    ]
    (written.folder / "script.json").write_text(json.dumps(script), encoding="utf-8")
    arguments = ["--model", "scripted/scripted", "--tools", "weather,bash", "--mode", "json", "go"]
    done = written.run("pi", *arguments, PI_SCRIPT=str(written.folder / "script.json"))
    events = [json.loads(line) for line in done.stdout.splitlines()]
    texts = [event["result"]["content"][0]["text"] for event in events if event["type"] == "tool_execution_end"]
    assert texts == ["ho ho", "Commands with 'rm -rf' are not allowed here."]
    done = written.run("pi", "-p", "--model", "relay/echo", "hello there")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "hello there", "")
    assert written.run("pi", "plugins", "why", "memo").stdout.startswith("message role 'memo' comes from plugin 'memo'")


def test_tox_is_green(written: Written, tmp_path: Path) -> None:
    # Under tox its variables name the folder of its environments, which the one started here would make anew.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TOX_")}
    written.workshop.environment(tmp_path / "venv").install("tox>=4")
    links = f"{written.workshop.wheels} {os.environ.get('PIP_FIND_LINKS', '')}".strip()
    done = subprocess.run(
        [str(tmp_path / "venv" / "bin" / "tox")],
        cwd=written.project("weather"),
        env={**kept, "PIP_FIND_LINKS": links},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (written.project("weather") / ".tox").is_dir()
    assert "congratulations" in done.stdout
    assert " passed" in done.stdout
