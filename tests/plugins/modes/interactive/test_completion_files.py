"""The files of a project: which are found, in which order, how often the folder is read, and how many at most."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_plugins.modes.interactive import files
from pi_plugins.modes.interactive.files import ProjectFiles


def fill(folder: Path, *names: str) -> ProjectFiles:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("", encoding="utf-8")
    made = ProjectFiles(folder)
    made.wait()
    return made


def test_the_nearest_name_comes_first(tmp_path: Path) -> None:
    found = fill(tmp_path, "deep/er/test.py", "a/my_test.py", "test/x.py", "t/e/s/t.py", "test.md")
    assert found.search("test") == [
        "test/",
        "test.md",
        "deep/er/test.py",
        "a/my_test.py",
        "test/x.py",
        "t/e/s/t.py",
    ]


def test_letters_need_only_follow_each_other(tmp_path: Path) -> None:
    assert fill(tmp_path, "src/main_window.py", "other.py").search("mwin") == ["src/main_window.py"]


def test_case_does_not_count(tmp_path: Path) -> None:
    assert fill(tmp_path, "README.md").search("readME") == ["README.md"]


def test_what_git_ignores_is_left_out_in_a_repository_or_not(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("build/\n*.log\n!keep.log\n", encoding="utf-8")
    found = fill(tmp_path, "build/a.py", "x.log", "keep.log", ".git/config")
    assert sorted(found.search("")) == [".gitignore", "keep.log"]


def test_a_limit_keeps_the_nearest(tmp_path: Path) -> None:
    found = fill(tmp_path, *(f"b{number}/x.py" for number in range(9)), "x.py")
    assert found.search("x.py", limit=2) == ["x.py", "b0/x.py"]


def test_a_longer_text_is_looked_for_in_what_the_shorter_one_found(tmp_path: Path) -> None:
    found = fill(tmp_path, "abc.py", "abd.py", "x.py")
    assert found.search("ab") == ["abc.py", "abd.py"]
    assert found.search("abd") == ["abd.py"]
    assert found.search("x") == ["x.py"]


def test_the_folder_is_read_again_after_a_while(tmp_path: Path) -> None:
    now = 0.0
    (tmp_path / "a.py").write_text("", encoding="utf-8")
    found = ProjectFiles(tmp_path, clock=lambda: now)
    found.wait()
    (tmp_path / "b.py").write_text("", encoding="utf-8")
    assert found.search("py") == ["a.py"]
    now = 60.0
    found.wait()
    assert found.search("py") == ["a.py", "b.py"]


def test_a_project_of_many_files_is_looked_through_up_to_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_FILES", 3)
    assert fill(tmp_path, "a", "b", "c", "d").search("") == ["a", "b", "c"]


def test_a_search_that_nobody_waits_for_ends(tmp_path: Path) -> None:
    assert fill(tmp_path, "a").search("a", stop=lambda: True) == []
    assert fill(tmp_path, "a").search("a") == ["a"]


def test_a_folder_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    found = ProjectFiles(tmp_path / "nowhere")
    found.wait()
    assert found.search("a") == []
