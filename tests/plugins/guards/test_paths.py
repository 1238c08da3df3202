"""What rules say about files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pi_core import ConfigError

from .judging import effect, judged


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with files, and links that lead out of it and into it."""
    folder = tmp_path / "project"
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "secrets").mkdir()
    for name in ("src/a.py", "src/deep/b.py", "secrets/key", ".env", "notes.txt"):
        (folder / name).write_text("x", encoding="utf-8")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("x", encoding="utf-8")
    (folder / "link").symlink_to(outside)
    (folder / "src" / "key").symlink_to(folder / "secrets" / "key")
    (outside / "back").symlink_to(folder / "src")
    return folder


def rules(*rules: dict[str, Any], mode: str = "deny", **options: Any) -> dict[str, Any]:
    return {"mode": mode, "rules": list(rules), **options}


ALLOW_SOURCES = rules({"effect": "allow", "path": "src/**"})


@pytest.mark.parametrize(
    "path", ["src/a.py", "src/deep/b.py", "./src/a.py", "@src/a.py", "src/new.py", "x/../src/a.py"]
)
def test_files_of_an_allowed_folder_are_allowed(project: Path, path: str) -> None:
    assert effect(ALLOW_SOURCES, "edit", project, path=path) == "allow"
    assert effect(ALLOW_SOURCES, "edit", project, path=str(project / path.removeprefix("@"))) == "allow"


@pytest.mark.parametrize(
    "path", ["notes.txt", "src/../notes.txt", "src/key", "../src/a.py", "link/file", "srcs/a.py", "/src/a"]
)
def test_no_way_around_leads_out_of_an_allowed_folder(project: Path, path: str) -> None:
    assert effect(ALLOW_SOURCES, "edit", project, path=path) == "deny"


def test_a_link_into_an_allowed_folder_is_in_it(project: Path) -> None:
    assert effect(ALLOW_SOURCES, "edit", project, path="../outside/back/a.py") == "allow"


def test_a_star_stays_within_a_folder_and_a_plain_folder_is_all_that_is_in_it(project: Path) -> None:
    assert effect(rules({"effect": "allow", "path": "src/*"}), "read", project, path="src/a.py") == "allow"
    assert effect(rules({"effect": "allow", "path": "src/*"}), "read", project, path="src/deep/b.py") == "deny"
    for folder in ("src", "src/", "deep", "./src", str(project / "src")):
        assert effect(rules({"effect": "allow", "path": folder}), "read", project, path="src/deep/b.py") == "allow"
    assert effect(rules({"effect": "allow", "path": "./deep"}), "read", project, path="src/deep/b.py") == "deny"


def test_a_bare_name_allows_nothing_outside_of_the_project(project: Path) -> None:
    allow = rules({"effect": "allow", "path": "outside"})
    assert effect(allow, "read", project, path="../outside/file") == "deny"


DENY_SECRETS = rules({"effect": "deny", "path": ["secrets/**", ".env"]}, mode="allow")


@pytest.mark.parametrize(
    "path",
    [
        "secrets/key",
        "secrets",
        "secrets/",
        "src/key",
        "src/../secrets/key",
        ".env",
        "src/.env",
        ".env/x",
        "secrets/new/x",
    ],
)
def test_denied_files_are_denied_by_every_name(project: Path, path: str) -> None:
    assert effect(DENY_SECRETS, "read", project, path=path) == "deny"
    assert effect(DENY_SECRETS, "read", project, path=str(project / path)) == "deny"


def test_a_link_is_denied_by_its_own_name_too(project: Path) -> None:
    options = rules({"effect": "deny", "path": "link/**"}, mode="allow")
    assert effect(options, "read", project, path="link/file") == "deny"


def test_other_files_are_left_alone(project: Path) -> None:
    assert effect(DENY_SECRETS, "read", project, path="src/a.py") == "allow"
    assert effect(DENY_SECRETS, "read", project, path=".envrc") == "allow"


def test_the_folders_above_the_project_do_not_count_for_a_bare_name(project: Path) -> None:
    assert (
        effect(rules({"effect": "deny", "path": "project"}, mode="allow"), "read", project, path="notes.txt") == "allow"
    )


def test_a_home_directory_is_meant_by_a_tilde(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project / "src"))
    options = rules({"effect": "deny", "path": "~/a.py"}, mode="allow")
    assert effect(options, "read", project, path="src/a.py") == "deny"
    assert effect(options, "read", project, path="~/a.py") == "deny"
    assert effect(options, "read", project, path="~/other.py") == "allow"


def test_a_search_that_may_read_denied_files_is_asked_about(project: Path) -> None:
    assert effect(DENY_SECRETS, "grep", project, pattern="x") == "ask"
    assert effect(DENY_SECRETS, "grep", project, pattern="x", path="secrets") == "deny"
    assert effect(DENY_SECRETS, "grep", project, pattern="x", path="src/a.py") == "allow"
    assert effect(DENY_SECRETS, "ls", project) == "allow"
    below = rules({"effect": "deny", "path": "secrets/**"}, mode="allow")
    assert effect(below, "grep", project, pattern="x", path="src") == "allow"


def test_tools_of_plugins_are_looked_at_by_the_usual_names_of_arguments(project: Path) -> None:
    assert effect(DENY_SECRETS, "open", project, file_path="secrets/key") == "deny"
    assert effect(DENY_SECRETS, "open", project, paths=["src/a.py", "secrets/key"]) == "deny"
    assert effect(DENY_SECRETS, "open", project, url="secrets/key") == "allow"


ROOTS: dict[str, Any] = {"mode": "allow", "roots": ["."]}


@pytest.mark.parametrize("path", ["notes.txt", "src/new/x", ".", "link/../notes.txt", "../project/notes.txt"])
def test_files_in_the_roots_are_left_to_the_rules(project: Path, path: str) -> None:
    assert effect(ROOTS, "write", project, path=path) == "allow"


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "link/file", "link", "~/x", "src/../../x", "../projects", "\0"]
)
def test_files_outside_of_the_roots_are_asked_about_or_denied(project: Path, path: str) -> None:
    assert effect(ROOTS, "write", project, path=path) == "ask"
    verdict = judged({**ROOTS, "outside": "deny"}, "write", project, path=path)
    assert (verdict.effect, verdict.outside) == ("deny", True)


def test_only_a_rule_with_a_path_allows_a_file_outside(project: Path) -> None:
    outside = str(project.parent / "outside" / "file")
    by_tool, by_path = {"effect": "allow", "tool": "read"}, {"effect": "allow", "path": outside}
    assert effect({**ROOTS, "rules": [by_tool]}, "read", project, path=outside) == "ask"
    assert effect({**ROOTS, "rules": [by_path]}, "read", project, path=outside) == "allow"
    assert effect({**ROOTS, "rules": [by_path], "outside": "deny"}, "read", project, path=outside) == "deny"


def test_what_is_denied_unless_it_is_allowed_stays_so_outside(project: Path) -> None:
    assert effect({**ROOTS, "mode": "deny"}, "read", project, path="/etc/passwd") == "deny"


def test_redirections_of_a_command_stay_in_the_roots(project: Path) -> None:
    assert effect(ROOTS, "bash", project, command="echo x > notes.txt") == "allow"
    assert effect(ROOTS, "bash", project, command="echo x > ../notes.txt") == "ask"
    assert effect(ROOTS, "bash", project, command="echo x > link/../x") == "ask"
    assert effect(ROOTS, "bash", project, command="echo x > link/file") == "ask"


def test_a_malformed_pattern_names_itself(project: Path) -> None:
    with pytest.raises(ConfigError, match=r"plugins\.permissions\.rules: Invalid glob pattern"):
        effect(rules({"effect": "deny", "path": "src/[a"}), "read", project, path="x")


def test_a_folder_whose_name_looks_like_a_pattern_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "[a]{b}*"
    folder.mkdir()
    allow = rules({"effect": "allow", "path": "src/**"})
    assert effect(allow, "read", folder, path="src/x") == "allow"
    assert effect(allow, "read", folder, path=os.path.join(tmp_path, "a", "src", "x")) == "deny"
