"""The file of a session: when it is made, what is in it, and who may write it."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pi_core import ConfigError, ImageContent, TextContent, ToolResultMessage
from pi_plugins.sessions.entries import Entry
from pi_plugins.sessions.session import Session

from .talking import HEADER, assistant, entry, result, texts, user, written


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def begun(folder: Path) -> Session:
    session = Session.create("/work", directory=folder)
    session.append_message(user("hi"))
    return session


def path_of(session: Session) -> Path:
    assert session.path is not None
    return session.path


def test_there_is_no_file_before_the_first_message_and_all_of_it_afterwards(tmp_path: Path) -> None:
    with Session.create("/work", directory=tmp_path) as session:
        session.append_model_change("p", "m")
        session.append_custom("x", {"a": 1})
        assert list(tmp_path.iterdir()) == []
        assert len(session.unsaved) == 2
        session.append_message(user("hi"))
        found = lines(path_of(session))
        assert session.unsaved == ()
    assert [line["type"] for line in found] == ["session", "model_change", "custom", "message"]
    assert found[0] == {
        "type": "session",
        "version": 3,
        "id": session.id,
        "timestamp": session.header.timestamp,
        "cwd": "/work",
    }
    assert found[1] | {"id": "", "timestamp": ""} == {
        "type": "model_change",
        "id": "",
        "parentId": None,
        "timestamp": "",
        "provider": "p",
        "modelId": "m",
    }
    assert [line["parentId"] for line in found[2:]] == [line["id"] for line in found[1:-1]]


def test_each_entry_is_one_line_that_is_there_when_the_method_returns(tmp_path: Path) -> None:
    session = begun(tmp_path)
    for number in range(3):
        before = path_of(session).read_bytes()
        entry = session.append_message(assistant(f"a {number}\nb"))
        after = path_of(session).read_bytes()
        assert after.startswith(before)
        assert json.loads(after[len(before) :]) == entry.to_json()
        assert after.count(b"\n") == before.count(b"\n") + 1
    session.close()


@pytest.mark.skipif(os.name == "nt", reason="POSIX modes")
def test_only_the_user_can_read_the_file_and_its_folder(tmp_path: Path) -> None:
    with begun(tmp_path / "sessions") as session:
        path = path_of(session)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_that_is_there_already_is_not_taken_for_a_new_session(tmp_path: Path) -> None:
    first = Session.create("/work", directory=tmp_path, id="same")
    second = Session(first.header, first.path)
    with first:
        first.append_message(user("one"))
        with pytest.raises(ConfigError, match="File exists"):
            second.append_message(user("two"))
    assert texts(Session.open(path_of(first), read_only=True).projection().messages) == ["one"]


@pytest.mark.parametrize("wrong", ["", "a b", "../x", "-a", "a-", "ä", "x" * 200])
def test_an_id_must_be_fit_for_a_file_name(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(ConfigError, match="cannot be the id of a session"):
        Session.create("/work", directory=tmp_path, id=wrong)


def test_a_second_writer_is_refused_and_told_who_has_it_and_a_reader_is_not(tmp_path: Path) -> None:
    with begun(tmp_path) as session:
        with pytest.raises(ConfigError, match=r"writes this session.*--fork"):
            Session.open(path_of(session))
        assert texts(Session.open(path_of(session), read_only=True).projection().messages) == ["hi"]
        copy = Session.fork(path_of(session), "/elsewhere", directory=tmp_path)
        copy.close()
    with Session.open(path_of(session)) as again:
        assert again.leaf_id == session.leaf_id


WRITER = """
import sys
from pathlib import Path
from pi_plugins.sessions.session import Session
session = Session.open(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.readline()
session.append_custom("x", "y" * 1000)
print("appended", flush=True)
sys.stdin.readline()
"""


def test_the_lock_of_another_process_holds_until_it_dies(tmp_path: Path) -> None:
    with begun(tmp_path) as session:
        path = path_of(session)
    other = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdin is not None
    assert other.stdout is not None
    try:
        assert other.stdout.readline() == "open\n"
        with pytest.raises(ConfigError, match=str(other.pid) if sys.platform == "linux" else "writes this session"):
            Session.open(path)
        other.stdin.write("\n")
        other.stdin.flush()
        assert other.stdout.readline() == "appended\n"
    finally:
        other.kill()
        other.wait()
        other.stdin.close()
        other.stdout.close()
    with Session.open(path) as again:
        assert again.entries[-1].type == "custom"
        assert again.problems == []


def test_a_session_that_was_opened_for_reading_only_or_closed_takes_nothing(tmp_path: Path) -> None:
    with begun(tmp_path) as session:
        reader = Session.open(path_of(session), read_only=True)
        before = path_of(session).read_bytes()
        with pytest.raises(ConfigError, match="opened for reading only"):
            reader.append_message(user("no"))
        assert len(reader.entries) == 1
    with pytest.raises(ConfigError, match="is closed"):
        session.append_message(user("no"))
    assert path_of(session).read_bytes() == before


FULL = """
import resource, signal, sys
from pathlib import Path
from pi_core import ConfigError
from pi_plugins.sessions.session import Session
from tests_talking import user

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
session = Session.open(Path(sys.argv[1]))
size = session.path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
for text in ("lost? " + "x" * 500, "y" * 500):
    try:
        session.append_message(user(text))
    except ConfigError as error:
        print(error)
    assert session.path.stat().st_size == size
print(len(session.unsaved), [entry.type for entry in session.unsaved])
heard = []
session.on_append = heard.append
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
session.append_message(user("room again"))
print(len(session.unsaved), len(heard))
"""


@pytest.mark.skipif(os.name == "nt", reason="limits of POSIX")
def test_what_a_full_disk_refuses_stays_in_memory_and_is_written_when_there_is_room(tmp_path: Path) -> None:
    with begun(tmp_path) as session:
        path = path_of(session)
    talking = Path(__file__).with_name("talking.py")
    (tmp_path / "tests_talking.py").write_text(talking.read_text(encoding="utf-8"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    said = done.stdout.splitlines()
    assert said[0].startswith(f"Cannot write the session file {path}: File too large; 1 entry is only in memory")
    assert "2 entries are only in memory" in said[1]
    assert said[2:] == ["2 ['message', 'message']", "0 3"]
    with Session.open(path) as again:
        assert again.problems == []
        assert [text[:5] for text in texts(again.projection().messages)] == ["hi", "lost?", "yyyyy", "room "]


def test_where_a_failed_write_cannot_be_taken_back_the_next_entry_has_a_line_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = begun(tmp_path)
    write = os.write
    written: list[int] = []

    def half(descriptor: int, data: memoryview) -> int:
        if written:
            raise OSError(errno.EIO, "Input/output error")
        written.append(write(descriptor, data[:20]))
        return 20

    def refuse(descriptor: int, size: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half)
        patch.setattr(os, "ftruncate", refuse)
        with pytest.raises(ConfigError, match="Input/output error; 1 entry is only in memory"):
            session.append_message(assistant("a"))
    session.append_message(user("b"))
    session.close()
    again = Session.open(path_of(session), read_only=True)
    assert texts(again.projection().messages) == ["hi", "a", "b"]
    assert again.problems == [f"{path_of(session)}:3: the line is damaged and skipped"]


def test_a_file_that_cannot_be_made_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("", encoding="utf-8")
    session = Session.create("/work", directory=tmp_path / "taken")
    with pytest.raises(ConfigError, match="Cannot create the session file"):
        session.append_message(user("hi"))
    assert [entry.role for entry in session.unsaved] == ["user"]
    assert texts(session.projection().messages) == ["hi"]


def test_a_file_without_a_final_line_end_gets_one_before_the_next_entry(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", entry(1, None))
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    with Session.open(path) as session:
        session.append_message(assistant("next"))
    with Session.open(path) as session:
        assert session.problems == []
        assert texts(session.projection().messages) == ["m1", "next"]


def test_opening_a_file_does_not_change_it(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", entry(1, None), b'{"torn', b"\0\0\0")
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    before = path.read_bytes()
    with Session.open(path) as session:
        session.projection()
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"hello\n", b'{"a": 1}\n', b"[1]\n", b"\xff\xfe\0", b'{"type":"message"}\n']
)
def test_a_file_that_is_no_session_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_bytes(content)
    for read_only in (True, False):
        with pytest.raises(ConfigError, match=f"{path} is no session file"):
            Session.open(path, read_only=read_only)
    assert path.read_bytes() == content


def test_a_version_of_the_future_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", header={**HEADER, "version": 4})
    with pytest.raises(ConfigError, match="version 4"):
        Session.open(path)


def test_a_header_with_a_wrong_field_names_it(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", header={**HEADER, "cwd": 5})
    with pytest.raises(ConfigError, match=f"{path}:1: the session header has a wrong cwd"):
        Session.open(path)


def test_what_utf8_or_json_cannot_hold_is_replaced_in_the_file(tmp_path: Path) -> None:
    with begun(tmp_path) as session:
        odd = ToolResultMessage(
            tool_call_id="c",
            tool_name="t",
            content=[TextContent(text="half \ud99c and pair \ud83d\ude00")],
            details={"ratio": float("nan"), "\udcaf": [float("inf"), 1.5]},
        )
        session.append_message(odd)
        session.append_message(user("line\u2028end"))
    raw = path_of(session).read_bytes()
    assert b"NaN" not in raw
    found = lines_of(raw)
    message = found[2]["message"]
    assert message["content"][0]["text"] == "half \ufffd and pair \U0001f600"
    assert message["details"] == {"ratio": None, "\ufffd": [None, 1.5]}
    assert found[3]["message"]["content"][0]["text"] == "line\u2028end"


def lines_of(raw: bytes) -> list[dict[str, dict[str, list[dict[str, str]]]]]:
    return [json.loads(line) for line in raw.split(b"\n") if line]


def test_durable_sessions_force_every_entry_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[int] = []
    monkeypatch.setattr(os, "fsync", forced.append)
    for durable, expected in ((True, 3), (False, 1)):
        forced.clear()
        with Session.create("/work", directory=tmp_path, durable=durable) as session:
            session.append_message(user("a"))
            session.append_message(assistant("b"))
        assert len(forced) == expected


def test_entries_are_announced_once_in_order(tmp_path: Path) -> None:
    heard: list[Entry] = []
    with Session.create("/work", directory=tmp_path) as session:
        session.on_append = heard.append
        made = [session.append_model_change("p", "m"), session.append_message(user("hi"))]
        made.append(session.append_message(assistant("", "c1")))
        made.append(session.append_message(result("c1")))
    assert heard == made


def test_images_and_unknown_blocks_survive(tmp_path: Path) -> None:
    with begun(tmp_path) as session:
        session.append_message(
            ToolResultMessage(
                tool_call_id="c", tool_name="t", content=[ImageContent(data="eA==", mime_type="image/png")]
            )
        )
        expected = [one.to_json() for one in session.entries]
    with Session.open(path_of(session)) as again:
        again.projection()
        assert [one.to_json() for one in again.entries] == expected
