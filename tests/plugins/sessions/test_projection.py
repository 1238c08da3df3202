"""What the model reads of a session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pi_core import AgentMessage, AssistantMessage, ConfigError, CustomMessage, ToolResultMessage, Usage
from pi_plugins.sessions import projection as projections
from pi_plugins.sessions.entries import Entry
from pi_plugins.sessions.messages import BashExecutionMessage, CompactionSummaryMessage, CustomEntryMessage
from pi_plugins.sessions.session import Session

from .talking import assistant, entry, result, texts, user, written

CUT = "The run ended before this call did. What it has done so far is not known."
DATA = Path(__file__).with_name("data")


def session(*messages: AgentMessage) -> Session:
    made = Session.in_memory("/work")
    for message in messages:
        made.append_message(message)
    return made


def said(found: Session) -> list[str]:
    return texts(found.projection().messages)


def test_messages_come_with_the_entries_they_are_from() -> None:
    found = session(user("a"), assistant("b"))
    found.append_custom("x")
    projection = found.projection()
    assert texts(projection.messages) == ["a", "b"]
    assert projection.entry_ids == tuple(one.id for one in found.entries[:2])


def test_model_and_level_are_those_of_the_whole_path() -> None:
    found = session()
    found.append_model_change("p1", "m1")
    found.append_thinking_level_change("high")
    found.append_message(user("a"))
    kept = found.append_message(user("b"))
    found.append_compaction("s", kept.id, 10)
    assert (found.projection().model, found.projection().thinking_level) == (("p1", "m1"), "high")
    found.append_message(assistant("c", provider="p2", model="m2"))
    assert found.projection().model == ("p2", "m2")
    found.branch(kept.id)
    assert (found.projection().model, found.projection().thinking_level) == (("p1", "m1"), "high")
    found.branch(None)
    assert (found.projection().model, found.projection().thinking_level) == (None, None)


def test_after_a_compaction_come_the_summary_the_kept_part_and_what_followed() -> None:
    found = session(user("old"))
    kept = found.append_message(user("kept"))
    found.append_message(assistant("answer"))
    cut = found.append_compaction("the summary", kept.id, 123)
    found.append_message(user("new"))
    projection = found.projection()
    assert texts(projection.messages) == ["the summary", "kept", "answer", "new"]
    assert projection.messages[0] == CompactionSummaryMessage(
        summary="the summary", tokens_before=123, timestamp=projection.messages[0].timestamp
    )
    assert projection.entry_ids[0] == cut.id
    assert projection.compaction is cut


def test_the_latest_compaction_counts_and_one_that_keeps_nothing_keeps_nothing() -> None:
    found = session(user("a"))
    found.append_compaction("first", found.entries[0].id, 1)
    found.append_message(user("b"))
    last = found.append_compaction("second", None, 2)
    found.append_message(user("c"))
    assert said(found) == ["second", "c"]
    assert last.to_json()["firstKeptEntryId"] == last.id


def test_a_compaction_may_keep_what_an_earlier_one_kept() -> None:
    found = session(user("a"), user("b"))
    found.append_compaction("first", found.entries[1].id, 1)
    found.append_message(user("c"))
    found.append_compaction("second", found.entries[1].id, 2)
    assert said(found) == ["second", "b", "c"]


def test_only_known_entries_can_be_kept_edited_or_marked() -> None:
    found = session(user("a"))
    for append in (
        lambda: found.append_compaction("s", "nowhere", 1),
        lambda: found.append_context_edit("nowhere", None),
        lambda: found.append_label("nowhere", "x"),
        lambda: found.branch("nowhere"),
        lambda: found.path_to("nowhere"),
    ):
        with pytest.raises(ConfigError, match="no entry 'nowhere'"):
            append()
    assert len(found.entries) == 1


def test_the_latest_edit_of_an_entry_on_the_branch_counts() -> None:
    found = session(user("a"), assistant("b"))
    before = found.leaf_id
    target = found.entries[1].id
    found.append_context_edit(target, "other")
    assert said(found) == ["a", "other"]
    found.append_context_edit(target, None)
    assert said(found) == ["a"]
    found.append_context_edit(target, [{"type": "text", "text": "third"}])
    assert said(found) == ["a", "third"]
    found.branch(before)
    assert said(found) == ["a", "b"]


def test_an_edit_has_the_form_of_the_original(tmp_path: Path) -> None:
    found = session(user("a"), user("b"))
    ids = [one.id for one in found.entries]
    replaced, omitted = found.append_context_edit(ids[0], "other"), found.append_context_edit(ids[1], None)
    assert replaced.to_json()["replacement"] == {"content": "other"}
    assert omitted.to_json()["replacement"] is None
    edit = entry(2, 1, type="context_edit", targetId="00000001", replacement={"content": "other"})
    path = written(tmp_path / "a.jsonl", entry(1, None), edit)
    assert said(Session.open(path, read_only=True)) == ["other"]


def test_a_replaced_message_keeps_all_but_its_content() -> None:
    found = session(assistant("b", usage=Usage(input=7)))
    found.append_context_edit(found.entries[0].id, "other")
    (message,) = found.projection().messages
    assert isinstance(message, AssistantMessage)
    assert (message.text, message.usage.input, message.timestamp) == ("other", 7, 2)


def test_a_replacement_that_is_no_content_has_no_effect() -> None:
    found = session(user("a"))
    found.append_context_edit(found.entries[0].id, [{"no": "block"}])
    assert said(found) == ["a"]


def test_an_edited_summary_of_a_compaction_can_be_left_out() -> None:
    found = session(user("a"))
    cut = found.append_compaction("s", None, 1)
    found.append_context_edit(cut.id, None)
    assert said(found) == []


def test_a_response_that_is_left_out_takes_its_results_with_it() -> None:
    found = session(user("a"), assistant("", "c1"), result("c1"), user("b"))
    found.append_context_edit(found.entries[1].id, None)
    assert said(found) == ["a", "b"]


def test_a_result_that_is_left_out_is_replaced_by_a_word_so_that_its_call_has_one() -> None:
    found = session(assistant("", "c1"), result("c1", "secret"))
    found.append_context_edit(found.entries[1].id, None)
    assert said(found) == ["c1", "c1=(The result of this call was taken out of the context.)"]


def test_a_response_without_one_of_its_calls_has_no_result_of_it() -> None:
    found = session(assistant("", "c1", "c2"), result("c1", "one"), result("c2", "two"))
    call = {"type": "toolCall", "id": "c2", "name": "t", "arguments": {}}
    found.append_context_edit(found.entries[0].id, [call])
    assert said(found) == ["c2", "c2=two"]


def test_calls_that_an_edit_puts_in_or_moves_have_one_result_each() -> None:
    found = session(assistant("said"), assistant("", "c1", "c2"), result("c1", "one"), result("c2", "two"))
    calls = [{"type": "toolCall", "id": name, "name": "t", "arguments": {}} for name in ("c2", "new", "c1")]
    found.append_context_edit(found.entries[0].id, calls[1:2])
    found.append_context_edit(found.entries[1].id, calls)
    assert said(found) == ["new", f"new={CUT}", "c2+new+c1", "c2=two", f"new={CUT}", "c1=one"]


def test_every_call_has_one_result_after_its_message_in_the_order_of_the_calls() -> None:
    steer = CustomEntryMessage(custom_type="x", content="steer")
    found = session(assistant("", "c1", "c2", "c3"), result("c3"), steer, result("c1"))
    projection = found.projection()
    assert texts(projection.messages) == ["c1+c2+c3", "c1=done", f"c2={CUT}", "c3=done", "steer"]
    assert projection.entry_ids[2] is None
    filled = projection.messages[2]
    assert isinstance(filled, ToolResultMessage)
    assert (filled.is_error, filled.tool_name, filled.timestamp) == (True, "t", 2)


def test_results_without_a_call_are_left_out_and_a_second_one_takes_the_place_of_the_first() -> None:
    found = session(
        result("c0"), assistant("", "c1"), result("c9"), result("c1", "one"), result("c1", "two"), assistant("x")
    )
    assert said(found) == ["c1", "c1=two", "x"]
    found.append_message(result("c1", "late"))
    assert said(found) == ["c1", "c1=two", "x"]


def test_an_id_used_again_means_the_call_of_its_own_message() -> None:
    found = session(assistant("", "0"), result("0", "a"), assistant("", "0", "0"), result("0", "b"), result("0", "c"))
    assert said(found) == ["0", "0=a", "0+0", "0=b", "0=c"]


def test_calls_of_a_response_that_was_cut_are_said_not_to_have_run() -> None:
    found = session(assistant("", "c1", stop_reason="aborted", error_message="aborted"), user("go on"))
    text = "c1=This call was not run: the response with it was not complete."
    assert said(found) == ["c1", text, "go on"]


@pytest.mark.parametrize(("kept", "expected"), [(1, ["s", "c1", "c1=done"]), (2, ["s"])])
def test_a_summary_between_call_and_result_makes_no_pair_fall_apart(
    tmp_path: Path, kept: int, expected: list[str]
) -> None:
    records = [
        entry(1, None, type="message", message=assistant("", "c1").to_json()),
        entry(2, 1, type="compaction", summary="s", firstKeptEntryId=f"{kept:08x}", tokensBefore=1),
        entry(3, 2, type="message", message=result("c1").to_json()),
    ]
    path = written(tmp_path / "a.jsonl", *records)
    assert said(Session.open(path, read_only=True)) == expected


def test_texts_of_plugins_and_summaries_of_branches_are_messages() -> None:
    found = session(user("a"))
    found.append_custom_message("note", "from a plugin", display=False, details={"n": 1})
    found.append_message(CustomEntryMessage(custom_type="note", content="as a message"))
    found.append_branch_summary("00000000", "what the branch came to")
    found.append_custom("note", "no message")
    found.append_usage("warming", "p", "m", Usage(input=1))
    assert [one.type for one in found.entries[1:4]] == ["custom_message", "custom_message", "branch_summary"]
    projection = found.projection()
    assert texts(projection.messages) == ["a", "from a plugin", "as a message", "what the branch came to"]
    first = projection.messages[1]
    assert isinstance(first, CustomEntryMessage)
    assert (first.display, first.details) == (False, {"n": 1})


def test_message_types_of_other_plugins_come_back_as_what_they_are(tmp_path: Path) -> None:
    class Note(CustomMessage):
        role: str = "note"
        body: str

    path = written(
        tmp_path / "a.jsonl", entry(1, None, type="message", message={"role": "note", "body": "x", "timestamp": 1})
    )
    (message,) = Session.open(path, read_only=True, types={"note": Note}).projection().messages
    assert message == Note(body="x", timestamp=1)
    (opaque,) = Session.open(path, read_only=True).projection().messages
    assert type(opaque) is CustomMessage


def test_an_entry_after_another_costs_the_same_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Entry] = []
    take = projections.ProjectionBuilder._take

    def counted(builder: projections.ProjectionBuilder, entry: Entry) -> None:
        taken.append(entry)
        take(builder, entry)

    monkeypatch.setattr(projections.ProjectionBuilder, "_take", counted)
    found = session()
    for number in range(2_000):
        found.append_message(user(f"{number}"))
        message = assistant("", "c1", "c2")
        found.append_message(message)
        for call in reversed(message.tool_calls):
            found.record_tool_result(call, result(call.id))
        for call in message.tool_calls:
            found.append_message(result(call.id))
    assert len(taken) == len(found.entries) == 2_000 * 5
    assert len(found.projection().messages) == 2_000 * 4


def test_recorded_files_of_the_original_are_read_and_kept_as_they_are() -> None:
    for name, expected in (
        ("tool-run", ["run it", "Working.", "call_1=hi\n", "Done."]),
        ("compaction", ["## Goal\nsummary text", "second", "answer two", "third", "final"]),
    ):
        path = DATA / f"{name}.jsonl"
        found = Session.open(path, read_only=True)
        projection = found.projection()
        assert [
            text[: len(start)] for text, start in zip(texts(projection.messages), expected, strict=True)
        ] == expected
        assert (projection.model, projection.thinking_level) == (("local", "m1"), "medium")
        assert found.problems == []
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert [found.header.to_json(), *(one.to_json() for one in found.entries)] == records


def test_what_is_written_has_the_fields_of_the_original(tmp_path: Path) -> None:
    """The recorded files hold what the original wrote; ours of the same conversation differs in values only."""
    original = [json.loads(line) for line in (DATA / "tool-run.jsonl").read_text(encoding="utf-8").splitlines()]
    source = Session.open(DATA / "tool-run.jsonl", read_only=True)
    with Session.create("/work", directory=tmp_path) as session:
        session.append_model_change("local", "m1")
        session.append_thinking_level_change("medium")
        for one in source.entries[2:]:
            assert one.message is not None
            session.append_message(one.message)
    assert session.path is not None
    ours = [json.loads(line) for line in session.path.read_text(encoding="utf-8").splitlines()]
    assert [list(record) for record in ours] == [list(record) for record in original]
    assert [record.get("message") for record in ours] == [record.get("message") for record in original]


def test_commands_of_the_user_are_told_unless_they_are_kept_from_the_model() -> None:
    shown = BashExecutionMessage(command="ls", output="a\nb\n", exit_code=2, timestamp=5)
    (message,) = shown.to_llm()
    assert texts([message]) == ["Ran `ls`\n```\na\nb\n```\nThe command exited with code 2."]
    assert message.timestamp == 5
    assert list(BashExecutionMessage(command="ls", exclude_from_context=True).to_llm()) == []
    cut = BashExecutionMessage(command="a `b`", cancelled=True, truncated=True, full_output_path="/t/x", output="```")
    assert cut.to_text() == (
        "Ran `` a `b` ``\n````\n```\n````\n(the command was cancelled)\n"
        "(The beginning of the output is left out. All of it: /t/x)"
    )
    assert BashExecutionMessage(command="true", exit_code=0).to_text() == "Ran `true`\n(no output)"
