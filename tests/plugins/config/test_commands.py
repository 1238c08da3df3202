"""``pi config`` as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from pi_plugins.config.json_file import read_json

from .conftest import Places


def pi(places: Places, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PI_", "VISUAL", "EDITOR"))}
    done = subprocess.run(
        [sys.executable, "-m", "pi_core", "config", *arguments],
        cwd=places.cwd,
        env={**kept, **places.environ, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    root = f"{places.home.parent}/"
    done.stdout, done.stderr = done.stdout.replace(root, ""), done.stderr.replace(root, "")
    return done


def printed(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_show_prints_values_and_where_they_come_from(places: Places) -> None:
    places.user({"theme": "a", "zzz": 1})
    done = pi(places, "show", PI_EDITOR_PADDING_X="3")
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in printed(done)}
    assert lines["theme"] == '"a" (user settings home/.pi/agent/settings.json:2)'
    assert lines["editorPaddingX"] == "3 (environment PI_EDITOR_PADDING_X)"
    assert lines["compaction.reserveTokens"] == "16384 (default)"
    assert done.stderr == "home/.pi/agent/settings.json:3: there is no setting 'zzz'; it has no effect\n"


def test_show_explains_a_key(places: Places) -> None:
    assert printed(pi(places, "show", "compaction.enabled")) == [
        "Whether it happens by itself.",
        "Expected: true or false",
        "compaction.enabled  true  (default)",
    ]
    assert len(printed(pi(places, "show", "retry"))) == 7


def test_show_prints_json(places: Places) -> None:
    places.of_project({"theme": "a", "httpProxy": "http://x", "tuiMode": "y"})
    shown = json.loads("\n".join(printed(pi(places, "show", "theme", "--json", "--approve"))))
    assert (shown["value"], shown["trust"]) == ("a", "flag")
    assert shown["origins"] == {"theme": "project settings project/.pi/settings.json:2"}
    assert len(shown["warnings"]) == len(shown["unused"]) == 1


def test_show_never_prints_a_secret(places: Places) -> None:
    places.user(
        {"plugins": {"mine": {"apiKey": "plain-hidden", "url": "http://ada:hidden@host", "x": "sk-hidden-hidden"}}}
    )
    for more in ((), ("--json",), ("plugins",), ("plugins.mine.apiKey",)):
        done = pi(places, "show", *more)
        assert "***" in "".join(printed(done))
        assert "hidden" not in done.stdout + done.stderr
    done = pi(places, "set", "plugins.mine.apiKey", "other-hidden")
    assert "hidden" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("key", "said"),
    [("them", "there is no setting 'them', did you mean 'theme'?"), ("plugins.x", "'plugins.x' is not set")],
)
def test_show_of_a_key_that_is_not_there_fails(places: Places, key: str, said: str) -> None:
    done = pi(places, "show", key)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"pi: {said}\n")


def test_what_is_set_can_be_shown_and_taken_out(places: Places) -> None:
    assert printed(pi(places, "set", "enabledModels", "a, b")) == [
        'home/.pi/agent/settings.json: enabledModels = ["a", "b"]'
    ]
    assert printed(pi(places, "show", "enabledModels"))[-1].startswith('enabledModels  ["a", "b"]  (user settings')
    assert printed(pi(places, "unset", "enabledModels")) == ["home/.pi/agent/settings.json: enabledModels removed"]
    assert printed(pi(places, "unset", "enabledModels"))[0].endswith("was not set there")
    assert read_json(places.user_file) == {}


def test_a_wrong_value_is_refused(places: Places) -> None:
    done = pi(places, "set", "compaction.reserveTokens", "many")
    assert done.returncode == 1
    assert done.stderr == 'pi: compaction.reserveTokens: expected a whole number of at least 0, got "many"\n'


def test_set_tells_when_another_place_counts(places: Places) -> None:
    done = pi(places, "set", "theme", "x", PI_THEME="y")
    assert done.stderr == "It has no effect here: environment PI_THEME counts\n"


def test_a_projects_settings_are_set_once_it_is_trusted(places: Places) -> None:
    done = pi(places, "set", "theme", "x", "--project")
    assert printed(done) == ['project/.pi/settings.json: theme = "x"']
    assert done.stderr == "It counts once the project is trusted: pi config trust\n"
    done = pi(places, "set", "theme", "y", "--project")
    assert (done.returncode, done.stderr.count("is not written: the project is not trusted")) == (1, 1)
    assert printed(pi(places, "trust")) == ["project: trusted", "  project/.pi/settings.json"]
    assert pi(places, "set", "theme", "y", "--project").stderr == ""
    assert read_json(places.project_file) == {"theme": "y"}
    assert printed(pi(places, "unset", "theme", "--project")) == ["project/.pi/settings.json: theme removed"]


def test_trust_is_listed_refused_and_forgotten(places: Places) -> None:
    inner = places.cwd / "inner"
    inner.mkdir()
    assert printed(pi(places, "trust", "--no")) == ["project: not trusted"]
    assert printed(pi(places, "trust", "--no")) == ["project: not trusted, as before"]
    assert printed(pi(places, "trust", "inner")) == ["project/inner: trusted"]
    assert printed(pi(places, "trusted")) == ["not trusted  project", "trusted      project/inner"]
    assert json.loads(pi(places, "trusted", "--json").stdout) == {"project": False, "project/inner": True}
    assert printed(pi(places, "trust", "inner", "--forget")) == [
        "project/inner: forgotten",
        "A folder above it is not trusted, which counts here too",
    ]
    done = pi(places, "trust", "--no", "--forget")
    assert (done.returncode, "exclude each other" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("flag", "theme"), [("-a", "x"), ("--approve", "x"), ("-na", "system"), ("--no-approve", "system")]
)
def test_a_flag_decides_about_the_project_for_once(places: Places, flag: str, theme: str) -> None:
    places.of_project({"theme": "x"})
    done = pi(places, "show", "theme", "--json", flag)
    assert json.loads(done.stdout)["value"] == theme
    assert not (places.agent / "trust.json").exists()


def test_a_project_that_nobody_decided_about_is_named(places: Places) -> None:
    places.of_project({"theme": "x"})
    done = pi(places, "show", "theme")
    assert printed(done)[-1] == 'theme  "system"  (default)'
    assert done.stderr.startswith("Left out project/.pi/settings.json: nobody said")


def test_path_prints_where_everything_is(places: Places) -> None:
    places.user({})
    lines = printed(pi(places, "path"))
    assert lines[:3] == [
        "agent folder      home/.pi/agent",
        "user settings     home/.pi/agent/settings.json",
        "trusted projects  home/.pi/agent/trust.json  (not there)",
    ]


def test_a_text_that_no_terminal_takes_is_printed_as_json_has_it(places: Places) -> None:
    places.user(r'{"theme": "\ud800"}')
    assert printed(pi(places, "show", "theme"))[-1].split("  ")[1] == r'"\ud800"'


def test_path_says_what_cannot_be_reached(places: Places) -> None:
    places.user_file.symlink_to(places.user_file)
    lines = printed(pi(places, "path"))
    assert "user settings     home/.pi/agent/settings.json  (Too many levels of symbolic links)" in lines
    assert "trusted projects  home/.pi/agent/trust.json  (not there)" in lines


def test_a_directory_that_is_gone_is_said(places: Places) -> None:
    script = f"cd {places.project} && rmdir {places.project} && exec {sys.executable} -m pi_core config show theme"
    done = subprocess.run(
        ["/bin/sh", "-c", script], env={**os.environ, **places.environ}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "pi: The current directory cannot be used: No such file or directory. Change to another one\n"
    )
