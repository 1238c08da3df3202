"""Runs, aborts, compaction, moves, queues and commands of the user that meet each other."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pi_core import ConfigError, ErrorDetails, Usage, hookimpl
from pi_core.testing import Barrier, Call, Reply, Wait
from pi_plugins.coding_agent import AgentSession

from .sessions import SUMMARY, Case

BUSY = ErrorDetails(status=503, retryable=True)
FULL = ErrorDetails(status=400, type="context_length_exceeded")
SOON = {"retry": {"baseDelayMs": 1}}
LATE = {"retry": {"baseDelayMs": 60_000}}
KEEP_LITTLE = {"compaction": {"keepRecentTokens": 20, "reserveTokens": 1000}}
SMALL = {"context_window": 20_500, "max_tokens": 100}


def busy() -> Reply:
    return Reply(error="overloaded", error_details=BUSY)


def full_context(text: str, *blocks: Any) -> Reply:
    return Reply(text, *blocks, usage=Usage(input=19_995, output=5, total_tokens=20_000))


def on(session: AgentSession, kind: str) -> asyncio.Event:
    """An event that is set by the next event of a type."""
    seen = asyncio.Event()
    session.subscribe(lambda event: seen.set() if event.type == kind else None)
    return seen


def roles(session: AgentSession) -> list[str]:
    return [message.role for message in session.agent.state.messages]


# --- aborts -------------------------------------------------------------------------------------------------------


async def test_an_abort_before_a_run_has_begun_keeps_the_message_and_makes_no_request(tmp_path: Path) -> None:
    case = Case(tmp_path, ["never"])
    session = await case.session()
    await session.submit("go")
    session.abort()
    await session.wait_for_idle()
    assert case.requests == []
    assert roles(session) == ["user", "assistant"]
    assert case.of("agent_settled") == [{"type": "agent_settled", "aborted": True}]


async def test_an_abort_while_a_hook_reads_the_input_holds_for_the_run_that_follows(tmp_path: Path) -> None:
    class Plugin:
        @hookimpl
        async def input(self, session: Any) -> None:
            session.abort()

    case = Case(tmp_path, ["never"], plugins=[Plugin()])
    session = await case.session()
    await session.prompt("go")
    assert case.requests == []
    assert case.of("agent_settled")[0]["aborted"] is True


async def test_an_abort_of_the_compaction_before_a_run_ends_the_run(tmp_path: Path) -> None:
    barrier = Barrier()
    case = Case(
        tmp_path,
        ["first " * 60, full_context("second " * 60), Reply(Wait(barrier), SUMMARY), "never"],
        settings=KEEP_LITTLE,
        model=SMALL,
    )
    session = await case.session()
    session.compactor.enabled = False
    for text in ("one", "two"):
        await session.prompt(text)
    session.compactor.enabled = True
    await session.submit("three")
    await case.asks(3)
    session.abort()
    await session.wait_for_idle()
    assert len(case.requests) == 3
    assert roles(session)[-2:] == ["user", "assistant"]
    assert case.of("compaction_end")[0]["aborted"] is True


async def test_nothing_is_compacted_after_an_abort(tmp_path: Path) -> None:
    barrier = Barrier()
    call = full_context("long " * 100, Call("bash", {"command": "echo hi"}))
    case = Case(tmp_path, ["go " * 100, call, Reply(Wait(barrier)), SUMMARY], settings=KEEP_LITTLE, model=SMALL)
    session = await case.session()
    await session.prompt("begin " * 100)
    session.compactor.enabled = False
    await session.submit("go")
    await case.asks(3)
    session.compactor.enabled = True
    session.abort()
    await session.wait_for_idle()
    assert "compaction_start" not in case.types
    assert session.compactor.is_due()


async def test_a_compaction_that_is_given_up_as_it_is_announced_makes_no_request(tmp_path: Path) -> None:
    case = Case(tmp_path, ["answer " * 60, "never"], settings=KEEP_LITTLE)
    session = await case.session()
    await session.prompt("one " * 60)
    session.subscribe(lambda event: session.abort() if event.type == "compaction_start" else None)
    with pytest.raises(ConfigError, match="given up"):
        await session.compactor.manually()
    assert len(case.requests) == 1


async def test_the_end_of_what_was_aborted_is_told_before_the_abort_is_over(tmp_path: Path) -> None:
    case = Case(tmp_path, [busy(), "never"], settings=LATE)
    session = await case.session()
    waits = on(session, "auto_retry_start")
    await session.submit("go")
    await waits.wait()
    session.abort()
    await session.runs.aborted_run()
    assert case.types[-2:] == ["auto_retry_end", "agent_settled"]


# --- attempts -----------------------------------------------------------------------------------------------------


async def test_what_is_queued_begins_when_the_wait_for_an_attempt_is_given_up(tmp_path: Path) -> None:
    case = Case(tmp_path, [busy(), "two"], settings=LATE)
    session = await case.session()
    waits = on(session, "auto_retry_start")
    await session.submit("go")
    await waits.wait()
    await session.submit("then", delivery="steer")
    session.runs.abort_retry()
    await session.wait_for_idle()
    assert session.answer_text() == "two"
    assert len(session.steering) == 0


async def test_giving_up_a_wait_says_nothing_about_the_next_one(tmp_path: Path) -> None:
    barrier = Barrier()
    failing = Reply(Wait(barrier), error="overloaded", error_details=BUSY)
    case = Case(tmp_path, [failing, "fine"], settings=SOON)
    session = await case.session()
    await session.submit("go")
    await case.asks(1)
    session.runs.abort_retry()
    barrier.release()
    await session.wait_for_idle()
    assert session.answer_text() == "fine"


async def test_the_failed_answer_is_left_out_though_another_entry_came_after_it(tmp_path: Path) -> None:
    case = Case(tmp_path, [busy(), "fine"], settings=SOON)
    session = await case.session()
    session.subscribe(
        lambda event: None if event.type != "auto_retry_start" else session.store.append_custom("note") and None
    )
    await session.prompt("go")
    assert roles(session) == ["user", "assistant"]
    edited = next(entry for entry in session.store.entries if entry.type == "context_edit")
    assert session.store.entry(edited.to_json()["targetId"]).role == "assistant"


async def test_a_request_that_did_not_fit_announces_no_attempt_when_nothing_can_be_compacted(tmp_path: Path) -> None:
    case = Case(tmp_path, [Reply(error="prompt is too long: 250000 tokens > 200000 maximum", error_details=FULL)])
    session = await case.session()
    await session.prompt("go")
    assert [event["willRetry"] for event in case.of("agent_end")] == [False]


async def test_a_long_run_is_compacted_each_time_it_has_gone_on_and_does_not_fit_again(tmp_path: Path) -> None:
    def too_long() -> Reply:
        return Reply(error="prompt is too long: 250000 tokens > 200000 maximum", error_details=FULL)

    call = Reply(Call("bash", {"command": "seq 200"}))
    of_history, of_the_turn = SUMMARY, SUMMARY
    replies = ["an answer " * 50, too_long(), SUMMARY, call, too_long(), of_history, of_the_turn, "fits"]
    case = Case(tmp_path, replies, settings=KEEP_LITTLE)
    session = await case.session()
    await session.prompt("one " * 50)
    await session.prompt("two")
    assert session.answer_text() == "fits"
    assert [event["reason"] for event in case.of("compaction_start")] == ["overflow", "overflow"]


async def test_further_attempts_have_what_is_left_of_the_limits(tmp_path: Path) -> None:
    turn = Reply(Call("bash", {"command": "true"}))
    case = Case(
        tmp_path, [turn, busy(), turn, busy(), turn, "never"], settings={**SOON, "plugins": {"limits": {"turns": 3}}}
    )
    session = await case.session()
    await session.prompt("go")
    assert len(case.requests) == 5
    last = session.last_answer
    assert last is not None
    assert last.error_message == "Stopped after 3 turns: limits.turns is 3"
    await session.prompt("again")
    assert len(case.requests) == 6


# --- compaction ---------------------------------------------------------------------------------------------------


async def test_a_message_that_comes_during_a_compaction_by_hand_runs_afterwards(tmp_path: Path) -> None:
    barrier = Barrier()
    case = Case(tmp_path, ["answer " * 60, Reply(Wait(barrier), SUMMARY), "two"], settings=KEEP_LITTLE)
    session = await case.session()
    await session.prompt("one " * 60)
    compacting = asyncio.create_task(session.compactor.manually())
    await case.asks(2)
    assert await session.submit("next") == "started"
    with pytest.raises(ConfigError, match="The agent works"):
        await session.compactor.manually()
    barrier.release()
    await compacting
    await session.wait_for_idle()
    assert case.types[-5:] == ["compaction_start", "compaction_end", "agent_start", "agent_end", "agent_settled"]
    assert case.asked()[-1][-1] == "u:next"
    assert roles(session) == ["compactionSummary", "assistant", "user", "assistant"]


async def test_a_request_for_a_summary_is_tried_again_as_others_are(tmp_path: Path) -> None:
    case = Case(tmp_path, ["answer " * 60, busy(), busy(), SUMMARY], settings={**KEEP_LITTLE, **SOON})
    session = await case.session()
    await session.prompt("one " * 60)
    result = await session.compactor.manually()
    assert "A goal." in result.summary
    retried = [event for event in case.events if event.type.startswith("summarization_retry")]
    assert [event.to_json() for event in retried] == [
        *(
            event
            for attempt in (1, 2)
            for event in (
                {
                    "type": "summarization_retry_scheduled",
                    "attempt": attempt,
                    "maxAttempts": 3,
                    "delayMs": attempt,
                    "errorMessage": "overloaded",
                },
                {"type": "summarization_retry_attempt_start", "source": "compaction", "reason": "manual"},
            )
        ),
        {"type": "summarization_retry_finished"},
    ]


async def test_an_abort_ends_the_wait_for_another_attempt_at_a_summary(tmp_path: Path) -> None:
    case = Case(tmp_path, ["answer " * 60, busy(), "never"], settings={**KEEP_LITTLE, **LATE})
    session = await case.session()
    await session.prompt("one " * 60)
    scheduled = on(session, "summarization_retry_scheduled")
    compacting = asyncio.create_task(session.compactor.manually())
    await scheduled.wait()
    session.abort()
    with pytest.raises(ConfigError, match="given up"):
        await compacting
    assert case.types[-2:] == ["summarization_retry_finished", "compaction_end"]
    assert len(case.requests) == 2


async def test_the_totals_include_what_a_summary_cost_that_could_not_be_used(tmp_path: Path) -> None:
    useless = Reply("no headings", usage=Usage(input=70, output=7, total_tokens=77))
    case = Case(tmp_path, ["answer " * 60, useless, useless], settings=KEEP_LITTLE)
    session = await case.session()
    await session.prompt("one " * 60)
    before = session.stats()
    with pytest.raises(ConfigError):
        await session.compactor.manually()
    assert (session.stats().input - before.input, session.stats().output - before.output) == (140, 14)


# --- moves --------------------------------------------------------------------------------------------------------


async def a_branch(case: Case) -> tuple[AgentSession, str]:
    """A session with two messages of the user, and the entry of the second one."""
    session = await case.session()
    await session.prompt("one")
    await session.prompt("two")
    return session, session.moves.fork_points()[1][0]


async def test_a_message_that_comes_during_a_move_runs_at_the_new_place(tmp_path: Path) -> None:
    barrier = Barrier()
    case = Case(tmp_path, ["1", "2", Reply(Wait(barrier), SUMMARY), "3"])
    session, second = await a_branch(case)
    moving = asyncio.create_task(session.moves.navigate(second, summarize=True))
    await case.asks(3)
    await session.submit("three")
    with pytest.raises(ConfigError, match="The agent works"):
        await session.moves.navigate(second)
    barrier.release()
    await moving
    await session.wait_for_idle()
    assert roles(session) == ["user", "assistant", "branchSummary", "user", "assistant"]


async def test_an_abort_gives_up_the_summary_of_a_branch_and_the_move_with_it(tmp_path: Path) -> None:
    case = Case(tmp_path, ["1", "2", Reply(Wait(Barrier())), "never"])
    session, second = await a_branch(case)
    leaf = session.store.leaf_id
    moving = asyncio.create_task(session.moves.navigate(second, summarize=True))
    await case.asks(3)
    session.abort()
    with pytest.raises(ConfigError, match="given up"):
        await moving
    assert session.store.leaf_id == leaf
    assert session.is_idle


async def test_a_session_is_not_left_while_a_command_of_the_user_runs(tmp_path: Path) -> None:
    case = Case(tmp_path, [])
    session = await case.session()
    begun = asyncio.Event()
    running = asyncio.create_task(session.bash.run("echo begun; sleep 60", on_update=lambda text: begun.set()))
    await begun.wait()
    with pytest.raises(ConfigError, match="A command runs"):
        await session.moves.new()
    session.bash.abort()
    assert (await running).cancelled
    await session.moves.new()


async def test_requests_after_a_move_carry_the_id_of_the_new_session(tmp_path: Path) -> None:
    case = Case(tmp_path, ["1", "2"])
    session = await case.session()
    await session.prompt("one")
    await session.moves.new()
    await session.prompt("two")
    ids = [request.options.session_id for request in case.requests]
    assert ids[1] == session.store.id
    assert ids[0] != ids[1]


# --- the end of a run ---------------------------------------------------------------------------------------------


async def test_a_message_is_taken_as_soon_as_the_end_of_a_run_is_told(tmp_path: Path) -> None:
    case = Case(tmp_path, ["one", "two"])
    session = await case.session()
    sent: list[str] = []

    async def again(event: Any) -> None:
        if event.type == "agent_settled" and not sent:
            sent.append(await session.submit("again"))

    session.subscribe(lambda event: again(event))
    await session.prompt("go")
    assert sent == ["started"]
    assert session.answer_text() == "two"
    assert case.types.count("agent_settled") == 2


async def test_work_that_plugins_ask_for_at_the_end_begins_when_all_of_them_were_called(tmp_path: Path) -> None:
    order: list[str] = []

    class Asking:
        @hookimpl
        async def agent_settled(self, session: Any) -> None:
            order.append("asks")
            if order.count("asks") == 1:
                await session.submit("again")

    class Late:
        @hookimpl(trylast=True)
        async def agent_settled(self) -> None:
            order.append("late")

        @hookimpl
        def on_agent_start(self) -> None:
            order.append("run")

    case = Case(tmp_path, ["one", "two"], plugins=[Asking(), Late()])
    session = await case.session()
    await session.prompt("go")
    assert order == ["run", "asks", "late", "run", "asks", "late"]
    assert session.answer_text() == "two"


async def test_a_hook_that_waits_for_its_own_run_is_told_so(tmp_path: Path) -> None:
    class Plugin:
        name = "waits"

        @hookimpl
        async def agent_settled(self, session: Any) -> None:
            await session.wait_for_idle()

    case = Case(tmp_path, ["one"], plugins=[Plugin()])
    session = await case.session()
    await session.prompt("go")
    assert "cannot wait" in case.of("extension_error")[0]["error"]


class Broken:
    """Fails before a run."""

    name = "broken"

    @hookimpl
    async def before_agent_start(self) -> None:
        raise RuntimeError("boom")


async def test_a_failure_before_a_run_is_raised_where_somebody_waits(tmp_path: Path) -> None:
    case = Case(tmp_path, ["never"], plugins=[Broken()])
    session = await case.session()
    with pytest.raises(Exception, match="boom"):
        await session.prompt("go")
    assert case.types == ["agent_settled"]


async def test_a_failure_before_a_run_is_shown_where_nobody_waits(tmp_path: Path) -> None:
    case = Case(tmp_path, ["never"], plugins=[Broken()])
    session = await case.session()
    settled = on(session, "agent_settled")
    await session.submit("go")
    await settled.wait()
    assert case.types == ["notice", "agent_settled"]
    assert "boom" in case.of("notice")[0]["message"]
    await session.close()


async def test_a_model_that_cannot_think_does_not_take_the_level_away_from_the_next_one(tmp_path: Path) -> None:
    case = Case(tmp_path, [], model={"reasoning": True})
    session = await case.session()
    thinking = session.model
    await session.choice.set_level("high")
    await session.choice.set_model(thinking.model_copy(update={"id": "plain", "reasoning": False}))
    assert session.thinking_level == "off"
    await session.choice.set_model(thinking)
    assert session.thinking_level == "high"


async def test_a_closed_session_takes_no_message(tmp_path: Path) -> None:
    session = await Case(tmp_path, ["never"]).session()
    await session.close()
    with pytest.raises(ConfigError, match="closed"):
        await session.submit("go")


async def test_going_to_the_session_that_is_open_changes_nothing(tmp_path: Path) -> None:
    case = Case(tmp_path, ["one"], in_memory=False, session_dir=tmp_path / "sessions")
    session = await case.session()
    await session.prompt("go")
    store = session.store
    assert store.path is not None
    await session.moves.open(store.path)
    assert session.store is store
    await session.close()


async def test_a_move_finds_the_model_of_a_session_that_only_a_plugin_knows(tmp_path: Path) -> None:
    case = Case(tmp_path, ["one"], in_memory=False, session_dir=tmp_path / "sessions")
    session = await case.session()
    await session.prompt("go")
    first, known = session.store.path, session.model
    assert first is not None
    await session.moves.new()
    await session.choice.set_model(known.model_copy(update={"id": "other"}))
    await session.moves.open(first)
    assert session.model.id == known.id
    assert "notice" not in case.types
    await session.close()
