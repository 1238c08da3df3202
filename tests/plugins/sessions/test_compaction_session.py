"""A session before and after it was compacted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pi_core import AgentMessage, AssistantMessage, ToolResultMessage
from pi_plugins.config.settings import CompactionSettings
from pi_plugins.sessions import Session
from pi_plugins.sessions.compaction import (
    CompactionResult,
    context_tokens,
    message_tokens,
    prepare,
    should_compact,
    summarize,
)
from pi_plugins.sessions.messages import CompactionSummaryMessage

from .compacting import SUMMARY, asked_text, assistant, model, result, roles, scripted, user
from .test_compaction_cut import transcripts

LITTLE = CompactionSettings(keep_recent_tokens=150, reserve_tokens=1000)


def compacted(session: Session, *replies: str, settings: CompactionSettings = LITTLE) -> CompactionResult:
    preparation = prepare(session.path_to(), settings)
    assert preparation is not None
    _, complete = scripted(*replies or (SUMMARY,))
    done = asyncio.run(summarize(preparation, complete, model()))
    session.append_compaction(
        done.summary, done.first_kept_entry_id, done.tokens_before, usage=done.usage, details=done.details
    )
    return done


def filled(session: Session, *messages: AgentMessage) -> Session:
    for message in messages:
        session.append_message(message)
    return session


def work(number: int) -> list[AgentMessage]:
    """A turn that reads one file and writes another."""
    calls: list[tuple[str, str, Any]] = [
        ("0", "read", {"path": f"r{number}"}),
        ("1", "write", {"path": f"w{number}", "content": "x"}),
    ]
    return [
        user(f"task {number} " + "a" * 400),
        assistant("", *calls),
        *[result("0", "y" * 400), result("1")],
        assistant("done", tokens=5000, timestamp=4),
    ]


def test_the_model_reads_the_summary_and_what_was_kept() -> None:
    session = filled(Session.in_memory("/"), *work(1), *work(2))
    done = compacted(session)
    messages = session.projection().messages
    assert isinstance(messages[0], CompactionSummaryMessage)
    assert messages[0].summary == done.summary
    assert roles(messages[1:]) == ["user", "assistant", "toolResult", "toolResult", "assistant"]
    assert session.projection().entry_ids[1] == done.first_kept_entry_id


def test_the_context_is_small_afterwards_whatever_the_last_response_reported() -> None:
    session = filled(Session.in_memory("/"), *work(1), *work(2))
    assert should_compact(context_tokens(session.projection().messages), model(4096), LITTLE)
    done = compacted(session)
    after = context_tokens(session.projection().messages)
    assert after == done.estimated_tokens_after
    assert not should_compact(after, model(4096), LITTLE)


def test_a_session_is_not_compacted_twice_without_anything_new() -> None:
    session = filled(Session.in_memory("/"), *work(1), *work(2))
    compacted(session)
    assert prepare(session.path_to(), LITTLE) is None


def test_files_and_summaries_are_carried_through_several_compactions() -> None:
    session = filled(Session.in_memory("/"), *work(1), *work(2))
    compacted(session, "## Goal\none\n## Progress\nx\n## Next Steps\ny")
    filled(session, *work(3), *work(4))
    preparation = prepare(session.path_to(), LITTLE)
    assert preparation is not None
    assert preparation.previous_summary is not None
    assert preparation.previous_summary.startswith("## Goal\none")
    assert "<read-files>" not in preparation.previous_summary
    assert preparation.read_files == ("r1", "r2", "r3")
    assert preparation.modified_files == ("w1", "w2", "w3")
    provider, complete = scripted(SUMMARY)
    asyncio.run(summarize(preparation, complete, model()))
    assert "## Goal\none" in asked_text(provider)


def test_a_compacted_session_is_the_same_when_it_is_opened_again(tmp_path: Path) -> None:
    with Session.create("/", directory=tmp_path) as session:
        filled(session, *work(1), *work(2))
        compacted(session)
        before, path = session.projection(), session.path
    assert path is not None
    with Session.open(path) as again:
        assert again.projection().messages == before.messages
        assert prepare(again.path_to(), LITTLE) is None


def results_by_call(messages: Sequence[AgentMessage]) -> list[int]:
    """How many results follow each call, before the next response."""
    counts: list[int] = []
    for position, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            following = messages[position + 1 :]
            end = next(
                (at for at, found in enumerate(following) if isinstance(found, AssistantMessage)), len(following)
            )
            found = [found.tool_call_id for found in following[:end] if isinstance(found, ToolResultMessage)]
            counts += [found.count(call.id) for call in message.tool_calls]
    return counts


def untimed(message: AgentMessage) -> AgentMessage:
    """A message without its time, which results have that stand for missing ones."""
    return message.model_copy(update={"timestamp": 0})


@given(transcripts(), st.integers(0, 60), st.integers(0, 60))
def test_after_any_compaction_each_call_has_one_result_and_nothing_is_lost(
    messages: list[AgentMessage], keep: int, again: int
) -> None:
    session = filled(Session.in_memory("/"), *messages)
    before = list(session.projection().messages)
    for budget in (keep, again):
        preparation = prepare(session.path_to(), CompactionSettings(keep_recent_tokens=budget))
        if preparation is None:
            return
        gone = (*preparation.messages, *preparation.split_prefix)
        session.append_compaction("s", preparation.first_kept_entry_id, preparation.tokens_before)
        summary, *kept = session.projection().messages
        assert isinstance(summary, CompactionSummaryMessage)
        assert [untimed(message) for message in (*gone, *kept)] == [untimed(message) for message in before]
        assert set(results_by_call(kept)) <= {1}
        assert not isinstance(kept[0], ToolResultMessage)
        assert preparation.tokens_kept == sum(map(message_tokens, kept))
        before = kept
        session.append_message(user("on"))
        before.append(session.projection().messages[-1])
