"""Damaged session files: what is whole is used, what is not is named, nothing is deleted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pi_core import ConfigError
from pi_plugins.sessions.session import Session

from .talking import HEADER, assistant, entry, result, texts, user, written


def read(path: Path) -> Session:
    return Session.open(path, read_only=True)


def line(number: int, parent: int | None) -> bytes:
    return json.dumps(entry(number, parent)).encode()


def test_a_file_cut_at_any_byte_loses_at_most_the_line_that_was_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # hundreds of files, and no machine dies here
    with Session.create("/work", directory=tmp_path) as session:
        for number in range(4):
            session.append_message(user(f"héllo {number}"))
        session.append_message(assistant("", "c1", "c2"))
        session.append_message(result("c1", "😀"))
        session.append_message(result("c2"))
    assert session.path is not None
    data = session.path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(data) if byte == 0x0A]
    cut = tmp_path / "cut.jsonl"
    for size in range(ends[-4], len(data) + 1):
        cut.write_bytes(data[:size])
        with Session.open(cut) as found:
            whole = sum(end - 1 <= size for end in ends) - 1
            assert [one.id for one in found.entries] == [one.id for one in session.entries[:whole]]
            torn = size - max(end for end in (0, *ends) if end <= size)
            assert len(found.problems) == (torn > 0 and size not in [end - 1 for end in ends])
            found.append_custom("x", "next")
        with Session.open(cut) as found:
            assert [one.id for one in found.entries[:-1]] == [one.id for one in session.entries[:whole]]
            assert found.entries[-1].type == "custom"
            assert found.entries[-1].parent_id == found.entries[-2].id


def test_a_whole_record_after_a_torn_one_is_used(tmp_path: Path) -> None:
    torn = line(2, 1)[:60]
    path = written(tmp_path / "a.jsonl", entry(1, None), torn + line(3, 1), entry(4, 3))
    session = read(path)
    assert texts(session.projection().messages) == ["m1", "m3", "m4"]
    assert session.problems == [f"{path}:3: the line is damaged; 1 whole record in it is used"]


def test_two_records_in_one_line_are_both_used(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", entry(1, None), line(2, 1) + line(3, 2))
    session = read(path)
    assert texts(session.projection().messages) == ["m1", "m2", "m3"]
    assert session.problems == [f"{path}:3: the line holds more than one record; 2 whole records in it are used"]


def test_a_header_that_the_first_entry_was_joined_to_is_used(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", entry(2, 1))
    path.write_bytes(json.dumps(HEADER).encode() + line(1, None) + b"\n" + line(2, 1) + b"\n")
    session = read(path)
    assert (session.id, texts(session.projection().messages)) == ("s1", ["m1", "m2"])
    assert session.problems == [f"{path}:1: the line holds more than one record; 2 whole records in it are used"]


def test_a_piece_of_a_message_is_no_record(tmp_path: Path) -> None:
    block = b'{"type":"toolCall","id":"c1","name":"t","arguments":{}}'
    path = written(tmp_path / "a.jsonl", entry(1, None), b'{"type":"message","id":"x","message":{"content":[' + block)
    session = read(path)
    assert [one.type for one in session.entries] == ["message"]
    assert session.problems == [f"{path}:3: the line is damaged and skipped"]


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (b"\0\0\0\0", "is damaged and skipped"),
        (b"nonsense", "is damaged and skipped"),
        (b"[" * 5000, "is damaged and skipped"),
        (b"5", "is no JSON object; it is skipped"),
        (b'{"type":"message"}', "has no id; it is skipped"),
        (b'{"id":"1"}', "has no type; it is skipped"),
        (b'{"type":"message","id":7}', "has no id; it is skipped"),
    ],
)
def test_a_damaged_line_costs_no_other(tmp_path: Path, damage: bytes, problem: str) -> None:
    path = written(tmp_path / "a.jsonl", entry(1, None), damage, entry(2, 1))
    session = read(path)
    assert texts(session.projection().messages) == ["m1", "m2"]
    assert session.problems == [f"{path}:3: the line {problem}"]


def test_nul_bytes_around_a_record_do_not_cost_it(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", entry(1, None), b"\0" * 40 + line(2, 1) + b"\0")
    assert texts(read(path).projection().messages) == ["m1", "m2"]


def test_what_followed_a_lost_entry_follows_the_one_before_it(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", entry(1, None), entry(2, 1), b"lost", entry(4, 3), entry(5, 4))
    session = read(path)
    assert texts(session.projection().messages) == ["m1", "m2", "m4", "m5"]
    assert session.problems[1] == f"{path}:5: its parent 00000003 is no earlier entry; it now follows 00000002"


def test_parents_that_make_a_circle_or_are_no_ids_are_named(tmp_path: Path) -> None:
    own = {**entry(1, None), "parentId": "00000001"}
    odd = {**entry(2, None), "parentId": ["x"]}
    path = written(tmp_path / "a.jsonl", own, odd, entry(3, 4), entry(4, 3))
    session = read(path)
    assert texts(session.projection().messages) == ["m1", "m2", "m3", "m4"]
    assert len(session.problems) == 3


def test_of_two_entries_with_one_id_the_first_counts(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", entry(1, None), entry(1, None), entry(2, 1))
    session = read(path)
    assert texts(session.projection().messages) == ["m1", "m2"]
    assert session.problems == [f"{path}:3: an earlier line has the same id 00000001; this one is skipped"]


def test_bytes_that_are_no_utf8_and_half_pairs_are_replaced(tmp_path: Path) -> None:
    broken = line(1, None).replace(b"m1", b"a\xffb")
    half = line(2, 1).replace(b"m2", rb"c\ud99cd \ud83d\ude00")
    path = written(tmp_path / "a.jsonl", broken, half)
    assert texts(read(path).projection().messages) == ["a\ufffdb", "c\ufffdd \U0001f600"]


def test_a_byte_order_mark_and_line_ends_of_windows_are_no_damage(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", entry(1, None), b"", entry(2, 1))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    session = read(path)
    assert texts(session.projection().messages) == ["m1", "m2"]
    assert session.problems == []


def test_entries_and_fields_that_this_version_does_not_know_survive(tmp_path: Path) -> None:
    records = [
        entry(1, None, type="wormhole", depth=3, nothing=None),
        {**entry(2, 1), "extra": {"a": None}},
        entry(3, 2, type="compaction", summary="s", firstKeptEntryId="00000003", tokensBefore=1, later=[1]),
        entry(4, 3, type="message", message={"role": "oracle", "says": "yes", "timestamp": 5}),
    ]
    path = written(tmp_path / "a.jsonl", *records)
    session = read(path)
    session.projection()
    assert [[one.body, one.to_json()][1] for one in session.entries] == records
    assert session.problems == []


def test_a_malformed_entry_keeps_its_place_and_has_no_effect(tmp_path: Path) -> None:
    records = [
        entry(1, None),
        entry(2, 1, type="message", message={"role": "user"}),
        entry(3, 2, type="message", message="text"),
        entry(4, 3, type="compaction", summary=5),
        entry(5, 4, type="context_edit"),
        entry(6, 5, type="custom_message", customType="c", content=[{"no": "type"}], display=True),
        entry(7, 6, type="custom", customType="pi.tool_result", data="odd"),
        entry(8, 7),
    ]
    path = written(tmp_path / "a.jsonl", *records)
    session = read(path)
    assert texts(session.projection().messages) == ["m1", "m8"]
    assert [one.to_json() for one in session.entries] == records
    assert [problem.partition(":")[0] for problem in session.problems[-3:]] == [
        "entry 00000002",
        "entry 00000006",
        "entry 00000007",
    ]
    assert [problem.split(":")[1] for problem in session.problems[:3]] == ["4", "5", "6"]


def test_a_compaction_that_keeps_from_an_unknown_entry_keeps_nothing_and_is_named(tmp_path: Path) -> None:
    cut = entry(2, 1, type="compaction", summary="all of it", firstKeptEntryId="nowhere", tokensBefore=1)
    path = written(tmp_path / "a.jsonl", entry(1, None), cut, entry(3, 2))
    session = read(path)
    assert texts(session.projection().messages) == ["all of it", "m3"]
    assert session.problems == [
        f"{path}:3: a compaction keeps what follows nowhere, which is no earlier entry; it keeps nothing"
    ]


def test_version_1_gets_ids_in_memory_and_in_the_file_with_the_first_entry(tmp_path: Path) -> None:
    old = [
        {"type": "message", "timestamp": "2025-01-01T00:00:00.000Z", "message": user(f"m{number}").to_json()}
        for number in (1, 2, 3)
    ]
    cut = {"type": "compaction", "timestamp": "t", "summary": "s", "firstKeptEntryIndex": 3, "tokensBefore": 1}
    header = {"type": "session", "id": "s1", "timestamp": "t", "cwd": "/work", "provider": "p"}
    path = written(tmp_path / "a.jsonl", *old, cut, header=header)
    before = path.read_bytes()
    assert texts(read(path).projection().messages) == ["s", "m3"]
    with Session.open(path) as session:
        ids = [one.id for one in session.entries]
        assert path.read_bytes() == before
        session.append_message(user("new"))
        with pytest.raises(ConfigError, match="writes this session"):
            Session.open(path)
    assert [one.id for one in read(path).entries[:-1]] == ids
    records = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    assert records[0] == {"type": "session", "version": 3, **{key: header[key] for key in header if key != "type"}}
    assert [record["parentId"] for record in records[1:]] == [None, *ids]
    assert (tmp_path / "a.jsonl.v1").read_bytes() == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.jsonl", "a.jsonl.v1"]
    with Session.open(path) as session:
        session.append_message(user("newer"))
    assert texts(read(path).projection().messages) == ["s", "m3", "new", "newer"]


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_an_old_file_behind_a_link_is_written_anew_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    path = written(tmp_path / "real" / "a.jsonl", entry(1, None), header={**HEADER, "version": 2})
    (tmp_path / "link.jsonl").symlink_to(path)
    with Session.open(tmp_path / "link.jsonl") as session:
        session.append_message(user("new"))
    assert (tmp_path / "link.jsonl").is_symlink()
    assert texts(read(path).projection().messages) == ["m1", "new"]


def test_version_2_messages_of_hooks_become_custom_ones(tmp_path: Path) -> None:
    said = {"role": "hookMessage", "customType": "c", "content": "from a hook", "display": True, "timestamp": 1}
    path = written(tmp_path / "a.jsonl", entry(1, None, type="message", message=said), header={**HEADER, "version": 2})
    (message,) = read(path).projection().messages
    assert (message.role, message.to_text()) == ("custom", "from a hook")  # type: ignore[union-attr]
