"""Cancelling the task that awaits a run: it closes completely, the cancellation comes out, and nothing is left."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest

from pi_core import (
    AbortSignal,
    Agent,
    AgentEvent,
    Context,
    MessageAssembler,
    Model,
    StreamEvent,
    StreamOptions,
    Tool,
    ToolContext,
)
from pi_core.testing import SCRIPTED_MODEL, Barrier, Call, EventLog, Reply, Wait, scripted_agent

from .running import run

CLOSING = ["message_start", "message_end", "turn_end", "agent_end"]


class At:
    """A subscriber that lets a test wait for an event, and may hold the run there."""

    def __init__(self, agent: Agent, event_type: str, *, hold: bool = False) -> None:
        self.reached = asyncio.Event()
        self.interrupted = 0
        self._event_type = event_type
        self._hold = hold
        agent.subscribe(self)

    def __call__(self, event: AgentEvent, signal: AbortSignal) -> Awaitable[None] | None:
        message = getattr(event, "message", None)
        if event.type != self._event_type or getattr(message, "role", None) == "user":
            return None
        self.reached.set()
        return self._held() if self._hold else None

    async def _held(self) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.interrupted += 1
            raise


async def cancelled(agent: Agent, reached: asyncio.Event, *, times: int = 1) -> None:
    """Cancel a prompt when an event was reached, some times over."""
    task = asyncio.create_task(agent.prompt("go"))
    await reached.wait()
    for _ in range(times):
        task.cancel()
        for _ in range(10):
            await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert agent.signal is None
    assert not agent.state.is_streaming
    assert agent.state.pending_tool_calls == frozenset()


def assert_closed(log: EventLog) -> None:
    assert log.types.count("agent_end") == 1
    assert log.types[-3:] == CLOSING[1:]
    assert log.of("turn_end")[-1].message.stop_reason == "aborted"


def test_while_a_response_streams() -> None:
    async def main() -> None:
        agent, _, log = scripted_agent(Reply("half", Wait(Barrier())), "again")
        await cancelled(agent, At(agent, "message_update").reached)
        assert_closed(log)
        assert agent.state.messages[-1].text == "half"
        assert (await agent.prompt("again"))[-1].text == "again"

    run(main())


def test_before_the_first_request() -> None:
    async def main() -> None:
        agent, provider, log = scripted_agent("never")
        reached = asyncio.Event()

        async def until_aborted(event: AgentEvent, signal: AbortSignal) -> None:
            if event.type == "agent_start":
                reached.set()
                await signal.wait()

        agent.subscribe(until_aborted)
        await cancelled(agent, reached)
        assert_closed(log)
        assert provider.requests == []
        assert [message.role for message in agent.state.messages] == ["user", "assistant"]

    run(main())


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
def test_while_tools_run(mode: str) -> None:
    async def main() -> None:
        running, ended = asyncio.Event(), []

        async def listening(arguments: Any, context: ToolContext) -> str:
            assert context.signal is not None
            running.set()
            await context.signal.wait()
            ended.append(context.tool_call_id)
            return "half"

        tool = Tool("listening", "", {"type": "object"}, listening)
        calls = Reply(Call("listening", id="1"), Call("listening", id="2"))
        agent, _, log = scripted_agent(calls, tools=[tool], tool_execution=mode)
        await cancelled(agent, running)
        assert_closed(log)
        results = [message.content[0].text for message in agent.state.messages if message.role == "toolResult"]
        assert results == (["half", "half"] if mode == "parallel" else ["half", "Operation aborted"])

    run(main())


def test_twice_while_tools_run_that_do_not_listen() -> None:
    async def main() -> None:
        ended: list[str] = []
        running = asyncio.Event()

        async def deaf(arguments: Any, context: ToolContext) -> str:
            running.set()
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                ended.append(context.tool_call_id)
            return "never"

        tool = Tool("deaf", "", {"type": "object"}, deaf)
        agent, _, log = scripted_agent(Reply(Call("deaf", id="1"), Call("deaf", id="2")), tools=[tool])
        await cancelled(agent, running, times=2)
        assert sorted(ended) == ["1", "2"]
        assert_closed(log)
        assert log.types[-4:] == CLOSING
        assert log.of("tool_execution_end") == []
        assert agent.state.messages[-1].error_message == "Run was cancelled"

    run(main())


def test_many_times_while_tools_tidy_up() -> None:
    async def main() -> None:
        ended: list[str] = []
        running = asyncio.Event()

        async def tidy(arguments: Any, context: ToolContext) -> str:
            running.set()
            try:
                await asyncio.Event().wait()
            finally:
                for _ in range(3):
                    try:
                        await asyncio.Event().wait()
                    except asyncio.CancelledError:
                        ended.append(context.tool_call_id)
            return "survived"

        tool = Tool("tidy", "", {"type": "object"}, tidy)
        agent, _, log = scripted_agent(Reply(Call("tidy", id="1"), Call("tidy", id="2")), tools=[tool])
        await cancelled(agent, running, times=6)
        assert sorted(ended) == ["1", "1", "1", "2", "2", "2"]
        assert_closed(log)

    run(main())


def endless(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
    """A provider that never looks at the signal."""

    async def events() -> AsyncIterator[StreamEvent]:
        assembler = MessageAssembler(model.api, model.provider, model.id)
        yield assembler.start()
        await asyncio.Event().wait()

    return events()


def test_twice_while_a_provider_does_not_listen() -> None:
    async def main() -> None:
        agent = Agent(model=SCRIPTED_MODEL, stream=endless, abort_grace_seconds=None)
        log = EventLog(agent)
        await cancelled(agent, At(agent, "message_start").reached, times=2)
        assert_closed(log)
        assert log.types[-4:] == CLOSING

    run(main())


def test_a_provider_that_does_not_listen_is_given_up_after_the_grace_period() -> None:
    async def main() -> None:
        agent = Agent(model=SCRIPTED_MODEL, stream=endless, abort_grace_seconds=0)
        log = EventLog(agent)
        await cancelled(agent, At(agent, "message_start").reached)
        assert_closed(log)

    run(main())


@pytest.mark.parametrize("held", CLOSING)
def test_again_and_again_while_the_run_closes(held: str) -> None:
    async def broken(messages: Any) -> None:
        raise OSError("disk full")

    async def main() -> None:
        agent, _, log = scripted_agent("never", transform_context=broken)
        hold = At(agent, held, hold=True)
        await cancelled(agent, hold.reached, times=3)
        assert log.types[-4:] == CLOSING
        assert log.types.count("agent_end") == 1
        assert hold.interrupted == 1
        assert (agent.state.error_message or "").startswith("disk full")

    run(main())


def test_while_the_end_is_announced() -> None:
    async def main() -> None:
        agent, _, log = scripted_agent("done")
        end = At(agent, "agent_end", hold=True)
        await cancelled(agent, end.reached, times=2)
        assert log.types.count("agent_end") == 1
        assert agent.state.messages[-1].text == "done"
        assert end.interrupted == 1

    run(main())


def test_when_the_event_loop_ends() -> None:
    agent, _, log = scripted_agent(Reply("half", Wait(Barrier()), ignore_abort=True))

    async def main() -> None:
        running = At(agent, "message_update").reached
        prompt = asyncio.create_task(agent.prompt("go"))
        await running.wait()
        assert not prompt.done()

    asyncio.run(main())
    assert_closed(log)
    assert agent.signal is None
    assert not agent.state.is_streaming


def test_when_only_the_run_itself_is_cancelled() -> None:
    async def main() -> None:
        agent = Agent(model=SCRIPTED_MODEL, stream=endless)
        log = EventLog(agent)
        running = At(agent, "message_start").reached
        others = asyncio.all_tasks()
        prompt = asyncio.create_task(agent.prompt("go"))
        await running.wait()
        [task] = asyncio.all_tasks() - others - {prompt}
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await prompt
        assert_closed(log)
        assert agent.state.messages[-1].error_message == "Run was cancelled"

    run(main())


def test_the_grace_period_is_not_for_those_who_hear_of_the_end() -> None:
    async def broken(messages: Any) -> None:
        raise OSError("disk full")

    async def main() -> None:
        agent, _, log = scripted_agent("never", transform_context=broken, abort_grace_seconds=0)
        saved = []

        async def save(event: AgentEvent, signal: AbortSignal) -> None:
            if event.type in ("turn_end", "agent_end"):
                await asyncio.sleep(1.2)
                saved.append(event.type)

        end = At(agent, "message_end").reached
        agent.subscribe(save)
        await cancelled(agent, end)
        assert saved == ["turn_end", "agent_end"]
        assert log.types[-4:] == CLOSING

    run(main())


def test_a_timeout_around_a_prompt() -> None:
    async def main() -> None:
        agent, _, log = scripted_agent(Reply("half", Wait(Barrier())))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await agent.prompt("go")
        assert_closed(log)

    run(main())


def test_a_failure_while_closing_does_not_hide_the_cancellation(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        agent, _, log = scripted_agent(Reply("half", Wait(Barrier())))

        def broken(event: AgentEvent, signal: AbortSignal) -> None:
            if event.type == "agent_end":
                raise OSError("disk full")

        agent.subscribe(broken)
        await cancelled(agent, At(agent, "message_update").reached)
        assert log.types.count("agent_end") == 1

    run(main())
    gc.collect()
    assert caplog.text == ""
