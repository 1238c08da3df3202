"""Results of a batch are on disk as each call ends, and messages stay in the order of the calls."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pi_core import ToolCallContent
from pi_plugins.sessions.session import Session

from .talking import assistant, result, texts, user

CUT = "The run ended before this call did. What it has done so far is not known."


def asked(folder: Path, *calls: str) -> tuple[Session, list[ToolCallContent]]:
    session = Session.create("/work", directory=folder)
    session.append_message(user("go"))
    message = assistant("", *calls)
    session.append_message(message)
    return session, message.tool_calls


def kinds(session: Session) -> list[str]:
    return [entry.role or entry.type for entry in session.entries[2:]]


def reopened(session: Session) -> Session:
    session.close()
    assert session.path is not None
    return Session.open(session.path)


def test_results_in_order_are_messages_at_once_and_are_not_written_again(tmp_path: Path) -> None:
    session, calls = asked(tmp_path, "a", "b")
    results = [result("a"), result("b")]
    recorded = [session.record_tool_result(*pair) for pair in zip(calls, results, strict=True)]
    assert kinds(session) == ["toolResult", "toolResult"]
    assert [session.append_message(one) for one in results] == recorded
    assert kinds(session) == ["toolResult", "toolResult"]
    session.close()


def test_results_out_of_order_are_journaled_and_become_messages_in_the_order_of_the_calls(tmp_path: Path) -> None:
    session, calls = asked(tmp_path, "a", "b", "c")
    results = [result("a"), result("b"), result("c")]
    for at in (2, 0, 1):
        session.record_tool_result(calls[at], results[at])
    assert kinds(session) == ["custom", "toolResult", "toolResult"]
    for one in results:
        session.append_message(one)
    assert kinds(session) == ["custom", "toolResult", "toolResult", "toolResult"]
    again = reopened(session)
    assert texts(again.projection().messages)[2:] == ["a=done", "b=done", "c=done"]
    assert again.stats().tool_results == 3
    again.close()


def test_what_was_journaled_fills_the_gaps_after_a_crash_and_becomes_messages_with_the_next_one(tmp_path: Path) -> None:
    session, calls = asked(tmp_path, "a", "b", "c")
    session.record_tool_result(calls[2], result("c", "third"))
    session.record_tool_result(calls[0], result("a", "first"))
    again = reopened(session)
    expected = ["a=first", f"b={CUT}", "c=third"]
    assert texts(again.projection().messages)[2:] == expected
    again.append_custom("x")
    assert kinds(again) == ["custom", "toolResult", "custom"]
    again.append_message(user("go on"))
    assert kinds(again) == ["custom", "toolResult", "custom", "toolResult", "toolResult", "user"]
    final = reopened(again)
    projection = final.projection()
    assert texts(projection.messages)[2:] == [*expected, "go on"]
    assert None not in projection.entry_ids
    final.close()


def test_a_result_that_a_plugin_changed_after_its_call_ended_is_written_as_it_is_then(tmp_path: Path) -> None:
    session, calls = asked(tmp_path, "a")
    session.record_tool_result(calls[0], result("a", "raw"))
    session.append_message(result("a", "redacted"))
    again = reopened(session)
    assert texts(again.projection().messages)[2:] == ["a=redacted"]
    again.close()


def test_equal_results_of_calls_with_one_id_are_each_written(tmp_path: Path) -> None:
    session, _ = asked(tmp_path, "0", "0")
    for _ in range(2):
        session.append_message(result("0"))
    assert kinds(session) == ["toolResult", "toolResult"]
    session.close()
    session, calls = asked(tmp_path, "0", "0")
    session.record_tool_result(calls[1], result("0", "second"))
    session.record_tool_result(calls[0], result("0", "first"))
    session.append_message(result("0", "first"))
    session.append_message(result("0", "second"))
    again = reopened(session)
    assert texts(again.projection().messages)[2:] == ["0=first", "0=second"]
    again.close()


def test_a_call_of_no_batch_is_not_recorded(tmp_path: Path) -> None:
    session, _ = asked(tmp_path, "a")
    assert session.record_tool_result(ToolCallContent(id="a/1", name="t"), result("a/1")) is None
    session.append_message(user("x"))
    session.append_message(assistant("no calls"))
    assert session.record_tool_result(ToolCallContent(id="a", name="t"), result("a")) is None
    session.close()


def test_nothing_is_added_for_calls_of_a_response_that_was_cut(tmp_path: Path) -> None:
    with Session.create("/work", directory=tmp_path) as session:
        session.append_message(user("go"))
        session.append_message(assistant("", "a", stop_reason="aborted", error_message="aborted"))
        session.append_message(user("go on"))
        assert kinds(session) == ["user"]


BATCH = """
import sys
from pathlib import Path
from pi_core import AssistantMessage, TextContent, ToolCallContent, ToolResultMessage, user_message
from pi_plugins.sessions.session import Session

session = Session.create("/work", directory=Path(sys.argv[1]), id="killed")
session.append_message(user_message("go"))
calls = [ToolCallContent(id=name, name="t") for name in "abc"]
session.append_message(AssistantMessage(content=calls, api="a", provider="p", model="m", stop_reason="toolUse"))
for at in map(int, sys.argv[2]):
    text = [TextContent(text="done")]
    session.record_tool_result(calls[at], ToolResultMessage(tool_call_id=calls[at].id, tool_name="t", content=text))
print("recorded", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("order", ["2", "20", "1", "01"])
def test_a_process_killed_in_a_batch_loses_no_result_that_was_recorded(tmp_path: Path, order: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", BATCH, str(tmp_path), order], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "recorded\n"
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()
    (path,) = tmp_path.glob("*/*_killed.jsonl")
    with Session.open(path) as session:
        found = texts(session.projection().messages)[2:]
        assert found == [f"{name}={'done' if str(at) in order else CUT}" for at, name in enumerate("abc")]
        assert session.problems == []


@pytest.mark.parametrize("index", [None, "0", 0.0, -1, 1, 7])
def test_a_journal_entry_that_names_no_call_has_no_effect(tmp_path: Path, index: object) -> None:
    session, _ = asked(tmp_path, "a", "b")
    session.append_custom("pi.tool_result", {"index": index, "message": result("a").to_json()})
    assert texts(session.projection().messages)[2:] == [f"a={CUT}", f"b={CUT}"]
    session.close()
