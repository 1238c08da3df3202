"""The runs of a session: attempts after failures, compaction around and between them, queues, aborts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pi_core import AgentBusyError, Block, ConfigError, ErrorDetails, RunContext, ToolCall, Usage, hookimpl
from pi_core.testing import Barrier, Call, Reply, Wait

from .sessions import SUMMARY, Case

SOON = {"retry": {"baseDelayMs": 1}}
BUSY = ErrorDetails(status=503, retryable=True)
FULL = ErrorDetails(status=400, type="context_length_exceeded")
KEEP_LITTLE = {"compaction": {"keepRecentTokens": 20, "reserveTokens": 1000}}


def busy() -> Reply:
    return Reply(error="overloaded", error_details=BUSY)


def full() -> Reply:
    return Reply(error="prompt is too long: 250000 tokens > 200000 maximum", error_details=FULL)


def used(text: str, tokens: int) -> Reply:
    return Reply(text, usage=Usage(input=tokens - 5, output=5, total_tokens=tokens))


async def test_a_failure_that_may_pass_is_tried_again_without_the_failed_answer(tmp_path: Path) -> None:
    case = Case(tmp_path, [busy(), "fine"], settings=SOON)
    session = await case.session()
    await session.prompt("go")
    assert case.asked() == [["u:go"], ["u:go"]]
    assert case.types == [
        "agent_start",
        "agent_end",
        "auto_retry_start",
        "entry_appended",
        "agent_start",
        "auto_retry_end",
        "agent_end",
        "agent_settled",
    ]
    assert [event["willRetry"] for event in case.of("agent_end")] == [True, False]
    assert case.of("auto_retry_end") == [{"type": "auto_retry_end", "success": True, "attempt": 1}]
    assert [message.role for message in session.agent.state.messages] == ["user", "assistant"]


async def test_attempts_end_after_the_last_one_and_the_failure_stays(tmp_path: Path) -> None:
    case = Case(tmp_path, [busy() for _ in range(9)], settings=SOON)
    session = await case.session()
    await session.prompt("go")
    assert len(case.requests) == 4
    assert [event["delayMs"] for event in case.of("auto_retry_start")] == [1, 2, 4]
    assert case.of("auto_retry_end")[-1] == {
        "type": "auto_retry_end",
        "success": False,
        "attempt": 3,
        "finalError": "overloaded",
    }
    last = session.last_answer
    assert last is not None
    assert last.error_message == "overloaded"


@pytest.mark.parametrize("details", [ErrorDetails(status=401), ErrorDetails(status=400, type="invalid_request_error")])
async def test_a_failure_that_stays_is_not_tried_again(tmp_path: Path, details: ErrorDetails) -> None:
    case = Case(tmp_path, [Reply(error="no", error_details=details), "never"], settings=SOON)
    session = await case.session()
    await session.prompt("go")
    assert len(case.requests) == 1
    assert "auto_retry_start" not in case.types


async def test_the_wait_for_an_attempt_can_be_given_up(tmp_path: Path) -> None:
    case = Case(tmp_path, [busy(), "never"], settings={"retry": {"baseDelayMs": 60_000}})
    session = await case.session()
    begun = asyncio.Event()
    session.subscribe(lambda event: begun.set() if event.type == "auto_retry_start" else None)
    assert await session.submit("go") == "started"
    await begun.wait()
    assert session.runs.waits_for_retry
    session.abort()
    await session.wait_for_idle()
    assert len(case.requests) == 1
    assert case.of("agent_settled") == [{"type": "agent_settled", "aborted": True}]
    assert case.of("auto_retry_end")[0]["success"] is False


async def test_a_delay_the_server_asks_for_is_told_when_it_is_too_long(tmp_path: Path) -> None:
    details = ErrorDetails(status=429, retryable=True, retry_after_ms=3_600_000)
    case = Case(tmp_path, [Reply(error="slow down", error_details=details), "never"])
    session = await case.session()
    await session.prompt("go")
    assert len(case.requests) == 1
    assert "retry.maxAgentDelayMs" in case.of("notice")[0]["message"]


async def test_a_request_that_did_not_fit_is_compacted_once_and_made_again(tmp_path: Path) -> None:
    case = Case(
        tmp_path,
        ["an answer " * 50, full(), SUMMARY, "fits"],
        settings=KEEP_LITTLE,
        model={"context_window": 100_000, "max_tokens": 1000},
    )
    session = await case.session()
    await session.prompt("one " * 50)
    await session.prompt("two")
    assert case.types[3:] == [
        "agent_start",
        "agent_end",
        "entry_appended",
        "compaction_start",
        "compaction_end",
        "agent_start",
        "agent_end",
        "agent_settled",
    ]
    end = case.of("compaction_end")[0]
    assert (end["reason"], end["willRetry"], end["aborted"]) == ("overflow", True, False)
    assert session.answer_text() == "fits"
    assert case.asked()[-1][-1] == "u:two"
    assert "A goal." in case.asked()[-1][0]


async def test_a_second_overflow_is_an_error(tmp_path: Path) -> None:
    case = Case(tmp_path, ["an answer " * 50, full(), SUMMARY, full(), "never"], settings=KEEP_LITTLE)
    session = await case.session()
    await session.prompt("one " * 50)
    await session.prompt("two")
    assert len(case.requests) == 4
    last = session.last_answer
    assert last is not None
    assert last.stop_reason == "error"


async def test_an_overflow_with_nothing_to_compact_keeps_its_answer(tmp_path: Path) -> None:
    case = Case(tmp_path, [full()])
    session = await case.session()
    await session.prompt("go")
    assert "compaction_start" not in case.types
    last = session.last_answer
    assert last is not None
    assert "too long" in (last.error_message or "")


async def test_a_session_past_its_limit_is_compacted_when_a_run_is_over(tmp_path: Path) -> None:
    case = Case(
        tmp_path,
        ["first " * 60, used("second " * 60, 20_000), SUMMARY, "third"],
        settings={"compaction": {"keepRecentTokens": 106, "reserveTokens": 1000}},
        model={"context_window": 20_500, "max_tokens": 100},
    )
    session = await case.session()
    for text in ("one", "two", "three"):
        await session.prompt(text)
    assert case.types == [
        *["agent_start", "agent_end", "agent_settled"],
        *["agent_start", "agent_end", "compaction_start", "compaction_end", "agent_settled"],
        *["agent_start", "agent_end", "agent_settled"],
    ]
    assert case.of("compaction_start") == [{"type": "compaction_start", "reason": "threshold"}]
    assert case.asked()[-1][-1] == "u:three"
    assert not any("first first" in text for text in case.asked()[-1])


async def test_a_run_is_compacted_between_its_turns(tmp_path: Path) -> None:
    call = Reply(
        "long " * 100, Call("bash", {"command": "echo hi"}), usage=Usage(input=19_995, output=5, total_tokens=20_000)
    )
    case = Case(
        tmp_path, [call, SUMMARY, "done"], settings=KEEP_LITTLE, model={"context_window": 20_500, "max_tokens": 100}
    )
    session = await case.session()
    await session.prompt("go " * 100)
    assert case.types == ["agent_start", "compaction_start", "compaction_end", "agent_end", "agent_settled"]
    assert session.answer_text() == "done"
    assert not any("go go" in text for text in case.asked()[-1])
    assert session.agent.state.messages[0].role == "compactionSummary"


async def test_a_failed_summary_leaves_the_session_as_it_is(tmp_path: Path) -> None:
    case = Case(tmp_path, ["answer " * 60, "no headings", "still none", "next"], settings=KEEP_LITTLE)
    session = await case.session()
    await session.prompt("one " * 60)
    before = list(session.agent.state.messages)
    with pytest.raises(ConfigError):
        await session.compactor.manually()
    assert session.agent.state.messages == before
    assert case.of("compaction_end")[0]["errorMessage"]


async def test_a_compaction_by_hand_has_nothing_to_do_in_a_short_session(tmp_path: Path) -> None:
    session = await Case(tmp_path, []).session()
    with pytest.raises(ConfigError, match="nothing to compact"):
        await session.compactor.manually()


async def test_plugins_refuse_and_make_compactions(tmp_path: Path) -> None:
    class Plugin:
        refuse = True

        @hookimpl
        async def session_before_compact(self, reason: str) -> Block | None:
            return Block("not now") if self.refuse else None

        @hookimpl
        async def summarize(self, preparation: Any) -> Any:
            from pi_plugins.sessions.compaction import CompactionResult

            return CompactionResult("by a plugin", preparation.first_kept_entry_id, preparation.tokens_before)

    plugin = Plugin()
    case = Case(tmp_path, ["answer " * 60], settings=KEEP_LITTLE, plugins=[plugin])
    session = await case.session()
    await session.prompt("one " * 60)
    with pytest.raises(ConfigError, match="not now"):
        await session.compactor.manually()
    plugin.refuse = False
    result = await session.compactor.manually()
    assert result.summary == "by a plugin"
    assert len(case.requests) == 1


async def test_a_message_waits_in_the_queue_that_was_named(tmp_path: Path) -> None:
    barrier = Barrier()
    case = Case(tmp_path, [Reply(Wait(barrier), "one"), "two", "three"])
    session = await case.session()
    await session.submit("go")
    await case.asks(1)
    with pytest.raises(AgentBusyError):
        await session.submit("lost?")
    assert await session.submit("first", delivery="steer") == "queued"
    assert await session.submit("last", delivery="followUp") == "queued"
    assert (session.steering.texts, session.follow_ups.texts) == (("first",), ("last",))
    barrier.release()
    await session.wait_for_idle()
    assert [asked[-1] for asked in case.asked()] == ["u:go", "u:first", "u:last"]
    assert case.of("queue_update")[1] == {"type": "queue_update", "steering": ["first"], "followUp": ["last"]}


async def test_what_is_queued_goes_on_after_an_abort(tmp_path: Path) -> None:
    barrier = Barrier()
    case = Case(tmp_path, [Reply(Wait(barrier)), "two"])
    session = await case.session()
    await session.submit("go")
    await case.asks(1)
    await session.submit("then", delivery="steer")
    session.abort()
    await session.wait_for_idle()
    assert session.answer_text() == "two"
    assert case.types.count("agent_settled") == 1


async def test_a_queue_that_is_emptied_gives_its_texts_back(tmp_path: Path) -> None:
    session = await Case(tmp_path, []).session()
    await session.enqueue("a", (), "steer")
    await session.enqueue("b", (), "followUp")
    assert session.clear_queue() == (("a",), ("b",))
    assert session.clear_queue() == ((), ())


async def test_input_hooks_change_and_take_what_was_typed(tmp_path: Path) -> None:
    class Plugin:
        @hookimpl
        async def input(self, given: Any) -> Any:
            if given.text == "mine":
                return given.replace(handled=True)
            return given.replace(text=given.text.upper())

        @hookimpl
        async def before_agent_start(self, start: Any) -> Any:
            return start.replace(system_prompt=start.system_prompt + "\nBe kind.")

    case = Case(tmp_path, ["ok", "ok"], plugins=[Plugin()])
    session = await case.session()
    assert await session.prompt("mine") == "handled"
    assert await session.prompt("yours") == "started"
    assert case.asked() == [["u:YOURS"]]
    assert case.requests[0].system_prompt.endswith("\nBe kind.")
    await session.prompt("again")
    assert case.requests[1].system_prompt.count("Be kind.") == 1


async def test_an_input_hook_that_fails_keeps_the_input_from_the_model(tmp_path: Path) -> None:
    class Plugin:
        name = "broken"

        @hookimpl
        async def input(self) -> None:
            raise RuntimeError("boom")

    case = Case(tmp_path, ["never"], plugins=[Plugin()])
    session = await case.session()
    with pytest.raises(Exception, match="broken"):
        await session.prompt("go")
    assert case.requests == []
    assert session.is_idle


async def test_a_plugin_that_fails_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    class Plugin:
        name = "broken"

        @hookimpl
        def on_turn_start(self) -> None:
            raise RuntimeError("boom")

    case = Case(tmp_path, ["fine"], plugins=[Plugin()])
    session = await case.session()
    await session.prompt("go")
    assert case.of("extension_error") == [
        {"type": "extension_error", "extensionPath": "broken", "event": "on_turn_start", "error": "boom"}
    ]
    assert session.answer_text() == "fine"


async def test_commands_of_the_model_know_the_session(tmp_path: Path) -> None:
    command = "echo $PI_SESSION_ID $PI_PROVIDER $PI_MODEL $PI_REASONING_LEVEL"
    case = Case(tmp_path, [Reply(Call("bash", {"command": command})), "ok"], thinking="low")
    session = await case.session()
    await session.prompt("go")
    assert f"{session.store.id} scripted scripted low" in case.asked()[-1][-1]


async def test_a_command_of_the_user_is_read_by_the_model_unless_it_is_kept_from_it(tmp_path: Path) -> None:
    case = Case(tmp_path, ["ok", "ok"])
    session = await case.session()
    seen: list[str] = []
    result = await session.bash.run("echo visible; exit 3", on_update=seen.append)
    assert (result.output, result.exit_code, "".join(seen)) == ("visible\n", 3, "visible\n")
    await session.bash.run("echo hidden", exclude_from_context=True)
    await session.prompt("go")
    assert any("visible" in text for text in case.asked()[0])
    assert not any("hidden" in text for text in case.asked()[0])


async def test_a_command_of_the_user_during_a_run_is_kept_when_the_run_is_over(tmp_path: Path) -> None:
    barrier = Barrier()
    case = Case(tmp_path, [Reply(Wait(barrier), "one")])
    session = await case.session()
    await session.submit("go")
    await case.asks(1)
    await session.bash.run("echo between")
    assert [message.role for message in session.agent.state.messages] == ["user"]
    barrier.release()
    await session.wait_for_idle()
    assert [message.role for message in session.agent.state.messages] == ["user", "assistant", "bashExecution"]


async def test_a_user_bash_hook_takes_the_place_of_the_command_and_its_failure_keeps_it_from_running(
    tmp_path: Path,
) -> None:
    class Plugin:
        @hookimpl
        async def user_bash(self, command: str) -> Any:
            from pi_plugins.tools import UserCommandResult

            if command == "bad":
                raise RuntimeError("no shell here")
            return UserCommandResult("elsewhere\n", 0)

    session = await Case(tmp_path, [], plugins=[Plugin()]).session()
    assert (await session.bash.run("anything")).output == "elsewhere\n"
    with pytest.raises(Exception, match="no shell here"):
        await session.bash.run("bad")
    assert not session.bash.active


async def test_a_typed_command_runs_at_once_and_its_failure_is_shown(tmp_path: Path) -> None:
    from pi_plugins.coding_agent import SlashCommand

    class Plugin:
        @hookimpl
        def register_slash_commands(self) -> list[SlashCommand]:
            def fail(arguments: str, session: Any) -> str:
                raise RuntimeError(f"cannot {arguments}")

            return [
                SlashCommand("hello", "Say hello.", lambda arguments, session: f"hello {arguments}"),
                SlashCommand("fail", "Fail.", fail),
            ]

    case = Case(tmp_path, ["ok"], plugins=[Plugin()])
    session = await case.session()
    assert await session.prompt("/hello bob") == "handled"
    assert await session.prompt("/fail it") == "handled"
    notices = [(event["message"], event["notifyType"]) for event in case.of("notice")]
    assert notices == [("hello bob", "info"), ("/fail: cannot it", "error")]
    with pytest.raises(ConfigError, match="cannot wait"):
        await session.enqueue("/hello", (), "steer")
    assert await session.prompt("/unknown thing") == "started"


async def test_model_and_level_are_noted_and_told(tmp_path: Path) -> None:
    told: list[tuple[Any, ...]] = []

    class Plugin:
        @hookimpl
        async def model_select(self, model: Any, previous: Any, source: str) -> None:
            told.append((previous.id, model.id, source))

        @hookimpl
        async def thinking_level_select(self, level: str, previous: str) -> None:
            told.append((previous, level))

    case = Case(tmp_path, [], plugins=[Plugin()], model={"reasoning": True})
    session = await case.session()
    plain = session.model.model_copy(update={"id": "plain", "reasoning": False})
    await session.choice.set_model(plain)
    assert (session.model.id, session.thinking_level) == ("plain", "off")
    assert told == [("scripted", "plain", "set"), ("medium", "off")]
    assert await session.choice.set_level("high") == "off"
    projection = session.store.projection()
    assert (projection.model, projection.thinking_level) == (("scripted", "plain"), "off")


async def test_the_guards_of_plugins_hold_in_a_session(tmp_path: Path) -> None:
    class Plugin:
        @hookimpl
        async def before_tool_call(self, call: ToolCall, ctx: RunContext) -> Block:
            return Block("nope")

    case = Case(tmp_path, [Reply(Call("bash", {"command": "echo hi"})), "ok"], plugins=[Plugin()])
    session = await case.session()
    await session.prompt("go")
    assert case.asked()[-1][-1] == "t:nope"
