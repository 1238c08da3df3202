"""Random sessions: what is written comes back, and what the model reads is always well formed."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pi_core import AssistantMessage, ToolCallContent, ToolResultMessage, UserMessage
from pi_plugins.sessions.projection import Projection, ProjectionBuilder
from pi_plugins.sessions.session import Session

from .talking import assistant, result, user

CALLS = st.lists(st.sampled_from("abc"), max_size=3)
STEPS = st.one_of(
    st.tuples(st.just("user"), st.text(max_size=3)),
    st.tuples(st.just("assistant"), CALLS),
    st.tuples(st.just("result"), st.sampled_from("abc")),
    st.tuples(st.just("record"), st.integers(0, 2)),
    st.tuples(st.just("branch"), st.integers(-1, 30)),
    st.tuples(st.just("compact"), st.integers(-1, 30)),
    st.tuples(st.just("edit"), st.tuples(st.integers(0, 30), st.sampled_from([None, "new"]))),
    st.tuples(st.just("label"), st.integers(0, 30)),
    st.tuples(st.just("text"), st.text(max_size=3)),
    st.tuples(st.just("summary"), st.text(max_size=3)),
    st.tuples(st.just("model"), st.sampled_from("xy")),
)


def take(session: Session, kind: str, what: Any) -> None:
    """Do one step; one that makes no sense now is left out."""
    path = session.path_to()
    ids = [entry.id for entry in path]
    if kind == "user":
        session.append_message(user(what))
    elif kind == "assistant":
        session.append_message(assistant("" if what else "said", *what))
    elif kind == "result":
        session.append_message(result(what))
    elif kind == "record":
        last = next(
            (one.message for one in reversed(session.path_to() if ids else []) if one.role == "assistant"), None
        )
        if isinstance(last, AssistantMessage) and what < len(last.tool_calls):
            session.record_tool_result(last.tool_calls[what], result(last.tool_calls[what].id))
    elif kind == "branch":
        everything = [entry.id for entry in session.entries]
        session.branch(everything[what % len(everything)] if everything and what >= 0 else None)
    elif kind == "text":
        session.append_custom_message("t", what)
    elif kind == "summary":
        session.append_branch_summary(None, what)
    elif kind == "model":
        session.append_model_change("p", what)
    elif ids and kind == "compact":
        session.append_compaction("s", ids[what % len(ids)] if what >= 0 else None, 1)
    elif ids and kind == "edit":
        session.append_context_edit(ids[what[0] % len(ids)], what[1])
    elif ids and kind == "label":
        session.append_label(ids[what % len(ids)], "x")


def in_pairs(projection: Projection) -> bool:
    """Whether each call is directly followed by its one result, in the order of the calls."""
    waiting: list[ToolCallContent] = []
    for message in projection.messages:
        if isinstance(message, ToolResultMessage):
            if not waiting or waiting.pop(0).id != message.tool_call_id:
                return False
        elif waiting:
            return False
        if isinstance(message, AssistantMessage):
            waiting = list(message.tool_calls)
    return not waiting


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_a_session_comes_back_as_it_was_written(steps: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with Session.create("/work", directory=Path(folder)) as session:
            session.append_message(UserMessage(content="first", timestamp=1))
            for kind, what in steps:
                take(session, kind, what)
                assert in_pairs(session.projection())
        assert session.path is not None
        again = Session.open(session.path, read_only=True)
        assert again.problems == []
        assert again.stats() == session.stats()
        for entry in session.entries:
            for one in (session, again):
                one.branch(entry.id)
            assert read(again) == read(session)
        assert [one.to_json() for one in again.entries] == [one.to_json() for one in session.entries]


def read(session: Session) -> object:
    """What the model reads, entries by their ids."""
    found = session.projection()
    return dataclasses.replace(found, compaction=found.compaction and found.compaction.id)  # type: ignore[arg-type]


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_what_is_kept_while_a_session_grows_is_what_is_built_from_its_path(steps: list[tuple[str, Any]]) -> None:
    session = Session.in_memory("/work")
    for kind, what in steps:
        take(session, kind, what)
        assert session.projection() == ProjectionBuilder(session.path_to()).projection()
