"""``pi --show-prompt``: what a run with the same options would tell the model, and the files it is made of."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from .conftest import Home

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(home: Home) -> Run:
    """Runs ``pi`` in the project, without keys and settings of this machine."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PI_")}

    def start(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pi_core", *arguments],
            cwd=home.project,
            env={name: value for name, value in kept.items() if not name.endswith("_API_KEY")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return start


def report(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_prompt_is_printed_and_its_files_are_said_beside_it(home: Home, run: Run) -> None:
    home.write("work/AGENTS.md", "Use tabs.")
    home.write(".pi/agent/APPEND_SYSTEM.md", "Be kind.")
    home.skill(".pi/agent/skills", "demo")
    home.write(".pi/agent/prompts/rev.md", "Review $1")
    done = run("--show-prompt")
    assert done.returncode == 0
    assert done.stdout.startswith("You are ")
    assert done.stdout.endswith(f"<cwd>\n{home.project}\n</cwd>\n")
    assert "<addendum>\nBe kind.\n</addendum>" in done.stdout
    assert done.stderr.splitlines() == [
        f"pi: addendum: {home.agent}/APPEND_SYSTEM.md",
        f"pi: context file: {home.project}/AGENTS.md",
        f"pi: skill of user: {home.agent}/skills/demo/SKILL.md",
        f"pi: prompt template of user: {home.agent}/prompts/rev.md",
    ]


def test_one_section_can_be_asked_for(home: Home, run: Run) -> None:
    assert run("--show-prompt", "cwd").stdout == f"{home.project}\n"


def test_a_section_that_is_not_there_is_named_with_those_that_are(run: Run) -> None:
    done = run("--show-prompt", "skils", "--no-tools")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "pi: The system prompt has no section 'skils'. Sections: preamble, rules, cwd\n"


def test_the_options_of_a_run_hold(home: Home, run: Run) -> None:
    home.write("work/AGENTS.md", "Use tabs.")
    home.skill(".pi/agent/skills", "demo")
    home.write("sp.txt", "From a file.\n")
    arguments = ("--system-prompt", "../sp.txt", "--append-system-prompt", "A", "--append-system-prompt", "B")
    found = report(run("--show-prompt", "--mode", "json", *arguments, "-nc", "-ns", "-t", "read"))
    assert found["sections"] == {"preamble": "From a file.", "addendum": "A\n\nB", "cwd": str(home.project)}
    assert found["files"] == []


def test_what_can_be_called_and_what_is_wrong_are_in_the_json(home: Home, run: Run) -> None:
    path = home.write(".pi/agent/prompts/rev.md", "---\nargument-hint: <file>\n---\nReview $1")
    broken = home.write(".pi/agent/skills/demo/SKILL.md", "No header.")
    found = report(run("--show-prompt", "--mode", "json"))
    assert found["commands"] == [
        {"name": "rev", "description": "Review $1", "source": "prompt", "path": str(path), "argumentHint": "<file>"}
    ]
    assert [text for text in found["warnings"] if str(broken) in text]


def test_what_a_project_says_needs_trust(home: Home, run: Run) -> None:
    home.write("work/.pi/SYSTEM.md", "Of the project.")
    (home.project / ".git").mkdir()
    assert "Of the project." not in run("--show-prompt").stdout
    trusted = run("--show-prompt", "--approve")
    assert trusted.stdout.startswith("Of the project.\n")
    assert f"pi: system prompt: {home.project}/.pi/SYSTEM.md" in trusted.stderr
