"""Writing single settings."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pi_core import ConfigError
from pi_plugins.config import remove_setting, save_setting
from pi_plugins.config.json_file import read_json

from .conftest import Places

WRITER = """
import sys
from pathlib import Path
from pi_plugins.config import save_setting
for number in range(200):
    save_setting(sys.argv[2], number, agent_dir=Path(sys.argv[1]))
"""


def save(places: Places, key: str, value: Any, **options: Any) -> Any:
    file = save_setting(key, value, cwd=places.cwd, environ=places.environ, **options)
    return read_json(file)


def test_only_the_key_changes(places: Places) -> None:
    places.user('{"zzz": [1.0, null], "compaction": {"reserveTokens": "wrong"}}')
    assert save(places, "compaction.enabled", False) == {
        "zzz": [1.0, None],
        "compaction": {"reserveTokens": "wrong", "enabled": False},
    }


def test_a_new_file_is_for_its_owner_only(places: Places) -> None:
    save(places, "theme", "x")
    assert stat.S_IMODE(places.user_file.stat().st_mode) == 0o600


def test_keys_with_dots_in_them(places: Places) -> None:
    save(places, "modelThinkingLevels.openai/gpt-4.1", "low")
    assert save(places, "compaction.modelOverrides.openai/gpt-4.1.reserveTokens", 3) == {
        "modelThinkingLevels": {"openai/gpt-4.1": "low"},
        "compaction": {"modelOverrides": {"openai/gpt-4.1": {"reserveTokens": 3}}},
    }


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("them", "x", "there is no setting 'them', did you mean 'theme'?"),
        ("theme.x", "x", "there is no setting 'theme.x': 'theme' is a text"),
        ("theme", 3, "theme: expected a text, got 3"),
        ("compaction.reserveTokens", -1, "compaction.reserveTokens: expected a whole number of at least 0, got -1"),
        ("modelThinkingLevels.a/b", "vast", "modelThinkingLevels.a/b: expected one of off, minimal"),
    ],
)
def test_what_would_be_wrong_is_not_written(places: Places, key: str, value: Any, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        save(places, key, value)
    assert str(raised.value).startswith(said)
    assert not places.user_file.exists()


def test_a_broken_file_is_not_overwritten(places: Places) -> None:
    places.user("{ theme")
    with pytest.raises(ConfigError, match=r"settings\.json:1:3"):
        save(places, "theme", "x")
    assert places.user_file.read_text() == "{ theme"


def test_a_value_in_the_way_is_not_overwritten(places: Places) -> None:
    places.user('{"compaction": 3}')
    with pytest.raises(ConfigError, match="'compaction' is no object; correct it first"):
        save(places, "compaction.enabled", True)
    assert places.user_file.read_text() == '{"compaction": 3}'


def test_the_settings_of_a_project_need_its_trust(places: Places) -> None:
    with pytest.raises(ConfigError, match="the project is not trusted"):
        save(places, "theme", "x", scope="project")
    assert not places.project_file.exists()
    assert save(places, "theme", "x", scope="project", trusted=True) == {"theme": "x"}
    assert places.project_file.exists()


def test_what_only_the_user_can_set_is_not_written_into_a_project(places: Places) -> None:
    with pytest.raises(ConfigError, match="'httpProxy' counts in the user's settings only"):
        save(places, "httpProxy", "http://x", scope="project", trusted=True)


def test_the_users_own_folder_has_no_project_settings(places: Places) -> None:
    places.cwd = places.agent
    (places.agent / ".pi").symlink_to(places.agent)
    with pytest.raises(ConfigError, match="is the user's own"):
        save(places, "theme", "x", scope="project", trusted=True)


def test_a_setting_that_is_taken_out_leaves_no_empty_objects(places: Places) -> None:
    places.user('{"theme": "x", "plugins": {"a": {"b": 1}, "c": {}}}')
    assert remove_setting("plugins.a.b", environ=places.environ) == (places.user_file, True)
    assert read_json(places.user_file) == {"theme": "x", "plugins": {"c": {}}}
    assert remove_setting("plugins.a.b", environ=places.environ) == (places.user_file, False)
    assert remove_setting("theme", environ=places.environ)[1]
    assert read_json(places.user_file) == {"plugins": {"c": {}}}


def test_two_processes_that_write_other_keys_undo_nothing(places: Places) -> None:
    keys = ["editorPaddingX", "compaction.reserveTokens"]
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(places.agent), key]) for key in keys]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert json.loads(places.user_file.read_text()) == {"editorPaddingX": 199, "compaction": {"reserveTokens": 199}}
    assert {name for name in os.listdir(places.agent) if not name.endswith(".lock")} == {"settings.json"}


def test_state_is_not_in_the_settings(places: Places) -> None:
    from pi_plugins.config import state_file

    state_file(environ=places.environ).update(lambda data: data.update(deviceId="x"))
    assert read_json(places.agent / "state.json") == {"deviceId": "x"}
    assert not places.user_file.exists()
    assert Path(state_file(agent_dir=places.agent).path) == places.agent / "state.json"
