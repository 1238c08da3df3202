"""Everything that can be asked of a session, asked at random moments: what must hold whatever meets what."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest

from pi_core import AgentBusyError, AssistantMessage, ErrorDetails, PiError, ToolResultMessage, Usage
from pi_core.testing import Call, Reply
from pi_plugins.coding_agent import AgentSession
from pi_plugins.coding_agent.events import texts

from .sessions import SUMMARY, Case

SEEDS = int(os.environ.get("PI_TEST_RANDOM_WORK", "25"))
STEPS = 40
SETTINGS = {
    "retry": {"baseDelayMs": 1},
    "compaction": {"keepRecentTokens": 20, "reserveTokens": 1000},
}


def any_reply(chance: random.Random) -> Reply:
    """An answer that is a summary too, calls of tools, or a failure: one that passes, one that stays, an overflow."""
    full = Usage(input=20_000, total_tokens=20_000) if chance.random() < 0.3 else None
    match chance.randrange(8):
        case 0:
            return Reply(error="overloaded", error_details=ErrorDetails(status=503, retryable=True))
        case 1:
            return Reply(error="no", error_details=ErrorDetails(status=401))
        case 2 | 3:
            command = chance.choice(["true", "sleep 0.01", "sleep 30"])
            return Reply(Call("bash", {"command": command}), Call("bash", {"command": "echo b"}), usage=full)
        case 4:
            return Reply(error="prompt is too long: 9 tokens > 8 maximum", error_details=ErrorDetails(status=400))
    return Reply(SUMMARY, usage=full)


class Worker:
    """Asks a session for random things, and keeps what was taken."""

    def __init__(self, session: AgentSession, chance: random.Random) -> None:
        self.session = session
        self.chance = chance
        self.taken: list[str] = []
        self.given_back: list[str] = []

    async def step(self, number: int) -> None:
        """Ask for one thing; refusals are fine."""
        session, chance, text = self.session, self.chance, f"message {number} " * 20
        try:
            match chance.randrange(16):
                case 0 | 1 | 2 | 3:
                    delivery = chance.choice([None, "steer", "followUp"])
                    await session.submit(text, delivery=delivery)  # type: ignore[arg-type]
                    self.taken.append(text)
                case 4:
                    await session.enqueue(text, (), chance.choice(["steer", "followUp"]))  # type: ignore[arg-type]
                    self.taken.append(text)
                case 5 | 6:
                    session.abort()
                case 7:
                    await session.compactor.manually()
                case 8:
                    await session.bash.run(chance.choice(["true", "sleep 0.02"]))
                case 9:
                    points = session.moves.fork_points()
                    if points:
                        await session.moves.navigate(chance.choice(points)[0], summarize=chance.random() < 0.5)
                case 10:
                    session.runs.abort_retry()
                case 11:
                    await session.choice.cycle_level()
                case 12:
                    await session.runs.aborted_run()
                case 13:
                    self.given_back += [queued for queue in session.clear_queue() for queued in queue]
                case _:
                    await asyncio.sleep(chance.random() / 100)
        except (PiError, AgentBusyError):
            pass

    def everywhere(self) -> set[str]:
        """The texts of the user in all branches of the session."""
        messages = [entry.message for entry in self.session.store.entries if entry.role == "user"]
        return set(texts(messages))


def assert_balanced(case: Case) -> None:
    """Assert that what begins ends, one at a time."""
    open_: list[str] = []
    for event in case.events:
        kind, _, phase = event.type.rpartition("_")
        if kind in ("agent", "compaction") and phase in ("start", "end"):
            if phase == "start":
                assert kind not in open_
                open_.append(kind)
            else:
                open_.remove(kind)
        elif event.type == "agent_settled":
            assert open_ == []
    assert open_ == []


def assert_answered(session: AgentSession) -> None:
    """Assert that each call has one result directly after its message, in order."""
    waiting: list[str] = []
    for message in session.agent.state.messages:
        if isinstance(message, ToolResultMessage):
            assert message.tool_call_id == waiting.pop(0)
            continue
        assert waiting == []
        if isinstance(message, AssistantMessage) and message.stop_reason not in ("error", "aborted"):
            waiting = [call.id for call in message.tool_calls]
    assert waiting == []


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_nothing_is_lost_or_left_open_whatever_meets_what(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    case = Case(
        tmp_path,
        [any_reply(chance) for _ in range(600)],
        settings=SETTINGS,
        model={"context_window": 20_500, "max_tokens": 100, "reasoning": True},
        in_memory=False,
    )
    session = await case.session()
    worker = Worker(session, chance)
    asked: set[asyncio.Task[None]] = set()
    for number in range(STEPS):
        asked.add(asyncio.create_task(worker.step(number)))
        if chance.random() < 0.7:
            await asyncio.sleep(chance.choice([0, 0, 0.001, 0.01]))
    while not session.is_idle or not all(task.done() for task in asked):
        session.abort()
        session.bash.abort()
        await asyncio.sleep(0.01)
    for task in asked:
        task.result()
    assert len(session.agent.state.messages) == len(session.store.projection().messages)
    assert_balanced(case)
    assert_answered(session)
    waiting = {*session.steering.texts, *session.follow_ups.texts}
    lost = set(worker.taken) - worker.everywhere() - waiting - set(worker.given_back)
    assert lost == set()
    await session.close()
    path = session.store.path
    case = Case(tmp_path, ["on"], settings=SETTINGS, in_memory=False, session=str(path))
    if worker.everywhere():
        again = await case.session()
        assert again.store.problems == []
        await again.prompt("go on")
        assert_answered(again)
        await again.close()
