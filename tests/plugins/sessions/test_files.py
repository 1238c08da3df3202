"""Where sessions are, and how one is found again."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path

import pytest

from pi_core import ConfigError
from pi_plugins.config.settings import Settings
from pi_plugins.sessions._ids import uuid7
from pi_plugins.sessions.files import find_session, latest_session, project_folder, sessions_dir
from pi_plugins.sessions.listing import list_sessions
from pi_plugins.sessions.session import Session

from .talking import entry, user, written


def made(directory: Path, session_id: str, cwd: str = "/work", modified: int = 1) -> Path:
    with Session.create(cwd, directory=directory, id=session_id) as session:
        session.append_message(user(session_id))
    assert session.path is not None
    os.utime(session.path, ns=(modified, modified))
    return session.path


@pytest.mark.parametrize(
    ("cwd", "name"),
    [("/home/a/b c", "--home-a-b c--"), ("C:\\a\\b", "--C--a-b--"), ("/", "----"), ("relative", "--relative--")],
)
def test_a_folder_has_sessions_in_one_named_after_it(cwd: str, name: str) -> None:
    assert project_folder(Path("/s"), cwd) == Path("/s") / name


def test_names_of_files_sort_by_the_time_they_were_begun(tmp_path: Path) -> None:
    session = Session.create("/work", directory=tmp_path)
    assert session.path is not None
    begun, _, rest = session.path.name.partition("_")
    assert rest == f"{session.id}.jsonl"
    assert begun == session.header.timestamp.replace(":", "-").replace(".", "-")


def test_the_folder_of_sessions_is_the_first_that_is_named(tmp_path: Path) -> None:
    environ = {"PI_CODING_AGENT_DIR": str(tmp_path), "HOME": "/home/u"}
    settings = Settings(session_dir="~/from-settings")
    variable = {**environ, "PI_CODING_AGENT_SESSION_DIR": "from-variable"}
    cwd = Path("/srv")
    assert sessions_dir(cwd, environ=environ) == tmp_path / "sessions"
    assert sessions_dir(cwd, environ=environ, agent_dir=Path("/a")) == Path("/a/sessions")
    assert sessions_dir(cwd, settings, environ) == Path("/home/u/from-settings")
    assert sessions_dir(cwd, settings, variable) == Path("/srv/from-variable")
    assert sessions_dir(cwd, settings, variable, directory="/named") == Path("/named")


def test_the_latest_session_of_a_folder_is_the_one_written_last(tmp_path: Path) -> None:
    assert latest_session("/work", tmp_path) is None
    made(tmp_path, "a", modified=3)
    newest = made(tmp_path, "b", modified=5)
    made(tmp_path, "c", modified=4)
    made(tmp_path, "d", cwd="/other", modified=9)
    (newest.parent / "empty.jsonl").write_text("", encoding="utf-8")
    (newest.parent / "notes.jsonl").write_text("notes\n", encoding="utf-8")
    assert latest_session("/work", tmp_path) == newest
    assert [info.ref.id for info in list_sessions("/work", tmp_path)] == ["b", "c", "a"]


def test_sessions_of_the_folder_come_before_those_of_others(tmp_path: Path) -> None:
    cwd = Path("/work")
    here, there = made(tmp_path, "abc-1"), made(tmp_path, "abd-2", cwd="/other")
    assert find_session("ab", cwd, tmp_path) == here
    assert find_session("abd", cwd, tmp_path) == there
    assert find_session("abc-1", cwd, tmp_path, exact=True) == here
    assert find_session("abd-2", cwd, tmp_path, exact=True, missing_ok=True) is None
    with pytest.raises(ConfigError, match="No session has the id 'abc'"):
        find_session("abc", cwd, tmp_path, exact=True)
    with pytest.raises(ConfigError, match="No session"):
        find_session("", cwd, tmp_path)


def test_files_that_lie_in_the_folder_itself_are_found_too(tmp_path: Path) -> None:
    path = written(tmp_path / "flat.jsonl", entry(1, None))
    assert latest_session("/work", tmp_path) == path
    assert latest_session("/other", tmp_path) is None
    assert find_session("s1", Path("/other"), tmp_path) == path


def test_ids_are_uuids_of_version_7_that_sort_by_time() -> None:
    before = time.time_ns() // 1_000_000
    found = uuid.UUID(uuid7())
    after = time.time_ns() // 1_000_000
    assert (found.version, found.variant) == (7, uuid.RFC_4122)
    assert before <= found.int >> 80 <= after
    assert uuid7() != uuid7()
