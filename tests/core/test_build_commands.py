"""The commands `pi build new` and `pi build show`, and wrong uses of `--build`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pi_core._build_commands import build_commands
from pi_core._build_file import read_build_file
from pi_core._click import invoke
from pi_core.cli import run

PLUGIN = """
class Plugin:
    pass
"""
BROKEN = "raise RuntimeError('imported')"
HEAD = '[build]\nname = "team"\n'


def write(folder: Path, text: str) -> Path:
    path = folder / "pi-build.toml"
    path.write_text(text, encoding="utf-8")
    return path


def plugin(name: str, *lines: str) -> str:
    return "\n".join(["[[plugins]]", f'name = "{name}"', *lines, ""])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--build"], "--build needs a file"),
        (["--build", "x.toml", "--no-plugins"], "exclude each other"),
        (["--build", "x.toml", "hi"], "There is no build file x.toml"),
    ],
)
def test_a_wrong_build_option_says_so(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        (["-p", "--", "--verbose"], [".", "-p", "--", "--verbose"]),
        (["team.toml", "-p", "--", "--verbose"], ["team.toml", "-p", "--", "--verbose"]),
        (["team.toml", "--", "--", "-x"], ["team.toml", "--", "--", "-x"]),
        (["--mode", "json", "hi"], [".", "--mode", "json", "hi"]),
    ],
)
def test_run_passes_on_where_the_options_of_pi_end(arguments: list[str], given: list[str]) -> None:
    seen: list[list[str]] = []

    def runner(passed: list[str]) -> int:
        seen.append(passed)
        return 7

    assert invoke(build_commands, ["run", *arguments], runner, "pi build") == 7
    assert seen == [["--build", *given]]


def test_new_writes_a_file_that_loads(
    tmp_path: Path, site: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add("pi-one", {"echo": PLUGIN}, "2.1.3")
    site.add("pi-two", {"guard": PLUGIN}, "2024.dev1")
    monkeypatch.chdir(tmp_path)
    assert run(["build", "new", "--name", 'a "team"']) == 0
    file = read_build_file(tmp_path)
    assert file.build.name == 'a "team"'
    written = {entry.name: (entry.version, entry.distribution) for entry in file.plugins}
    assert written["echo"] == ("~=2.1.3", "pi-one")
    assert written["guard"] == (">=2024.dev1", "pi-two")
    assert written["modes"][1] is None
    assert "limits" not in written
    assert run(["build", "show"]) == 0
    assert run(["build", "new"]) == 1
    assert "is there already" in capsys.readouterr().err


def test_show_names_what_is_missing_without_importing(
    tmp_path: Path, site: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("pi-bad", {"bad": BROKEN})
    monkeypatch.setenv("TEAM_KEY", "do-not-print")
    head = HEAD + 'system_prompt = "One.\\nTwo."\nenvironment = ["TEAM_KEY", "TEAM_URL"]\n'
    path = write(tmp_path, 'block = ["noise"]\n' + head + plugin("bad") + "[limits]\nturns = 3\n")
    assert run(["build", "show", str(path)]) == 0
    out = capsys.readouterr().out
    assert "do-not-print" not in out
    for line in ("TEAM_KEY, set", "TEAM_URL, not set", "One. ... (2 lines)", "not locked", "options: turns", "noise"):
        assert line in out
    write(tmp_path, head + plugin("bad", 'version = ">1"') + plugin("gone"))
    assert run(["build", "show", "--json", str(tmp_path)]) == 1
    table = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["version"], bool(row["fault"])) for row in table["plugins"]] == [
        ("bad", "1.0", True),
        ("gone", "", True),
    ]
