"""``pi sessions``: lists, shows, copies, exports and removes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pi_core import AssistantMessage, ImageContent, TextContent, ThinkingContent, UserMessage
from pi_core.cli import run
from pi_plugins.sessions.export import export_session
from pi_plugins.sessions.messages import BashExecutionMessage
from pi_plugins.sessions.session import Session

from .talking import assistant, result, user


@dataclass
class Done:
    code: int
    out: str
    err: str


Pi = Callable[..., Done]


@pytest.fixture
def pi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Pi:
    """Runs ``pi sessions`` in a folder of its own."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "agent"))
    monkeypatch.delenv("PI_CODING_AGENT_SESSION_DIR", raising=False)

    def ran(*arguments: str) -> Done:
        capsys.readouterr()
        code = run(["sessions", *arguments])
        return Done(code, *capsys.readouterr())

    return ran


@pytest.fixture
def talk(tmp_path: Path) -> Session:
    """A session of the folder that the command runs in."""
    work = os.path.realpath(tmp_path / "work")
    with Session.create(work, directory=tmp_path / "agent" / "sessions", id="abc-1") as session:
        session.append_model_change("p", "m")
        first = session.append_message(user("what is\nhere?"))
        session.append_message(assistant("", "c1"))
        session.append_message(result("c1", "a ``` b"))
        session.append_message(assistant("two files"))
        session.append_label(first.id, "start")
    return session


def test_sessions_of_the_folder_are_listed_and_those_of_others_on_demand(pi: Pi, tmp_path: Path, talk: Session) -> None:
    with Session.create("/elsewhere", directory=tmp_path / "agent" / "sessions", id="xyz") as other:
        other.append_message(user("far away"))
        other.append_session_info("named")
    assert talk.path is not None
    os.utime(talk.path, ns=(1, 1))
    mine = pi("list")
    assert re.fullmatch(r"abc-1  1970-01-01 00:00      4  what is here\?\n", mine.out)
    both = pi("list", "--all").out.splitlines()
    assert [line.split()[0] for line in both] == ["xyz", "abc-1"]
    assert both[0].endswith("/elsewhere  named")
    (first, second) = map(json.loads, pi("list", "--all", "--json").out.splitlines())
    assert (first["name"], first["messages"], first["cwd"], first["firstText"]) == (
        "named",
        1,
        "/elsewhere",
        "far away",
    )
    assert (second["path"], second["modified"]) == (str(talk.path), "1970-01-01T00:00:00.000Z")


def test_an_empty_list_says_where_it_looked(pi: Pi, tmp_path: Path) -> None:
    done = pi("--session-dir", "mine", "list")
    assert (done.code, done.out) == (0, "")
    assert str(tmp_path / "work" / "mine") in done.err


def test_the_file_is_found_by_the_beginning_of_its_id_or_its_path(pi: Pi, talk: Session) -> None:
    assert pi("path", "ab").out == f"{talk.path}\n"
    assert pi("path", "ABC").out == f"{talk.path}\n"
    assert pi("path", str(talk.path)).out == f"{talk.path}\n"
    missing = pi("path", "zzz")
    assert (missing.code, missing.out) == (1, "")
    assert "No session has an id that begins with 'zzz'" in missing.err
    assert "nowhere.jsonl does not exist" in pi("path", "nowhere.jsonl").err
    Path("notes.jsonl").write_text("notes", encoding="utf-8")
    assert "notes.jsonl is no session file" in pi("path", "notes.jsonl").err


def test_a_beginning_that_fits_several_lists_them_and_a_whole_id_is_one(pi: Pi, tmp_path: Path, talk: Session) -> None:
    with Session.create(talk.cwd, directory=tmp_path / "agent" / "sessions", id="abc-12") as other:
        other.append_message(user("x"))
    assert "2 sessions have an id that begins with 'abc': abc-1, abc-12" in pi("path", "abc").err
    assert pi("path", "abc-1").out == f"{talk.path}\n"


def test_settings_say_where_sessions_are_and_what_is_wrong_with_them_is_told(pi: Pi, tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    text = '{"sessionDir": "~/elsewhere", "theme": 5}'
    (tmp_path / "agent" / "settings.json").write_text(text, encoding="utf-8")
    done = pi("list")
    assert "settings.json:1" in done.err
    assert f"is in {Path.home() / 'elsewhere'}" in done.err


def test_what_was_said_is_shown_as_markdown(pi: Pi, talk: Session) -> None:
    shown = pi("show", "abc").out
    assert shown.startswith("# Session abc-1\n")
    assert "## User [start]\n\nwhat is\nhere?\n" in shown
    assert '```\nt {\n  "n": 1\n}\n```' in shown
    assert "## Result of t\n\n````\na ``` b\n````\n" in shown
    assert [json.loads(line)["id"] for line in pi("show", "abc", "--json").out.splitlines()] == [
        one.id for one in talk.entries
    ]


def test_problems_of_a_file_go_to_stderr(pi: Pi, talk: Session) -> None:
    assert talk.path is not None
    with talk.path.open("a", encoding="utf-8") as file:
        file.write('{"torn')
    done = pi("show", "abc")
    assert done.code == 0
    assert done.err == f"{talk.path}:8: the line is damaged and skipped\n"


def test_branches_are_shown_with_the_position(pi: Pi, talk: Session) -> None:
    assert talk.path is not None
    with Session.open(talk.path) as session:
        session.branch(session.entries[1].id)
        session.append_message(user("or so"))
        session.append_message(assistant("yes"))
    lines = pi("tree", "abc").out.splitlines()
    assert [line[11:] for line in lines] == [
        "Model: p/m",
        "User: what is here?",
        '  p/m: t { "n": 1 }',
        "  Result of t: a ``` b",
        "  p/m: two files",
        "  label",
        "  User: or so",
        "  p/m: yes",
    ]
    assert [line[0] for line in lines] == [" "] * 7 + ["*"]


def test_a_copy_goes_to_this_folder(pi: Pi, tmp_path: Path, talk: Session) -> None:
    (tmp_path / "other").mkdir()
    os.chdir(tmp_path / "other")
    done = pi("fork", "abc", "--at", talk.entries[1].id, "--id", "copy")
    with Session.open(Path(done.out.strip())) as copy:
        assert (copy.id, copy.cwd) == ("copy", os.path.realpath(tmp_path / "other"))
        assert [one.to_json() for one in copy.entries] == [one.to_json() for one in talk.entries[:2]]
    assert "nothing to copy" in pi("fork", "abc", "--at", talk.entries[0].id).err
    assert "no entry 'nope'" in pi("fork", "abc", "--at", "nope").err


def test_removing_asks_and_leaves_what_is_being_written(pi: Pi, talk: Session) -> None:
    assert talk.path is not None
    with Session.open(talk.path):
        refused = pi("rm", "abc", "--yes")
        assert refused.code == 1
        assert "writes this session" in refused.err
    assert talk.path.exists()
    assert pi("rm", "abc", "--yes").code == 0
    assert not talk.path.exists()


def test_an_export_is_written_by_the_ending_of_its_file(pi: Pi, talk: Session) -> None:
    assert pi("export", "abc", "out.md").out == "out.md\n"
    assert Path("out.md").read_text(encoding="utf-8") == pi("show", "abc").out
    assert pi("export", "abc", "out.json").code == 0
    document = json.loads(Path("out.json").read_text(encoding="utf-8"))
    assert document["entries"] == [one.to_json() for one in talk.entries]
    assert document["leafId"] == talk.leaf_id
    assert pi("export", "abc", "--format", "json").out == Path("out.json").read_text(encoding="utf-8")
    assert talk.path is not None
    name = f"pi-session-{talk.path.stem}.html"
    assert pi("export", "abc").out == f"{name}\n"
    assert pi("export", "abc", ".").out == f"{name}\n"
    assert "ends in one of .html, .md, .json" in pi("export", "abc", "out.pdf").err
    assert not Path("out.pdf").exists()
    assert "Cannot write" in pi("export", "abc", "out.md/x.md").err


def test_a_page_runs_nothing_and_loads_nothing(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>\" onload='x'"
    with Session.create(hostile, directory=tmp_path) as session:
        session.append_session_info(hostile)
        picture = ImageContent(data="iVBORw0=", mime_type="image/png")
        odd = [ImageContent(data='x" onerror=', mime_type="image/png"), ImageContent(data="AA==", mime_type=hostile)]
        session.append_message(UserMessage(content=[TextContent(text=hostile), picture, *odd], timestamp=1))
        session.append_message(
            AssistantMessage(
                content=[ThinkingContent(thinking=hostile)],
                api="a",
                provider=hostile,
                model="m",
                stop_reason="error",
                error_message=hostile,
            )
        )
        session.append_message(BashExecutionMessage(command=hostile))
        session.append_custom_message(hostile, hostile)
        session.append_custom_message("hidden", "not shown", display=False)
        session.append_compaction(hostile, None, 1)
        session.append_branch_summary(None, hostile)
        session.append_label(session.entries[0].id, hostile)
    assert session.path is not None
    page = export_session(session.path, tmp_path / "a.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 10
    assert re.findall(r"<img [^>]*>", page) == ['<img alt="image" src="data:image/png;base64,iVBORw0=">']
    assert "default-src 'none'" in page
    assert "not shown" not in page
    assert "<details><summary>Thinking</summary>" in page
