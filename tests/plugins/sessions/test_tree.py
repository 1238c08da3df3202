"""The tree of a session: positions, branches, marks, names, counts."""

from __future__ import annotations

import gc
import json
from pathlib import Path

from pi_core import Cost, ToolResultMessage, Usage
from pi_plugins.sessions.session import Session
from pi_plugins.sessions.stats import StatsCounter
from pi_plugins.sessions.tree import TreeNode

from .talking import assistant, result, texts, user


def shape(nodes: list[TreeNode]) -> list[object]:
    return [[node.entry.id, shape(node.children)] for node in nodes]


def test_an_entry_becomes_a_child_of_the_position_and_the_position() -> None:
    session = Session.in_memory("/work")
    a = session.append_message(user("a"))
    b = session.append_message(user("b"))
    session.branch(a.id)
    c = session.append_message(user("c"))
    session.branch(None)
    d = session.append_message(user("d"))
    assert [one.parent_id for one in (a, b, c, d)] == [None, a.id, a.id, None]
    assert shape(session.tree()) == [[a.id, [[b.id, []], [c.id, []]]], [d.id, []]]
    assert [one.id for one in session.path_to(c.id)] == [a.id, c.id]
    assert session.leaf_id == d.id


def test_the_last_entry_of_the_file_is_the_position_after_opening(tmp_path: Path) -> None:
    with Session.create("/work", directory=tmp_path) as session:
        a = session.append_message(user("a"))
        session.append_message(user("b"))
        session.branch(a.id)
        session.append_message(user("c"))
    assert session.path is not None
    assert texts(Session.open(session.path, read_only=True).projection().messages) == ["a", "c"]


def test_a_mark_belongs_to_the_branch_it_was_made_on() -> None:
    session = Session.in_memory("/work")
    a = session.append_message(user("a"))
    session.append_label(a.id, "start")
    assert session.label_of(a.id) == "start"
    session.append_label(a.id, "begin")
    marked = session.leaf_id
    assert session.label_of(a.id) == "begin"
    session.append_label(a.id, None)
    assert session.label_of(a.id) is None
    session.branch(marked)
    assert session.label_of(a.id) == "begin"
    assert session.tree()[0].label == "begin"
    session.branch(a.id)
    assert session.label_of(a.id) is None


def test_the_name_given_last_is_that_of_the_session() -> None:
    session = Session.in_memory("/work")
    assert session.name is None
    session.append_session_info("  one ")
    session.append_session_info("two")
    session.branch(session.entries[0].id)
    assert session.name == "two"
    session.append_session_info(None)
    assert session.name is None


def test_counts_are_of_every_branch_and_of_all_that_cost_something() -> None:
    session = Session.in_memory("/work")
    used = Usage(input=1, output=2, cache_read=3, cache_write=4, cost=Cost(total=0.5))
    a = session.append_message(user("a"))
    session.append_message(assistant("", "c1", usage=used))
    session.append_message(ToolResultMessage(tool_call_id="c1", tool_name="t", content=[], usage=used))
    session.branch(a.id)
    session.append_usage("warming", "p", "m", used)
    session.append_compaction("s", a.id, 1, usage=used)
    session.append_branch_summary(a.id, "s", usage=used)
    assert session.stats().to_json() == {
        "userMessages": 1,
        "assistantMessages": 1,
        "toolCalls": 1,
        "toolResults": 1,
        "totalMessages": 3,
        "tokens": {"input": 5, "output": 10, "cacheRead": 15, "cacheWrite": 20, "total": 50},
        "cost": 2.5,
    }


def test_counting_again_looks_at_new_entries_only() -> None:
    session = Session.in_memory("/work")
    counter = StatsCounter()
    looked: list[object] = []

    class Looked(list[object]):
        def __getitem__(self, at: object) -> object:
            looked.append(at)
            return super().__getitem__(at)  # type: ignore[index]

    for number in range(5):
        session.append_message(user(str(number)))
        assert counter.stats(Looked(session.entries)).user_messages == number + 1  # type: ignore[arg-type]
    assert looked == [0, 1, 2, 3, 4]


def test_the_json_of_a_tree_is_the_entry_its_children_and_its_mark() -> None:
    session = Session.in_memory("/work")
    a = session.append_message(user("a"))
    label = session.append_label(a.id, "x")
    (root,) = session.tree()
    assert root.to_json() == {
        "entry": a.to_json(),
        "children": [{"entry": label.to_json(), "children": []}],
        "label": "x",
    }
    for number in range(5_000):
        session.append_message(user(str(number)))
    assert session.tree()[0].to_json()["entry"] == a.to_json()


def test_a_copy_has_the_path_and_names_where_it_came_from(tmp_path: Path) -> None:
    with Session.create("/work", directory=tmp_path) as session:
        a = session.append_message(user("a"))
        session.append_message(user("left"))
        session.branch(a.id)
        session.append_message(assistant("", "c1"))
        session.append_message(result("c1"))
        with Session.fork(session, "/other", directory=tmp_path, id="copy") as copy:
            copy.append_message(user("more"))
    assert copy.path is not None
    assert copy.path.parent == tmp_path / "--other--"
    lines = [json.loads(line) for line in copy.path.read_text(encoding="utf-8").splitlines()]
    assert lines[0]["parentSession"] == str(session.path)
    assert (lines[0]["id"], lines[0]["cwd"]) == ("copy", "/other")
    assert lines[1:4] == [one.to_json() for one in session.path_to()]
    assert texts(Session.open(copy.path, read_only=True).projection().messages) == ["a", "c1", "c1=done", "more"]


def test_a_copy_of_a_part_and_one_in_memory(tmp_path: Path) -> None:
    with Session.create("/work", directory=tmp_path) as session:
        session.append_model_change("p", "m")
        a = session.append_message(user("a"))
        session.append_message(user("b"))
    part = Session.fork(session, "/work", directory=None, entries=session.path_to(a.id))
    assert part.path is None
    assert texts(part.projection().messages) == ["a"]
    empty = Session.fork(session, "/work", directory=tmp_path, entries=session.path_to(a.id)[:1])
    assert [one.type for one in empty.unsaved] == ["model_change"]
    assert empty.path is not None
    assert not empty.path.exists()


def test_the_garbage_collector_is_as_it_was_after_a_session_was_opened(tmp_path: Path) -> None:
    with Session.create("/work", directory=tmp_path) as session:
        session.append_message(user("a"))
    assert session.path is not None
    states = []
    was_on = gc.isenabled()
    try:
        for turn in (gc.disable, gc.enable):
            turn()
            Session.open(session.path, read_only=True).projection()
            states.append(gc.isenabled())
        gc.freeze()
        Session.open(session.path, read_only=True).projection()
        frozen = gc.get_freeze_count()
    finally:
        gc.unfreeze()
        (gc.enable if was_on else gc.disable)()
    assert states == [False, True]
    assert frozen > 0
