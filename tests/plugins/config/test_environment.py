"""Settings in environment variables."""

from __future__ import annotations

from typing import Any

import pytest

from pi_plugins.config.environment import SPECIAL, variable
from pi_plugins.config.keys import all_keys

from .conftest import Places


def value(places: Places, key: str, **environ: str) -> Any:
    loaded = places.load(**environ)
    assert loaded.warnings == []
    found = loaded.settings.model_dump(mode="json")
    for part in key.split("."):
        found = found[part]
    return found


@pytest.mark.parametrize(
    ("name", "text", "key", "expected"),
    [
        ("PI_COMPACTION_RESERVE_TOKENS", "5", "compaction.reserveTokens", 5),
        ("PI_RETRY_PROVIDER_MAX_RETRY_DELAY_MS", "0", "retry.provider.maxRetryDelayMs", 0),
        ("PI_HTTP_IDLE_TIMEOUT_MS", "disabled", "httpIdleTimeoutMs", "disabled"),
        ("PI_EDITOR_PADDING_X", "2", "editorPaddingX", 2),
        ("PI_QUIET_STARTUP", "true", "quietStartup", True),
        ("PI_QUIET_STARTUP", "1", "quietStartup", True),
        ("PI_QUIET_STARTUP", "YES", "quietStartup", True),
        ("PI_COMPACTION_ENABLED", "off", "compaction.enabled", False),
        ("PI_OFFLINE", "1", "offline", True),
        ("PI_DEFAULT_MODEL", "4", "defaultModel", "4"),
        ("PI_DEFAULT_MODEL", "true", "defaultModel", "true"),
        ("PI_DEFAULT_MODEL", "null", "defaultModel", None),
        ("PI_ENABLED_MODELS", "a, b/c*,", "enabledModels", ["a", "b/c*"]),
        ("PI_ENABLED_MODELS", '["a,b"]', "enabledModels", ["a,b"]),
        ("PI_BLOCKED_PLUGINS", "x", "blockedPlugins", ["x"]),
        ("PI_PLUGINS", '{"limits": {"turns": 5}}', "plugins", {"limits": {"turns": 5}}),
        ("PI_MODEL_THINKING_LEVELS", '{"a/b": "low"}', "modelThinkingLevels", {"a/b": "low"}),
        ("PI_CODING_AGENT_SESSION_DIR", "/s", "sessionDir", "/s"),
        ("PI_SESSION_DIR", "/s", "sessionDir", "/s"),
        ("PI_HYPERLINKS", "0", "terminal.hyperlinks", False),
        ("PI_TERMINAL_HYPERLINKS", "auto", "terminal.hyperlinks", "auto"),
        ("PI_IMAGE_PROTOCOL", "kitty", "terminal.images", "kitty"),
    ],
)
def test_a_variable_sets_a_key(places: Places, name: str, text: str, key: str, expected: Any) -> None:
    assert value(places, key, **{name: text}) == expected


def test_every_key_has_a_variable_of_its_own() -> None:
    names = [variable(path) for path in all_keys()]
    assert len({*names, *SPECIAL}) == len(names) + len(SPECIAL)


def test_an_empty_variable_sets_nothing(places: Places) -> None:
    places.user({"theme": "a"})
    assert value(places, "theme", PI_THEME="") == "a"


def test_the_usual_name_of_a_key_wins_over_its_other_one(places: Places) -> None:
    names = {"PI_SESSION_DIR": "/usual", "PI_CODING_AGENT_SESSION_DIR": "/other"}
    assert value(places, "sessionDir", **names) == "/usual"


def test_an_object_of_a_variable_is_merged_into_that_of_a_file(places: Places) -> None:
    places.user({"plugins": {"limits": {"turns": 1, "seconds": 2}}})
    loaded = places.load(PI_PLUGINS='{"limits": {"turns": 3}}')
    assert loaded.settings.plugins == {"limits": {"turns": 3, "seconds": 2}}
    assert loaded.origins["plugins.limits.turns"] == "environment PI_PLUGINS"
    assert loaded.origins["plugins.limits.seconds"].startswith("user settings")


def test_a_wrong_value_is_named_with_its_variable(places: Places) -> None:
    places.user({"retry": {"maxRetries": 4}})
    loaded = places.load(PI_RETRY_MAX_RETRIES="many")
    assert loaded.settings.retry.max_retries == 4
    assert loaded.warnings == [
        'environment PI_RETRY_MAX_RETRIES: retry.maxRetries: expected a whole number of at least 0, got "many"; using 4'
    ]


def test_a_misspelt_variable_of_a_group_is_named(places: Places) -> None:
    loaded = places.load(PI_RETRY_MAX_RETRYS="1", PI_SESSION_ID="x", PI_SOMETHING="y")
    assert loaded.warnings == [
        "environment: no setting is set by PI_RETRY_MAX_RETRYS, did you mean PI_RETRY_MAX_RETRIES?"
    ]


def test_the_users_editor_counts_when_no_setting_names_one(places: Places) -> None:
    loaded = places.load(VISUAL="code -w", EDITOR="vi")
    assert loaded.settings.external_editor == "code -w"
    assert loaded.origins["externalEditor"] == "environment VISUAL"
    assert places.load(EDITOR="vi").settings.external_editor == "vi"
    places.user({"externalEditor": "nano"})
    assert places.load(VISUAL="code -w").settings.external_editor == "nano"


def test_a_secret_in_a_wrong_value_is_not_shown(places: Places) -> None:
    loaded = places.load(PI_QUIET_STARTUP="sk-abcdefghijklmnop", PI_IMAGES_AUTO_RESIZE="http://ada:word@host")
    assert "abcdefgh" not in str(loaded.warnings)
    assert "word" not in str(loaded.warnings)
