"""The folders of the configuration."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pi_plugins.config import agent_dir, project_dir


def test_the_agents_folder_is_below_the_home_directory() -> None:
    assert agent_dir({"HOME": "/home/ada"}) == Path("/home/ada/.pi/agent")


def test_a_variable_names_another_folder() -> None:
    assert agent_dir({"HOME": "/home/ada", "PI_CODING_AGENT_DIR": "/srv/pi"}) == Path("/srv/pi")


def test_the_variable_may_start_with_the_home_directory_or_be_relative(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert agent_dir({"HOME": "/home/ada", "PI_CODING_AGENT_DIR": "~/pi"}) == Path("/home/ada/pi")
    assert agent_dir({"HOME": "/home/ada", "PI_CODING_AGENT_DIR": "conf/../pi"}) == tmp_path / "pi"


def test_an_empty_variable_names_nothing() -> None:
    assert agent_dir({"HOME": "/home/ada", "PI_CODING_AGENT_DIR": ""}) == Path("/home/ada/.pi/agent")


def test_a_projects_folder() -> None:
    assert project_dir(Path("/work/x")) == Path("/work/x/.pi")


def test_looking_for_a_folder_builds_no_models() -> None:
    code = "import sys; from pi_plugins.config import agent_dir; agent_dir(); print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
