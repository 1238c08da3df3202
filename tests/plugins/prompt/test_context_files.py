"""Context files: which there are, in which order, and which are left out."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pi_plugins.prompt import Resources
from pi_plugins.prompt.context_files import NAMES

from .conftest import Home


def texts(resources: Resources) -> list[str]:
    return [file.text for file in resources.context_files]


def test_the_agents_own_comes_first_and_the_nearest_last(home: Home) -> None:
    home.write("work/a/b/AGENTS.md", "b")
    home.write("work/AGENTS.md", "work")
    home.write("AGENTS.md", "home")
    home.write(".pi/agent/AGENTS.md", "agent")
    assert texts(home.load(home.project / "a" / "b")) == ["agent", "home", "work", "b"]


@pytest.mark.parametrize("present", range(len(NAMES)))
def test_the_first_name_counts_for_a_folder(home: Home, present: int) -> None:
    for name in NAMES[present:]:
        home.write(f"work/{name}", name)
    (found,) = home.load().context_files
    assert found.path.name == NAMES[present]


def test_an_empty_name_does_not_hide_the_next_folder(home: Home) -> None:
    (home.project / "AGENTS.md").mkdir()
    home.write("work/CLAUDE.md", "claude")
    resources = home.load()
    assert (texts(resources), resources.warnings) == (["claude"], ())


def test_what_cannot_be_read_is_said_and_the_next_name_counts(home: Home) -> None:
    home.write("work/AGENTS.md").write_bytes(b"\xff\xfe\xff")
    home.write("work/CLAUDE.md", "claude")
    home.write("AGENTS.md", "home")
    resources = home.load()
    assert texts(resources) == ["home", "claude"]
    (warning,) = resources.warnings
    assert str(home.project / "AGENTS.md") in warning


def test_a_link_to_nothing_is_said(home: Home) -> None:
    (home.project / "AGENTS.md").symlink_to("gone.md")
    resources = home.load()
    assert resources.warnings == (f"{home.project}/AGENTS.md cannot be read: No such file or directory",)


def test_a_folder_without_permission_is_said_and_the_rest_is_read(
    closed_home: tuple[Home, Callable[[Path], None]],
) -> None:
    home, close = closed_home
    home.write("AGENTS.md", "home")
    home.write("work/AGENTS.md", "work")
    close(home.project)
    resources = home.load()
    assert texts(resources) == ["home"]
    assert resources.warnings == (f"{home.project} cannot be searched for context files: Permission denied",)


def test_a_file_that_two_folders_share_is_read_once(home: Home) -> None:
    home.write("AGENTS.md", "home")
    (home.project / "AGENTS.md").symlink_to("../AGENTS.md")
    assert texts(home.load()) == ["home"]


def test_in_the_agents_own_folder_its_file_is_read_once(home: Home) -> None:
    home.write(".pi/agent/AGENTS.md", "agent")
    assert texts(home.load(home.agent)) == ["agent"]


def test_they_need_no_trust(home: Home) -> None:
    home.write("work/AGENTS.md", "work")
    assert texts(home.load(trusted=False)) == ["work"]


def test_they_can_be_left_out(home: Home) -> None:
    home.write("work/AGENTS.md").write_bytes(b"\xff")
    resources = home.load(no_context_files=True)
    assert (resources.context_files, resources.warnings) == ((), ())


def test_any_name_and_text_of_unicode(home: Home) -> None:
    home.write("work/プロジェクト 🙂/AGENTS.md", "日本語\u2028🙂")
    assert texts(home.load(home.project / "プロジェクト 🙂")) == ["日本語\u2028🙂"]


class TestWorktrees:
    @pytest.fixture
    def git(self, home: Home) -> Callable[..., None]:
        def run(*arguments: str, cwd: Path = home.project) -> None:
            identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
            environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
            subprocess.run(
                ["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True, env=environment, text=True
            )

        run("init", "--quiet")
        home.write("work/AGENTS.md", "tracked")
        home.write("work/packages/AGENTS.md", "tracked package")
        run("add", ".")
        run("commit", "--quiet", "-m", "x")
        return run

    def test_a_linked_one_inside_its_checkout_has_its_own_version(self, home: Home, git: Callable[..., None]) -> None:
        git("worktree", "add", "--quiet", "trees/one")
        home.write("work/trees/one/AGENTS.md", "changed")
        home.write("work/trees/AGENTS.md", "all trees")
        assert texts(home.load(home.project / "trees" / "one" / "packages")) == [
            "all trees", "changed", "tracked package",
        ]  # fmt: skip

    def test_a_folder_in_one_that_is_called_as_itself_changes_nothing(
        self, home: Home, git: Callable[..., None]
    ) -> None:
        git("worktree", "add", "--quiet", "trees/one")
        home.write("work/trees/one/trees/one/AGENTS.md", "inner")
        assert texts(home.load(home.project / "trees" / "one")) == ["tracked"]

    def test_what_only_the_checkout_has_is_read(self, home: Home, git: Callable[..., None]) -> None:
        git("worktree", "add", "--quiet", "trees/one")
        home.write("work/AGENTS.override.md", "mine")
        assert texts(home.load(home.project / "trees" / "one")) == ["mine", "tracked"]

    def test_one_elsewhere_is_a_folder_like_others(self, home: Home, git: Callable[..., None]) -> None:
        git("worktree", "add", "--quiet", str(home.path / "elsewhere"))
        assert texts(home.load(home.path / "elsewhere")) == ["tracked"]

    def test_the_checkout_itself_is_a_folder_like_others(self, home: Home, git: Callable[..., None]) -> None:
        assert texts(home.load(home.project / "packages")) == ["tracked", "tracked package"]

    def test_a_submodule_is_no_worktree(self, home: Home, git: Callable[..., None]) -> None:
        git("init", "--quiet", str(home.path / "library"))
        home.write("library/AGENTS.md", "library")
        git("add", ".", cwd=home.path / "library")
        git("commit", "--quiet", "-m", "x", cwd=home.path / "library")
        git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(home.path / "library"), "sub")
        assert texts(home.load(home.project / "sub")) == ["tracked", "library"]

    @pytest.mark.parametrize("content", ["gitdir: /nowhere", "", "gitdir: \0", "gitdir: ../.."])
    def test_a_broken_marker_changes_nothing(self, home: Home, content: str) -> None:
        home.write("work/AGENTS.md", "work")
        home.write("work/sub/.git", content)
        home.write("work/sub/AGENTS.md", "sub")
        assert texts(home.load(home.project / "sub")) == ["work", "sub"]
