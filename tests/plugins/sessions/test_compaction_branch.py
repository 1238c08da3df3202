"""The summary of a branch that is left."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pi_core import Usage
from pi_core.testing import Reply
from pi_plugins.config.settings import BranchSummarySettings
from pi_plugins.sessions.bodies import BranchSummary, Compaction, ModelChange
from pi_plugins.sessions.compaction import BranchSummaryResult, Complete, summarize_branch
from pi_plugins.sessions.entries import Entry

from .compacting import SUMMARY, asked_text, assistant, model, path_of, result, scripted, user

WORK = [user("try it"), assistant("", ("1", "edit", {"path": "a.txt"})), result("1"), assistant("it failed")]


def summarized(entries: Sequence[Entry], complete: Complete, **options: Any) -> BranchSummaryResult | None:
    chosen, settings = options.pop("model", model()), options.pop("settings", BranchSummarySettings())
    return asyncio.run(summarize_branch(entries, complete, chosen, "off", settings, **options))


def test_a_branch_is_summarised_with_its_files() -> None:
    provider, complete = scripted(Reply(SUMMARY, usage=Usage(output=5)))
    done = summarized(path_of(*WORK), complete, focus="why it failed")
    assert done is not None
    assert done.summary == f"{SUMMARY}\n\n<modified-files>\na.txt\n</modified-files>"
    assert done.details == {"readFiles": [], "modifiedFiles": ["a.txt"]}
    assert done.usage == Usage(output=5)
    text = asked_text(provider)
    assert "path that the user left" in text
    assert "Critical Context" not in text
    assert text.endswith("Attend to this in particular: why it failed")


def test_a_branch_on_which_nothing_was_said_has_no_summary() -> None:
    provider, complete = scripted(SUMMARY)
    assert summarized(path_of(("model_change", ModelChange(provider="p", model_id="m"))), complete) is None
    assert provider.requests == []


def test_what_does_not_fit_is_left_out_the_oldest_first() -> None:
    provider, complete = scripted(*["## Goal\nx"] * 5)
    talk = [user(f"[{number}] " + "y" * 3996) for number in range(8)]
    settings = BranchSummarySettings(reserve_tokens=5000)
    summarized(path_of(*talk), complete, model=model(10_000), settings=settings)
    asked = "".join(asked_text(provider, number) for number in range(len(provider.requests)))
    assert [number for number in range(8) if f"[{number}] " in asked] == [3, 4, 5, 6, 7]


def test_a_single_message_that_does_not_fit_is_not_left_out() -> None:
    provider, complete = scripted("## Goal\nx")
    summarized(path_of(user("old"), user("y" * 40_000)), complete, model=model(10_000))
    assert "yyy" in asked_text(provider)
    assert "old" not in asked_text(provider)


def test_what_was_compacted_on_the_branch_is_read_as_it_was_said() -> None:
    provider, complete = scripted(SUMMARY)
    compacted = ("compaction", Compaction(summary="short", first_kept_entry_id="e3"))
    summarized(path_of(*WORK, compacted, user("more")), complete)
    assert "[User]: try it" in asked_text(provider)
    assert "short" not in asked_text(provider)


def test_files_of_a_branch_below_are_taken_over() -> None:
    _, complete = scripted(SUMMARY)
    below = ("branch_summary", BranchSummary(from_id="x", summary="tried", details={"readFiles": ["r"]}))
    done = summarized(path_of(below, *WORK), complete)
    assert done is not None
    assert done.details == {"readFiles": ["r"], "modifiedFiles": ["a.txt"]}
