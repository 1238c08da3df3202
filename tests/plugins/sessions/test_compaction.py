"""Compaction from the entries of a session to its summary."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from pi_core import AbortController, AgentMessage, AssistantMessage, Context, StreamOptions, Usage
from pi_core.testing import Barrier, Call, Reply, Wait
from pi_plugins.config.settings import CompactionLimits, CompactionSettings
from pi_plugins.sessions.bodies import BranchSummary, Compaction, ContextEdit
from pi_plugins.sessions.compaction import (
    CompactionError,
    CompactionPreparation,
    CompactionResult,
    Complete,
    message_tokens,
    prepare,
    summarize,
)
from pi_plugins.sessions.messages import CompactionSummaryMessage

from .compacting import SUMMARY, asked_text, assistant, model, path_of, result, roles, scripted, user

LITTLE = CompactionSettings(keep_recent_tokens=100)
TALK = [user("first " + "a" * 400), assistant("one " + "b" * 400), user("second " + "c" * 400), assistant("two")]


def prepared(*bodies: Any, settings: CompactionSettings = LITTLE, **options: Any) -> CompactionPreparation:
    found = prepare(path_of(*bodies), settings, **options)
    assert found is not None
    return found


def preparation(*messages: AgentMessage, **fields: Any) -> CompactionPreparation:
    return CompactionPreparation(messages, first_kept_entry_id="kept", tokens_before=9, **fields)


def summarized(given: CompactionPreparation, complete: Complete, **options: Any) -> CompactionResult:
    return asyncio.run(summarize(given, complete, options.pop("model", model()), **options))


# --- what is compacted ---


def test_the_newest_messages_are_kept_and_the_rest_is_to_be_summarised() -> None:
    found = prepared(*TALK)
    assert found.messages == tuple(TALK[:2])
    assert found.first_kept_entry_id == "e2"
    assert found.summarized_entry_ids == ("e0", "e1")
    assert found.tokens_before == sum(map(message_tokens, TALK))
    assert found.tokens_kept == sum(map(message_tokens, TALK[2:]))


def test_there_is_nothing_to_compact_in_a_short_session_or_right_after_a_compaction() -> None:
    assert prepare([], LITTLE) is None
    assert prepare(path_of(user("hi"), assistant("hello")), LITTLE) is None
    done = ("compaction", Compaction(summary="s", first_kept_entry_id="e2"))
    assert prepare(path_of(*TALK, done), CompactionSettings(keep_recent_tokens=0)) is None


def test_a_further_compaction_begins_where_the_last_one_kept_and_carries_its_summary_on() -> None:
    before = Compaction(
        summary="## Goal\nold\n\n<read-files>\nr\n</read-files>",
        first_kept_entry_id="e2",
        details={"readFiles": ["r"], "modifiedFiles": ["m"]},
    )
    found = prepared(*TALK, ("compaction", before), user("third " + "d" * 400), assistant("three"))
    assert found.messages == tuple(TALK[2:])
    assert found.previous_summary == "## Goal\nold"
    assert found.first_kept_entry_id == "e5"
    assert (found.read_files, found.modified_files) == (("r",), ("m",))


def test_a_summary_is_made_of_what_the_model_reads() -> None:
    edited = ("context_edit", ContextEdit(target_id="e1", replacement=None))
    found = prepared(TALK[0], TALK[1], edited, *TALK[2:])
    assert found.messages == (TALK[0],)


def test_files_of_a_branch_that_is_summarised_are_kept() -> None:
    branch = BranchSummary(from_id="x", summary="tried", details={"readFiles": ["b.txt"]})
    found = prepared(user("go"), ("branch_summary", branch), *TALK)
    assert found.read_files == ("b.txt",)


def test_a_turn_larger_than_what_is_kept_is_split() -> None:
    steps = [
        step
        for number in range(4)
        for step in (assistant("", (f"c{number}", "read", {"path": f"f{number}"})), result(f"c{number}", "x" * 400))
    ]
    found = prepared(user("before"), assistant("yes"), user("long"), *steps)
    assert roles(found.messages) == ["user", "assistant"]
    assert roles(found.split_prefix) == ["user", *["assistant", "toolResult"] * 3]
    assert found.first_kept_entry_id == "e9"
    assert found.read_files == ("f0", "f1", "f2")


def test_a_model_keeps_what_its_own_limits_say() -> None:
    own = CompactionSettings(
        keep_recent_tokens=10_000, model_overrides={"scripted/scripted": CompactionLimits(keep_recent_tokens=100)}
    )
    assert prepare(path_of(*TALK), own) is None
    assert prepare(path_of(*TALK), own, model=model()) is not None


# --- the summary ---


def test_a_summary_takes_one_request_beside_the_session() -> None:
    provider, complete = scripted(Reply(SUMMARY, usage=Usage(input=7, output=2, total_tokens=9)))
    done = summarized(prepared(*TALK, focus="the tests"), complete, level="high")
    request = provider.requests[0]
    assert request.tool_names == []
    assert (request.options.cache_retention, request.options.reasoning) == ("none", "high")
    assert request.options.session_id
    assert asked_text(provider).startswith("<conversation>\n[User]: first aaa")
    assert "<previous-summary>" not in asked_text(provider)
    assert asked_text(provider).endswith("Attend to this in particular: the tests")
    assert (done.summary, done.first_kept_entry_id) == (SUMMARY, "e2")
    assert done.usage == Usage(input=7, output=2, total_tokens=9)
    assert done.details == {"readFiles": [], "modifiedFiles": [], "summarizedEntries": {"first": "e0", "last": "e1"}}


def test_the_estimate_afterwards_is_the_summary_and_what_is_kept() -> None:
    _, complete = scripted(SUMMARY)
    done = summarized(prepared(*TALK), complete)
    kept = sum(map(message_tokens, TALK[2:]))
    assert done.estimated_tokens_after == kept + message_tokens(CompactionSummaryMessage(summary=SUMMARY))


def test_each_summary_has_a_prompt_cache_of_its_own() -> None:
    provider, complete = scripted(SUMMARY, SUMMARY)
    summarized(preparation(user("a")), complete)
    summarized(preparation(user("a")), complete)
    assert len({request.options.session_id for request in provider.requests}) == 2


def test_the_lists_of_files_stand_below_the_summary() -> None:
    _, complete = scripted(SUMMARY)
    done = summarized(preparation(user("a"), read_files=("r",), modified_files=("m",)), complete)
    assert done.summary.endswith("<read-files>\nr\n</read-files>\n\n<modified-files>\nm\n</modified-files>")
    assert done.details == {"readFiles": ["r"], "modifiedFiles": ["m"]}


def test_the_summary_before_is_carried_on() -> None:
    provider, complete = scripted(SUMMARY)
    summarized(preparation(user("a"), previous_summary="## Goal\nold"), complete)
    assert "<previous-summary>\n## Goal\nold\n</previous-summary>" in asked_text(provider)


def test_a_split_turn_has_a_summary_of_its_own() -> None:
    provider, complete = scripted(
        Reply("## Goal\nhistory", usage=Usage(output=1)), Reply("## Goal\nturn", usage=Usage(output=2))
    )
    done = summarized(preparation(user("old"), split_prefix=(user("long"),)), complete)
    assert done.summary == "## Goal\nhistory\n\n---\n\n# Beginning of the turn that goes on below\n\n## Goal\nturn"
    assert asked_text(provider, 1).startswith("<conversation>\n[User]: long\n</conversation>")
    assert done.usage is not None
    assert done.usage.output == 3


def test_a_split_turn_alone_leaves_the_summary_before_as_it_is() -> None:
    provider, complete = scripted("## Goal\nturn")
    done = summarized(preparation(previous_summary="## Goal\nold", split_prefix=(user("long"),)), complete)
    assert done.summary.startswith("## Goal\nold\n\n---\n\n")
    assert len(provider.requests) == 1


# --- answers that are no summaries ---


@pytest.mark.parametrize(
    "bad",
    [
        Reply("## Goal\nhalf", stop_reason="length"),
        Reply(Call("read", {"path": "a"})),
        Reply(""),
        "Sure, I will go on with the work.",
    ],
)
def test_an_unusable_answer_is_asked_for_once_more(bad: Reply | str) -> None:
    provider, complete = scripted(bad, "## Goal\nx")
    assert summarized(preparation(user("a")), complete).summary == "## Goal\nx"
    again = provider.requests[1].messages
    assert again[0] == provider.requests[0].messages[0]
    assert "cannot be used: it" in str(again[-1].content)
    assert not any(message.tool_calls for message in again if isinstance(message, AssistantMessage))


def test_a_second_unusable_answer_ends_the_compaction() -> None:
    provider, complete = scripted("no", "no again")
    with pytest.raises(
        CompactionError, match="scripted/scripted wrote no usable summary: it says nothing under ## Goal"
    ):
        summarized(preparation(user("a")), complete)
    assert len(provider.requests) == 2


def test_a_failed_request_ends_the_compaction_with_its_reason() -> None:
    _, complete = scripted(Reply(error="401: invalid key"))
    with pytest.raises(CompactionError, match="The request for a summary failed: 401: invalid key") as failure:
        summarized(preparation(user("a")), complete)
    assert not failure.value.aborted


def test_nothing_is_asked_when_no_message_says_anything() -> None:
    provider, complete = scripted(SUMMARY)
    with pytest.raises(CompactionError, match="nothing to summarise"):
        summarized(preparation(user("  ")), complete)
    assert provider.requests == []


def test_an_abort_ends_a_request_that_runs() -> None:
    async def main() -> None:
        controller, barrier = AbortController(), Barrier()
        _, complete = scripted(Reply("a part", Wait(barrier), "never"))
        running = asyncio.ensure_future(summarize(preparation(user("a")), complete, model(), signal=controller.signal))
        await asyncio.sleep(0)
        controller.abort("enough")
        with pytest.raises(CompactionError) as failure:
            await running
        assert failure.value.aborted

    asyncio.run(main())


def test_an_abort_between_two_requests_keeps_the_second_from_being_made() -> None:
    controller = AbortController()
    provider, plain = scripted("## Goal\nhistory", "## Goal\nturn")

    async def complete(context: Context, options: StreamOptions) -> AssistantMessage:
        answer = await plain(context, options)
        controller.abort("enough")
        return answer

    with pytest.raises(CompactionError, match="enough") as failure:
        summarized(preparation(user("a"), split_prefix=(user("b"),)), complete, signal=controller.signal)
    assert failure.value.aborted
    assert len(provider.requests) == 1


# --- conversations that are too long for one request ---


def long_talk(count: int) -> Sequence[AgentMessage]:
    return [user(f"[{number}] " + "x" * 3000) for number in range(count)]


def test_a_conversation_larger_than_the_window_is_summarised_in_pieces() -> None:
    provider, complete = scripted(*[f"## Goal\nup to {number}" for number in range(20)])
    small = model(16_384)
    done = summarized(preparation(*long_talk(24), previous_summary="## Goal\nold"), complete, model=small)
    asked = [asked_text(provider, number) for number in range(len(provider.requests))]
    assert len(asked) > 1
    assert done.summary == f"## Goal\nup to {len(asked) - 1}"
    assert "## Goal\nold" in asked[0]
    assert all(f"## Goal\nup to {number}" in text for number, text in enumerate(asked[1:]))
    assert all(sum(f"[{number}] " in text for text in asked) == 1 for number in range(24))
    assert all(len(text) / 4 + 4096 < 16_384 for text in asked)


def test_a_message_larger_than_the_window_is_cut() -> None:
    provider, complete = scripted("## Goal\nx", "## Goal\nx")
    summarized(preparation(user("y" * 200_000)), complete, model=model(16_384))
    assert "more characters left out" in asked_text(provider)
    assert len(asked_text(provider)) < 16_384 * 4


def test_pieces_get_smaller_when_the_server_counts_more_tokens() -> None:
    too_long = Reply(error="prompt is too long: 9000 tokens > 8000 maximum")
    provider, complete = scripted(too_long, "## Goal\na", "## Goal\nb", "## Goal\nc")
    done = summarized(preparation(*long_talk(4)), complete)
    assert len(provider.requests) >= 3
    assert done.summary in ("## Goal\nb", "## Goal\nc")


def test_a_window_that_nothing_fits_is_an_error_and_no_endless_try() -> None:
    provider, complete = scripted(*[Reply(error="prompt is too long")] * 20)
    with pytest.raises(CompactionError, match="too long to be summarised"):
        summarized(preparation(*long_talk(4)), complete)
    assert len(provider.requests) < 10
