"""Which settings count, where they came from, and what is said about those that do not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pi_core import ConfigError
from pi_plugins.config import Settings
from pi_plugins.config.keys import all_keys, dotted, expected
from pi_plugins.config.settings import ADDED_UP, ELSEWHERE, GLOBAL_ONLY

from .conftest import Places


def test_without_files_the_defaults_count(places: Places) -> None:
    loaded = places.load()
    assert loaded.settings == Settings()
    assert (loaded.origins, loaded.warnings, loaded.unused) == ({}, [], [])


def test_defaults_are_those_of_the_original() -> None:
    settings = Settings()
    assert settings.compaction.reserve_tokens == 16_384
    assert settings.compaction.keep_recent_tokens == 20_000
    assert (settings.retry.max_retries, settings.retry.base_delay_ms, settings.retry.provider.max_retries) == (
        3,
        2000,
        0,
    )
    assert (settings.steering_mode, settings.default_thinking_level) == ("one-at-a-time", "medium")
    assert settings.default_project_trust == "ask"


def test_each_place_wins_over_the_ones_before_it(places: Places) -> None:
    def theme() -> tuple[str, str]:
        loaded = places.load(**environ, overrides=overrides)
        return loaded.settings.theme, loaded.origins["theme"].replace(str(places.home.parent), "")

    environ: dict[str, str] = {}
    overrides: dict[str, Any] = {}
    places.user('{\n "theme": "user"}')
    assert theme() == ("user", "user settings /home/.pi/agent/settings.json:2")
    places.of_project('{"theme": "project"}')
    assert theme() == ("project", "project settings /project/.pi/settings.json:1")
    environ["PI_THEME"] = "environment"
    assert theme() == ("environment", "environment PI_THEME")
    overrides["theme"] = "override"
    assert theme() == ("override", "command line")


def test_a_project_that_is_not_trusted_counts_for_nothing(places: Places) -> None:
    places.of_project({"theme": "x", "sessionDir": "/tmp/elsewhere", "nonsense": 1})
    loaded = places.load(trusted=False)
    assert loaded.settings == Settings()
    assert loaded.warnings == []


def test_objects_are_merged_and_lists_replaced(places: Places) -> None:
    places.user(
        {
            "compaction": {"enabled": False, "reserveTokens": 1, "modelOverrides": {"a/b": {"reserveTokens": 5}}},
            "enabledModels": ["a"],
            "modelThinkingLevels": {"a/b": "low"},
            "plugins": {"limits": {"turns": 3, "deep": {"x": 1}}},
        }
    )
    places.of_project(
        {
            "compaction": {"reserveTokens": 2, "modelOverrides": {"a/b": {"keepRecentTokens": 6}}},
            "enabledModels": ["b"],
            "modelThinkingLevels": {"c/d": "high"},
            "plugins": {"limits": {"deep": {"y": 2}}, "other": {}},
        }
    )
    loaded = places.load()
    settings = loaded.settings
    assert (settings.compaction.enabled, settings.compaction.reserve_tokens) == (False, 2)
    override = settings.compaction.model_overrides["a/b"]
    assert (override.reserve_tokens, override.keep_recent_tokens) == (5, 6)
    assert settings.enabled_models == ("b",)
    assert settings.model_thinking_levels == {"a/b": "low", "c/d": "high"}
    assert settings.plugins == {"limits": {"turns": 3, "deep": {"x": 1, "y": 2}}, "other": {}}
    assert loaded.origins["plugins.limits.deep.x"].startswith("user settings")
    assert loaded.origins["plugins.limits.deep.y"].startswith("project settings")


def test_an_object_that_another_value_replaces_leaves_no_origins(places: Places) -> None:
    places.user({"plugins": {"a": {"x": {"y": 1}}}})
    places.of_project({"plugins": {"a": {"x": 2}}})
    assert list(places.load().origins) == ["plugins.a.x"]


def test_lists_of_files_add_up_each_relative_to_its_own_file(places: Places) -> None:
    places.user({"skills": ["mine", "~/shared", "/abs", "!draft-*", "-skills/old"], "pluginFiles": ["a.py"]})
    places.of_project({"skills": ["../tools"], "pluginFiles": ["b.py"]})
    loaded = places.load(PI_PLUGIN_FILES="c.py")
    agent = places.agent
    assert loaded.settings.skills == (
        f"{places.cwd}/tools",
        f"{agent}/mine",
        f"{places.home}/shared",
        "/abs",
        "!draft-*",
        f"-{agent}/skills/old",
    )
    assert loaded.settings.plugin_files == (f"{places.cwd}/c.py", f"{places.project}/b.py", f"{agent}/a.py")
    assert re.fullmatch(r"project settings \S+:\d+, then user settings \S+:\d+", loaded.origins["skills"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '{"compaction": {\n"reserveTokens": -5}}',
            "2: compaction.reserveTokens: expected a whole number of at least 0, got -5; using 16384",
        ),
        ('{"theme": null}', "1: theme: expected a text, got null; using system"),
        ('{"quietStartup": "yes"}', '1: quietStartup: expected true or false, got "yes"; using False'),
        (
            '{"steeringMode": "some"}',
            '1: steeringMode: expected one of one-at-a-time, all, got "some"; using one-at-a-time',
        ),
        (
            '{"httpIdleTimeoutMs": 1.5}',
            "1: httpIdleTimeoutMs: expected a whole number of at least 0 or 'disabled', got 1.5; using 300000",
        ),
        ('{"enabledModels": "a"}', '1: enabledModels: expected a list of texts or null, got "a"; using none'),
        ('{"enabledModels": ["a",\n7]}', "2: enabledModels[1]: expected a text, got 7; left out"),
        ('{"retry": 3}', "1: retry: expected an object, got 3; ignored"),
        ('{"plugins": {"x": "sk-abcdefghijklm"}}', "1: plugins.x: expected an object, got a text; left out"),
        (
            '{"doubleEscapeAction": "vast"}',
            '1: doubleEscapeAction: expected one of tree, fork, none, got "vast"; using tree',
        ),
        (
            '{"compaction": {"reserveToken": 1}}',
            "1: there is no setting 'compaction.reserveToken', did you mean 'compaction.reserveTokens'?",
        ),
        ('{"reserveTokens": 1}', "1: there is no setting 'reserveTokens', did you mean 'compaction.reserveTokens'?"),
        ('{"quiet_startup": true}', "1: there is no setting 'quiet_startup', did you mean 'quietStartup'?"),
        ('{"zzz": 1}', "1: there is no setting 'zzz'; it has no effect"),
        (
            '{"thinkingBudgets": {"huge": 1}}',
            "1: there is no setting 'thinkingBudgets.huge'; names there: minimal, low, medium, high",
        ),
        ('{"theme": "a",\n"theme": "b"}', "2: the key 'theme' is there twice (line 1 and line 2); using the last"),
    ],
)
def test_a_wrong_value_costs_itself_and_is_named(places: Places, text: str, said: str) -> None:
    places.user(text[:-1] + ', "editorPaddingX": 7}')
    loaded = places.load()
    assert loaded.warnings == [f"{places.user_file}:{said}"]
    assert loaded.settings.editor_padding_x == 7


def test_a_wrong_entry_of_an_object_costs_itself(places: Places) -> None:
    places.user({"modelThinkingLevels": {"a/b": "vast", "c": "low"}})
    loaded = places.load()
    assert loaded.settings.model_thinking_levels == {"c": "low"}
    levels = "off, minimal, low, medium, high, xhigh, max"
    (warning,) = loaded.warnings
    assert warning.endswith(f'modelThinkingLevels.a/b: expected one of {levels}, got "vast"; left out')


def test_a_wrong_value_of_the_project_leaves_the_users(places: Places) -> None:
    places.user({"compaction": {"reserveTokens": 9}})
    places.of_project({"compaction": {"reserveTokens": "x"}})
    loaded = places.load()
    assert loaded.settings.compaction.reserve_tokens == 9
    assert loaded.warnings[0].endswith("; using 9")


@pytest.mark.parametrize("value", [0, 2**53 - 1])
def test_whole_numbers_up_to_what_json_keeps_exact_are_taken(places: Places, value: int) -> None:
    places.user({"compaction": {"reserveTokens": value}})
    assert places.load().settings.compaction.reserve_tokens == value
    places.user({"compaction": {"reserveTokens": 2**53}})
    assert "got 9007199254740992" in places.load().warnings[0]


@pytest.mark.parametrize("text", ["{ a: 1}", "[]", "", '{"theme": '])
def test_a_broken_file_is_a_warning_and_counts_as_empty(places: Places, text: str) -> None:
    places.user(text)
    places.of_project({"theme": "x"})
    loaded = places.load()
    assert loaded.settings.theme == "x"
    (warning,) = loaded.warnings
    assert warning.startswith(f"{places.user_file}:1")
    assert warning.endswith("; the user settings do not count")


def test_a_file_that_broke_counts_on_a_reload_as_it_did_before(places: Places) -> None:
    places.user({"theme": "a"})
    first = places.load()
    places.user("{")
    second = first.reload()
    assert second.settings.theme == "a"
    assert second.warnings[0].endswith("; the user settings count as they were read before")
    assert second.reload().settings.theme == "a"
    places.user({"theme": "b"})
    third = second.reload()
    assert (third.settings.theme, third.warnings) == ("b", [])


def test_a_file_that_was_broken_from_the_start_counts_for_nothing_on_a_reload_too(places: Places) -> None:
    places.user("{")
    first = places.load()
    assert first.warnings[0].endswith("; the user settings do not count")
    assert first.reload(trusted=True).warnings == first.warnings


def test_a_file_that_is_gone_on_a_reload_counts_for_nothing(places: Places) -> None:
    places.user({"theme": "a"})
    first = places.load()
    places.user_file.unlink()
    assert first.reload().settings.theme == "system"


def test_a_reload_can_take_the_projects_settings_in_or_out(places: Places) -> None:
    places.of_project({"theme": "a"})
    untrusted = places.load(trusted=False)
    trusted = untrusted.reload(trusted=True)
    assert (untrusted.settings.theme, trusted.settings.theme) == ("system", "a")
    assert trusted.reload(trusted=False).settings.theme == "system"


@pytest.mark.parametrize("key", sorted(GLOBAL_ONLY))
def test_what_only_the_user_can_set_is_ignored_in_a_project(places: Places, key: str) -> None:
    value = {"defaultProjectTrust": "always", "httpProxy": "http://127.0.0.1:1"}[key]
    places.of_project({key: value})
    loaded = places.load()
    assert loaded.settings == Settings()
    assert loaded.warnings == [f"{places.project_file}:2: '{key}' counts in the user's settings only; ignored"]
    places.project_file.unlink()
    places.user({key: value})
    assert loaded.reload().settings != Settings()


def test_keys_of_the_original_are_told_apart_from_mistakes(places: Places) -> None:
    places.user({"tuiMode": "regular", "lastChangelogVersion": "1"})
    loaded = places.load()
    assert loaded.warnings == []
    assert [text.partition(": ")[2].split("'")[1] for text in loaded.unused] == ["lastChangelogVersion", "tuiMode"]


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ('{"queueMode":\n "all"}', "steeringMode", "all"),
        ('{"websockets":\n true}', "transport", "websocket"),
        ('{"websockets":\n false}', "transport", "sse"),
        ('{"skills": {\n"enableSkillCommands": false}}', "enableSkillCommands", False),
        ('{"skills": {\n"customDirectories": ["/a"]}}', "skills", ["/a"]),
        ('{"retry": {\n"maxDelayMs": 5}}', "retry.provider.maxRetryDelayMs", 5),
    ],
)
def test_keys_of_earlier_versions_are_read(places: Places, old: str, new: str, value: Any) -> None:
    places.user(old)
    loaded = places.load()
    found = loaded.settings.model_dump(mode="json")
    for part in new.split("."):
        found = found[part]
    assert found == value
    line = 1 if "\n " in old else 2
    assert loaded.origins == {new: f"user settings {places.user_file}:{line}"}
    assert loaded.warnings == []


def test_a_new_key_wins_over_its_old_one(places: Places) -> None:
    places.user(
        {
            "queueMode": "all",
            "steeringMode": "one-at-a-time",
            "retry": {"maxDelayMs": 1, "provider": {"maxRetryDelayMs": 2}},
        }
    )
    loaded = places.load()
    assert loaded.settings.steering_mode == "one-at-a-time"
    assert loaded.settings.retry.provider.max_retry_delay_ms == 2
    assert loaded.warnings == []


def test_a_wrong_value_of_an_old_key_is_named_where_it_stands(places: Places) -> None:
    places.user('{"retry":\n {\n "maxDelayMs": -1}}')
    (warning,) = places.load().warnings
    assert warning.startswith(f"{places.user_file}:3: retry.provider.maxRetryDelayMs: expected a whole number")


def test_a_wrong_override_is_refused(places: Places) -> None:
    with pytest.raises(ConfigError, match=r"^command line: there is no setting 'them', did you mean 'theme'\?"):
        places.load(overrides={"them": "x"})
    with pytest.raises(ConfigError, match=r"^command line: retry\.enabled: expected true or false, got 3"):
        places.load(overrides={"retry.enabled": 3})


def test_overrides_may_name_keys_with_dots_or_whole_objects(places: Places) -> None:
    settings = places.load(
        overrides={
            "modelThinkingLevels.openai/gpt-4.1": "low",
            "compaction.modelOverrides.openai/gpt-4.1.reserveTokens": 3,
            "plugins.limits.turns": 4,
            "retry": {"enabled": False},
        }
    ).settings
    assert settings.model_thinking_levels == {"openai/gpt-4.1": "low"}
    assert settings.compaction.model_overrides["openai/gpt-4.1"].reserve_tokens == 3
    assert settings.plugins == {"limits": {"turns": 4}}
    assert not settings.retry.enabled


def test_the_users_folder_is_no_project(places: Places) -> None:
    places.user({"theme": "a", "httpProxy": "http://x"})
    places.cwd = places.agent.parent
    (places.cwd / ".pi").symlink_to(places.agent)
    loaded = places.load()
    assert loaded.warnings == []
    assert loaded.origins["theme"].startswith("user settings")


def test_settings_do_not_show_options_of_plugins() -> None:
    assert "hidden" not in repr(Settings(plugins={"x": {"apiKey": "hidden"}}, http_proxy="http://a:hidden@b"))


def test_every_key_says_what_it_is_and_what_it_takes() -> None:
    for path, text in all_keys().items():
        assert text.endswith("."), f"{dotted(path)} has no text"
        assert expected(path) != "a value", dotted(path)


def test_no_key_is_in_two_lists() -> None:
    known = {path[0] for path in all_keys()}
    assert known >= ADDED_UP
    assert known >= GLOBAL_ONLY
    assert not known & ELSEWHERE


def test_the_example_of_the_docs_has_no_fault(places: Places) -> None:
    page = Path(__file__).parents[3] / "docs" / "how-to" / "configure.md"
    blocks = re.findall(r"```json\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        places.user(block)
        loaded = places.load()
        assert (loaded.warnings, loaded.unused) == ([], [])
        assert loaded.origins
