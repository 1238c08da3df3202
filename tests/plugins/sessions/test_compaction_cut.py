"""Where a transcript may be cut, and where it is."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from pi_core import AgentMessage, AssistantMessage, ToolResultMessage
from pi_plugins.sessions.compaction.cut import Cut, find_cut, legal_cuts
from pi_plugins.sessions.compaction.estimate import message_tokens
from pi_plugins.sessions.messages import BashExecutionMessage, CustomEntryMessage

from .compacting import assistant, result, user

READ = {"path": "a.txt"}


def test_a_cut_never_stands_between_a_call_and_its_results() -> None:
    turn = [user("go"), assistant("", ("1", "read", READ), ("2", "read", READ)), result("1"), result("2"), user("on")]
    assert legal_cuts(turn) == [0, 1, 4]


def test_a_message_among_the_results_is_no_place_to_cut() -> None:
    note = CustomEntryMessage(custom_type="note", content="meanwhile")
    turn = [user("go"), assistant("", ("1", "read", READ)), note, result("1"), user("on")]
    assert legal_cuts(turn) == [0, 1, 4]


def test_an_id_that_comes_again_belongs_to_the_nearest_response() -> None:
    turn = [
        user("go"),
        assistant("", ("0", "read", READ)),
        result("0"),
        assistant("", ("0", "read", READ)),
        result("0"),
    ]
    assert legal_cuts(turn) == [0, 1, 3]


def test_calls_that_may_still_get_results_stay_with_what_follows() -> None:
    assert legal_cuts([user("go"), assistant("", ("1", "read", READ)), user("on")]) == [0, 1]


def test_commands_of_the_user_and_texts_of_plugins_may_begin_the_kept_part() -> None:
    shell = BashExecutionMessage(command="ls")
    note = CustomEntryMessage(custom_type="note", content="x")
    assert legal_cuts([shell, note, user("go"), assistant("yes")]) == [0, 1, 2, 3]


def test_the_newest_messages_are_kept_up_to_the_budget() -> None:
    talk = [user("a" * 400), assistant("b" * 400), user("c" * 400), assistant("d" * 400)]
    assert find_cut(talk, 300) == Cut(kept=1, turn=0)
    assert find_cut(talk, 200) == Cut(kept=2, turn=2)
    assert find_cut(talk, 150) == Cut(kept=2, turn=2)


def test_nothing_is_cut_when_everything_fits() -> None:
    assert find_cut([user("a"), assistant("b")], 1000) is None
    assert find_cut([], 0) is None


def test_a_turn_larger_than_the_budget_is_split_where_the_rest_fits() -> None:
    steps = [
        step
        for number in range(6)
        for step in (assistant("", (str(number), "read", READ)), result(str(number), "x" * 400))
    ]
    turn = [user("first"), assistant("ok"), user("long"), *steps]
    cut = find_cut(turn, 250)
    assert cut is not None
    assert (turn[cut.turn], cut.kept) == (user("long"), len(turn) - 4)


def test_the_rest_of_a_turn_whose_beginning_was_compacted_is_no_split() -> None:
    rest = [assistant("", ("1", "read", READ)), result("1", "x" * 400), assistant("y" * 400)]
    assert find_cut(rest, 50) == Cut(kept=2, turn=2)


def test_a_last_result_larger_than_the_budget_is_kept_with_its_call() -> None:
    turn = [user("go"), assistant("ok"), user("look"), assistant("", ("1", "read", READ)), result("1", "x" * 4000)]
    assert find_cut(turn, 10) == Cut(kept=3, turn=2)


def test_a_budget_of_nothing_still_keeps_a_message() -> None:
    assert find_cut([user("a"), assistant("b")], 0) == Cut(kept=1, turn=0)


# --- any transcript ---

TEXT = st.text("ab ", max_size=60)
IDS = st.sampled_from(["0", "1", "2"])


@st.composite
def transcripts(draw: st.DrawFn) -> list[AgentMessage]:
    """Turns with batches whose results may be missing, out of order, or have messages of plugins among them."""
    messages: list[AgentMessage] = []
    for _ in range(draw(st.integers(0, 6))):
        messages.append(user(draw(TEXT)))
        for _ in range(draw(st.integers(0, 3))):
            ids = draw(st.lists(IDS, unique=True))
            messages.append(assistant(draw(TEXT), *[(id_, "read", READ) for id_ in ids]))
            answered = draw(st.permutations(ids))[: draw(st.integers(0, len(ids)))]
            for id_ in answered:
                if draw(st.booleans()):
                    messages.append(CustomEntryMessage(custom_type="note", content="n"))
                messages.append(result(id_, draw(TEXT)))
    return messages


def pairs(messages: Sequence[AgentMessage]) -> list[tuple[int, int]]:
    """Where each call and its result are."""
    found = []
    for position, message in enumerate(messages):
        if isinstance(message, ToolResultMessage):
            made = [
                earlier
                for earlier in range(position)
                if isinstance(messages[earlier], AssistantMessage)
                and any(call.id == message.tool_call_id for call in messages[earlier].tool_calls)  # type: ignore[union-attr]
            ]
            found.append((made[-1], position))
    return found


@given(transcripts())
def test_every_legal_cut_leaves_each_call_with_its_result(messages: list[AgentMessage]) -> None:
    for cut in legal_cuts(messages):
        assert all((call < cut) == (result_ < cut) for call, result_ in pairs(messages))
        assert not isinstance(messages[cut], ToolResultMessage)


@given(transcripts(), st.integers(0, 80))
def test_the_cut_is_legal_and_summarises_something(messages: list[AgentMessage], keep: int) -> None:
    cut = find_cut(messages, keep)
    if cut is None:
        return
    assert cut.kept in legal_cuts(messages)
    assert 0 < cut.kept < len(messages)
    assert cut.turn <= cut.kept
    if cut.turn != cut.kept:
        assert not isinstance(messages[cut.turn], AssistantMessage | ToolResultMessage)
        between = messages[cut.turn + 1 : cut.kept + 1]
        assert all(isinstance(message, AssistantMessage | ToolResultMessage) for message in between)


@given(transcripts(), st.integers(0, 80))
def test_no_more_is_kept_than_the_budget_unless_nothing_less_is_legal(messages: list[AgentMessage], keep: int) -> None:
    cut = find_cut(messages, keep)
    if cut is None:
        return
    kept = sum(message_tokens(message) for message in messages[cut.kept + 1 :])
    later = [position for position in legal_cuts(messages) if position > cut.kept]
    assert kept < keep or keep == 0 or not later
