"""Plugins as users get them: wheels, installed with pip beside the project's own wheel; good and broken ones."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.install, pytest.mark.timeout(900)]

GOOD = """
import os
from pathlib import Path
from pi_core import hookimpl, tool

if "MARKER" in os.environ:
    Path(os.environ["MARKER"]).touch()

@tool
def shout(text: str) -> str:
    "Say it loudly."
    return text.upper()

class Plugin:
    @hookimpl
    def register_tools(self):
        return [shout]
"""
OPTIONS = """
from pydantic import BaseModel
from pi_core import hookimpl

class Plugin:
    class Options(BaseModel):
        address: str

    @hookimpl
    def configure(self, options):
        pass
"""


def hook(line: str) -> str:
    return f"from pi_core import hookimpl\n\nclass Plugin:\n    @hookimpl\n    {line}\n        return []\n"


BROKEN: dict[str, tuple[str, str, str]] = {
    "raises": ("1.1", "raise ImportError('no engine')", "failed to load from pi_raises:Plugin: ImportError: no engine"),
    "exits": ("1.2", "import sys\nsys.exit(3)", "failed to load from pi_exits:Plugin: SystemExit: 3"),
    "misspelt": ("1.3", hook("def on_turn_strat(self):"), "did you mean 'on_turn_start'?"),
    "argument": ("1.4", hook("def on_turn_start(self, evnt):"), "argument 'evnt' of on_turn_start at "),
    "late": ("1.5", hook("async def register_tools(self):"), "is async, but the hook is called without await"),
    "options": ("1.6", OPTIONS, "its options are not valid: options.address: Field required. Its options: address"),
}
"""Version, source and complaint of every plugin that cannot be used, by plugin name."""


class Installed:
    """The project from its wheel, with one good plugin, and broken ones beside it.

    :param folder: the folder it runs in.
    """

    def __init__(self, folder: Path, workshop: Any) -> None:
        self.folder = folder
        good = workshop.plugin("pi-good", "1.0", "good", GOOD)
        environment = workshop.environment(folder / "venv", good)
        self.python = environment.python
        broken = [workshop.plugin(f"pi-{name}", version, name, source) for name, (version, source, _) in BROKEN.items()]
        broken.append(workshop.plugin("pi-twice", "1.7", "good", GOOD))
        broken.append(workshop.plugin("pi-owner", "1.8", "owner", GOOD))
        self.broken = folder / "broken"
        environment.install("--no-deps", "--target", self.broken, *broken)

    def run(
        self, *arguments: str, broken: bool = False, script: Iterable[Any] = (), **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the installed ``pi``."""
        (self.folder / "script.json").write_text(json.dumps(list(script)), encoding="utf-8")
        return subprocess.run(
            [str(self.python.with_name("pi")), *arguments],
            cwd=self.folder,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.folder),
                "PI_SCRIPT": str(self.folder / "script.json"),
                **({"PYTHONPATH": str(self.broken)} if broken else {}),
                **environ,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def plugins(self, **options: Any) -> dict[tuple[str, str], dict[str, Any]]:
        """What ``pi plugins list`` says, by plugin name and distribution."""
        done = self.run("plugins", "list", "--json", **options)
        assert (done.returncode, done.stderr) == (0, "")
        return {(row["name"], row["distribution"]): row for row in json.loads(done.stdout)["plugins"]}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, workshop: Any) -> Installed:
    return Installed(tmp_path_factory.mktemp("install"), workshop)


SHOUT = [{"blocks": [{"toolCall": {"name": "shout", "arguments": {"text": "hello"}}}]}, "done"]


def test_the_project_runs_from_its_wheel(installed: Installed) -> None:
    command = [installed.python, "-c", "import pi_core, pi_plugins; print(pi_core.__file__, pi_plugins.__file__)"]
    places = subprocess.run(command, cwd=installed.folder, capture_output=True, text=True, check=True).stdout
    assert places.count(str(installed.folder)) == 2
    assert installed.run("--version").stdout.startswith("pi ")
    assert installed.run("plugins", "check").returncode == 0
    assert installed.run("plugins", "new", "weather").returncode == 0
    assert (installed.folder / "pi-weather" / "pi_weather.py").is_file()


def test_a_plugin_is_found_listed_and_used(installed: Installed, tmp_path: Path) -> None:
    row = installed.plugins()[("good", "pi-good 1.0")]
    assert (row["state"], row["target"]) == ("loaded", "pi_good:Plugin")
    assert installed.run("plugins", "why", "shout").stdout == "tool 'shout' comes from plugin 'good' (pi-good 1.0)\n"
    marker = tmp_path / "imported"
    arguments = ["--model", "scripted/scripted", "--tools", "shout", "--mode", "json", "go"]
    done = installed.run(*arguments, script=SHOUT, MARKER=str(marker))
    assert (done.returncode, done.stderr) == (0, "")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    (end,) = [event for event in events if event["type"] == "tool_execution_end"]
    assert end["result"]["content"] == [{"type": "text", "text": "HELLO"}]
    assert marker.exists()


@pytest.mark.parametrize("name", ["good", "pi-good", "Pi_Good"])
def test_a_blocked_plugin_is_not_imported(installed: Installed, tmp_path: Path, name: str) -> None:
    marker = tmp_path / "imported"
    row = installed.plugins(PI_BLOCK=name, MARKER=str(marker))[("good", "pi-good 1.0")]
    assert (row["state"], row["reason"]) == ("blocked", "blocked by configuration, not imported")
    arguments = ["-p", "--model", "scripted/scripted", "--tools", "shout", "go"]
    done = installed.run(*arguments, script=SHOUT, PI_BLOCK=name, MARKER=str(marker))
    assert done.returncode == 1
    assert "there is no tool 'shout'" in done.stderr
    assert not marker.exists()


def test_without_plugins_only_the_built_ins_are_imported(installed: Installed, tmp_path: Path) -> None:
    marker = tmp_path / "imported"
    done = installed.run("plugins", "list", "--no-plugins", "--json", broken=True, MARKER=str(marker))
    states = {row["name"]: row["state"] for row in json.loads(done.stdout)["plugins"]}
    assert {name for name, state in states.items() if state == "left out"} == {"good", "owner", *BROKEN}
    assert states["modes"] == "loaded"
    assert installed.run("plugins", "check", "--no-plugins", broken=True).returncode == 0
    done = installed.run("-p", "go", "--model", "scripted/scripted", "--no-plugins", broken=True, script=["fine"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")
    assert not marker.exists()


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plugin_is_reported_with_the_way_out(installed: Installed, name: str) -> None:
    version, _, complaint = BROKEN[name]
    row = installed.plugins(broken=True)[(name, f"pi-{name} {version}")]
    assert row["state"] == "failed"
    assert complaint in row["reason"]
    assert f"plugin '{name}' (pi-{name} {version})" in row["reason"]
    assert row["reason"].endswith(f"To run without it: PI_BLOCK={name}")
    assert installed.plugins(broken=True, PI_BLOCK=name)[(name, f"pi-{name} {version}")]["state"] == "blocked"


def test_one_plugin_name_from_two_distributions(installed: Installed) -> None:
    rows = installed.plugins(broken=True)
    assert rows[("good", "pi-good 1.0")]["state"] == "loaded"
    assert rows[("good", "pi-twice 1.7")]["state"] == "shadowed"
    assert rows[("good", "pi-twice 1.7")]["reason"] == (
        "plugin 'good' (pi-twice 1.7) is not loaded: the name is taken by pi_good:Plugin from pi-good 1.0. Block one "
        "distribution with PI_BLOCK=pi-twice"
    )
    rows = installed.plugins(broken=True, PI_BLOCK="pi-good")
    assert rows[("good", "pi-twice 1.7")]["state"] == "loaded"


def test_two_owners_of_one_tool(installed: Installed) -> None:
    said = installed.run("plugins", "why", "shout", broken=True).stdout
    assert "tool 'shout' is offered by plugin 'good' (pi-good 1.0) and plugin 'owner' (pi-owner 1.8)" in said
    assert "use 'good/shout' or 'owner/shout'" in said
    arguments = ["-p", "--model", "scripted/scripted", "--tools"]
    assert "is offered by" in installed.run(*arguments, "shout", "go", broken=True, script=SHOUT).stderr
    done = installed.run(*arguments, "owner/shout", "go", broken=True, script=SHOUT)
    assert (done.returncode, done.stdout) == (0, "done\n")


def test_pi_stays_usable_whatever_is_broken(installed: Installed) -> None:
    done = installed.run("plugins", "check", broken=True)
    assert done.returncode == 1
    problems = done.stdout.splitlines()
    assert len(problems) == len(BROKEN) + 2
    assert "Traceback" not in done.stdout + done.stderr
    assert installed.run("--help", broken=True).returncode == 0
    assert installed.run("hooks", "show", broken=True).returncode == 0
    done = installed.run("-p", "go", "--model", "scripted/scripted", broken=True, script=["fine"])
    assert (done.returncode, done.stdout) == (0, "fine\n")
    assert done.stderr.splitlines() == [f"pi: {problem}" for problem in problems]
    blocked = ",".join([*BROKEN, "owner", "pi-twice"])
    assert installed.run("plugins", "check", broken=True, PI_BLOCK=blocked).returncode == 0
