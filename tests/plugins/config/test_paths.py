"""The folders of the configuration."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from pi_core import ConfigError
from pi_plugins.config import agent_dir, current_dir, home_dir, project_dir


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


def test_without_a_variable_the_home_directory_is_that_of_the_account(monkeypatch: pytest.MonkeyPatch) -> None:
    for home in (None, ""):
        if home is None:
            monkeypatch.delenv("HOME", raising=False)
        else:
            monkeypatch.setenv("HOME", home)
        assert home_dir() == Path(pwd.getpwuid(os.getuid()).pw_dir)


def test_a_home_directory_is_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert home_dir({"HOME": "ada"}) == tmp_path / "ada"


def test_an_account_nobody_knows_needs_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    with pytest.raises(ConfigError, match="Set HOME, or PI_CODING_AGENT_DIR to a folder"):
        agent_dir({})
    assert agent_dir({"PI_CODING_AGENT_DIR": "/srv/pi"}) == Path("/srv/pi")


def test_in_a_directory_that_is_gone_only_what_needs_it_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert agent_dir({"PI_CODING_AGENT_DIR": "/srv/pi"}) == Path("/srv/pi")
    with pytest.raises(ConfigError, match="The current directory cannot be used: No such file or directory"):
        agent_dir({"PI_CODING_AGENT_DIR": "pi"})
    with pytest.raises(ConfigError, match="Change to another one"):
        current_dir()
    monkeypatch.chdir(tmp_path)


def test_a_projects_folder() -> None:
    assert project_dir(Path("/srv/x")) == Path("/srv/x/.pi")


def test_looking_for_a_folder_builds_no_models() -> None:
    code = "import sys; from pi_plugins.config import agent_dir; agent_dir(); print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
