"""A team's build from wheels in a fresh environment: locked, checked after changes, frozen, run without anything."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.install, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]

GUARD = """
from pi_core import Block, hookimpl

class Plugin:
    @hookimpl
    def before_tool_call(self, call):
        return Block("not in this team")
"""
ECHO = """
from pi_core import hookimpl, tool

@tool
def echo(text: str) -> str:
    "Say it."
    return text

class Plugin:
    @hookimpl
    def register_tools(self):
        return [echo]
"""
BUILD = """
[build]
name = "team"
model = "scripted/scripted"
system_prompt_file = "prompts/system.md"

[limits]
turns = 3

[[plugins]]
name = "guard"
version = "~=1.0"
distribution = "team-guard"

[[plugins]]
name = "echo"
distribution = "team-echo"

[[plugins]]
name = "modes"

[[plugins]]
name = "scripted"
"""


class Environment:
    """A fresh virtual environment with a build in its folder."""

    def __init__(self, folder: Path, wheels: Path) -> None:
        self.folder = folder
        self.wheels = wheels
        venv.create(folder / "venv", with_pip=True)
        self.bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment in its folder."""
        done = subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "PI_SCRIPT": str(self.folder / "script.json")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if check:
            assert done.returncode == 0, done.stdout + done.stderr
        return done

    def pip(self, *arguments: str) -> None:
        """Run pip with the settings of the machine the tests run on."""
        done = subprocess.run(
            [str(self.bin / "python"), "-m", "pip", "-q", *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def differences(self) -> list[str]:
        """What `pi build check` prints, if it fails."""
        done = self.run("pi", "build", "check", check=False)
        assert done.returncode == 1, done.stdout + done.stderr
        return [line for line in done.stdout.splitlines() if not line.startswith("note: ")]


def wheel(folder: Path, name: str, plugin: str, source: str, version: str = "1.0") -> Path:
    """Write the wheel of a distribution with one plugin."""
    package = name.replace("-", "_")
    info = f"{package}-{version}.dist-info"
    files = {
        f"{package}/__init__.py": source,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        "Requires-Dist: pi-agent-framework\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[pi]\n{plugin} = {package}:Plugin\n",
    }
    record = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(text.encode())}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
    made = folder / f"{package}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return made


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The framework and two plugins installed from wheels, with a build that is locked."""
    folder = tmp_path_factory.mktemp("team")
    wheels = folder / "wheels"
    wheels.mkdir()
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", str(wheels), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    wheel(wheels, "team-guard", "guard", GUARD)
    wheel(wheels, "team-echo", "echo", ECHO)
    made = Environment(folder, wheels)
    made.pip("install", "pex", *map(str, wheels.glob("*.whl")))
    (folder / "pi-build.toml").write_text(BUILD, encoding="utf-8")
    (folder / "prompts").mkdir()
    (folder / "prompts" / "system.md").write_text("You work for the team.", encoding="utf-8")
    call = {"blocks": [{"toolCall": {"name": "echo", "arguments": {"text": "hi"}}}]}
    (folder / "script.json").write_text(json.dumps([call, "all done"]), encoding="utf-8")
    made.run("pi", "build", "lock")
    return made


def test_the_locked_build_runs(environment: Environment) -> None:
    assert environment.run("pi", "build", "check").stdout == "As locked\n"
    events = environment.run("pi", "build", "run", "--mode", "json", "go").stdout
    messages = [json.loads(line)["message"] for line in events.splitlines() if '"type":"message_end"' in line]
    assert messages[2]["content"][0]["text"] == "not in this team"
    assert environment.run("pi", "build", "run", "-p", "go").stdout == "all done\n"


def test_a_changed_plugin_file_is_named(environment: Environment) -> None:
    where = environment.run("python", "-c", "import team_guard; print(team_guard.__file__)").stdout.strip()
    Path(where).write_text(GUARD.replace("Block", "None and Block"), encoding="utf-8")
    try:
        assert environment.differences() == ["team-guard 1.0: file team_guard/__init__.py has changed"]
        frozen = environment.run("pi", "build", "freeze", "bad.pyz", check=False)
        assert "is not as locked" in frozen.stderr
        assert not (environment.folder / "bad.pyz").exists()
    finally:
        Path(where).write_text(GUARD, encoding="utf-8")
    assert environment.run("pi", "build", "check").stdout == "As locked\n"


def test_a_version_bump_an_extra_plugin_and_a_removed_one_are_named(environment: Environment) -> None:
    newer = wheel(environment.folder, "team-guard", "guard", GUARD, "1.1")
    extra = wheel(environment.folder, "team-extra", "extra", "raise SystemExit")
    environment.pip("install", "--no-deps", str(newer), str(extra))
    environment.pip("uninstall", "-y", "team-echo")
    bumped, removed = sorted(environment.differences(), reverse=True)
    assert bumped == "team-guard: version 1.0 in the lock, 1.1 is installed"
    assert removed == ("plugin 'echo': team-echo is wanted, but it is not installed. Run: pip install 'team-echo==1.0'")
    notes = environment.run("pi", "build", "check", check=False).stdout
    assert "note: plugin 'extra' (team-extra 1.0) is installed, but not part of the build" in notes
    refused = environment.run("pi", "build", "run", "-p", "go", check=False)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "team-guard 1.0 is locked, 1.1 is installed. Run: pip install 'team-guard==1.0'" in refused.stderr
    environment.pip("uninstall", "-y", "team-extra")
    requirements = environment.run("pi", "build", "show", "--requirements").stdout
    (environment.folder / "requirements.txt").write_text(requirements, encoding="utf-8")
    environment.pip(
        "install",
        "--find-links",
        str(environment.wheels),
        "--requirement",
        str(environment.folder / "requirements.txt"),
    )
    assert environment.run("pi", "build", "check").stdout == "As locked\n"


def test_a_frozen_build_runs_with_nothing_but_python(environment: Environment, tmp_path: Path) -> None:
    out = environment.folder / "team.pyz"
    said = environment.run("pi", "build", "freeze", "team.pyz").stdout
    assert "team-guard==1.0" in said
    environment.run("pi", "build", "freeze", "again.pyz")
    assert (environment.folder / "again.pyz").read_bytes() == out.read_bytes()
    bare = venv.EnvBuilder(with_pip=False)
    bare.create(tmp_path / "bare")
    python = tmp_path / "bare" / environment.bin.name / "python"
    for name in ("pi_core", "pex", "pydantic", "pip"):
        tried = subprocess.run([python, "-c", f"import {name}"], cwd=tmp_path, capture_output=True, check=False)
        assert tried.returncode == 1
    moved = out.rename(tmp_path / "team.pyz")
    script = tmp_path / "script.json"
    script.write_text((environment.folder / "script.json").read_text(encoding="utf-8"), encoding="utf-8")
    variables = {"HOME": str(tmp_path), "PI_SCRIPT": str(script)}
    done = subprocess.run(
        [python, moved, "--mode", "json", "go"],
        cwd=tmp_path,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[-1] == {"type": "agent_settled", "aborted": False}
    messages = [event["message"] for event in events if event["type"] == "message_end"]
    assert messages[2]["content"][0]["text"] == "not in this team"
    assert messages[-1]["content"][0]["text"] == "all done"
    listed = subprocess.run(
        [python, moved, "plugins", "list"], cwd=tmp_path, env=variables, capture_output=True, text=True, check=True
    )
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["guard", "echo", "modes", "scripted", "limits"]
