"""Progress reports of running calls, and what fails a run while its calls run."""

from __future__ import annotations

import asyncio
import gc
import threading
from contextlib import suppress
from typing import Any

import pytest

from pi_core import (
    AgentContext,
    AgentEvent,
    AgentLoopConfig,
    PluginFailure,
    Tool,
    ToolCall,
    ToolCallContent,
    ToolContext,
    ToolResultMessage,
    hookimpl,
    run_agent_loop,
)
from pi_core.testing import SCRIPTED_MODEL, Call, EventLog, Reply, ScriptedProvider, scripted_agent

from .running import quick, run

NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}
CLOSING = ["message_start", "message_end", "turn_end", "agent_end"]


def make_tool(name: str, execute: Any, **options: Any) -> Tool:
    return Tool(name, "", NO_PARAMETERS, execute, **options)


def texts(log: EventLog) -> dict[str, str]:
    """The text of each call's result."""
    found = {}
    for event in log.of("tool_execution_end"):
        found[event.tool_call_id] = "".join(block.text for block in event.result.content)
    return found


def calls(*names: str) -> Reply:
    return Reply(*[Call(name, id=f"c{number}") for number, name in enumerate(names, 1)])


# --- progress reports ---------------------------------------------------------------------------------------------


class Broken(Exception):
    pass


class BrokenScreen:
    """A subscriber that fails on events of a type, at once or a moment later.

    :ivar failed_at: how many events the log held when it failed.
    """

    def __init__(self, log: EventLog, event_type: str, *, slow: bool = False) -> None:
        self._log = log
        self._event_type = event_type
        self._slow = slow
        self.failed_at = 0

    def __call__(self, event: AgentEvent, signal: Any) -> Any:
        if event.type != self._event_type:
            return None
        return self._later() if self._slow else self._fail()

    async def _later(self) -> None:
        await asyncio.sleep(0)
        self._fail()

    def _fail(self) -> None:
        self.failed_at = self.failed_at or len(self._log.events)
        raise Broken("screen gone")


def assert_failed_once(log: EventLog, *, after: str) -> None:
    types = log.types
    assert types.count("agent_end") == 1
    assert types[types.index(after) + 1 :] == CLOSING
    assert log.of("turn_end")[-1].message.error_message == "screen gone"
    assert log.of("turn_end")[-1].message.stop_reason == "error"


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("style", ["waits", "returns at once", "swallows the cancellation", "raises in its cleanup"])
def test_a_listener_that_fails_on_a_report_of_a_single_call_fails_the_run(slow: bool, style: str) -> None:
    async def reporting(arguments: Any, context: ToolContext) -> str:
        context.update("half")
        if style == "returns at once":
            return "whole"
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            context.update("while ending")
            if style == "swallows the cancellation":
                return "whole"
            if style == "raises in its cleanup":
                raise ValueError("cleanup") from None
            raise
        return "never"

    agent, _, log = scripted_agent(calls("reporting"), "again", tools=[make_tool("reporting", reporting)])
    unsubscribe = agent.subscribe(BrokenScreen(log, "tool_execution_update", slow=slow))

    async def main() -> None:
        await agent.prompt("go")
        assert_failed_once(log, after="tool_execution_update")
        unsubscribe()
        await agent.prompt("again")
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    run(main())
    assert agent.state.messages[-1].text == "again"


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("event_type", ["tool_execution_update", "tool_execution_end"])
@pytest.mark.parametrize("style", ["waits", "returns at the same time", "swallows the cancellation"])
def test_a_listener_that_fails_ends_the_siblings_in_silence(slow: bool, event_type: str, style: str) -> None:
    after_hook: list[str] = []
    started = asyncio.Event()

    class Plugin:
        @hookimpl
        def after_tool_call(self, call: ToolCall) -> None:
            after_hook.append(call.id)

    async def first(arguments: Any, context: ToolContext) -> str:
        await started.wait()
        context.update("half")
        return "done"

    async def sibling(arguments: Any, context: ToolContext) -> str:
        started.set()
        try:
            await asyncio.Event().wait() if style != "returns at the same time" else await asyncio.sleep(0)
        except asyncio.CancelledError:
            context.update("while ending")
            if style != "swallows the cancellation":
                raise
        return "survived"

    tools = [make_tool("first", first), make_tool("sibling", sibling)]
    agent, _, log = scripted_agent(calls("first", "sibling", "sibling"), tools=tools, plugins=[Plugin()])
    screen = BrokenScreen(log, event_type, slow=slow)
    agent.subscribe(screen)
    run(agent.prompt("go"))
    assert log.types[screen.failed_at :] == CLOSING
    if style != "returns at the same time":
        assert set(after_hook) <= {"c1"}
        assert set(texts(log)) <= {"c1"}
    assert agent.state.pending_tool_calls == frozenset()
    assert agent.state.messages[-1].stop_reason == "error"


def test_siblings_whose_listeners_fail_together_fail_the_run_once(caplog: pytest.LogCaptureFixture) -> None:
    agent, _, log = scripted_agent(calls("quick", "quick", "quick"), tools=[make_tool("quick", quick)])
    screen = BrokenScreen(log, "tool_execution_end", slow=True)
    agent.subscribe(screen)
    run(agent.prompt("go"))
    assert set(texts(log)) == {"c1", "c2", "c3"}
    assert log.types[screen.failed_at :] == CLOSING
    gc.collect()
    assert caplog.text == ""


def test_siblings_see_the_abort_before_they_are_cancelled() -> None:
    seen = []

    async def first(arguments: Any, context: ToolContext) -> str:
        context.update("half")
        await asyncio.Event().wait()
        return "never"

    async def sibling(arguments: Any, context: ToolContext) -> str:
        assert context.signal is not None
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(context.signal.aborted)
        return "never"

    agent, _, log = scripted_agent(
        calls("sibling", "first"), tools=[make_tool("first", first), make_tool("sibling", sibling)]
    )
    agent.subscribe(BrokenScreen(log, "tool_execution_update"))
    run(agent.prompt("go"))
    assert seen == [True]
    assert_failed_once(log, after="tool_execution_update")


def test_a_sibling_that_is_being_recorded_when_the_run_fails_is_not_announced() -> None:
    failed, recording = asyncio.Event(), asyncio.Event()

    class Plugin:
        @hookimpl
        async def record_tool_result(self, call: ToolCallContent) -> None:
            if call.id == "c2":
                recording.set()
                await failed.wait()

    async def first(arguments: Any, context: ToolContext) -> str:
        await recording.wait()
        return "done"

    async def sibling(arguments: Any, context: ToolContext) -> str:
        return "done"

    def broken(event: AgentEvent, signal: Any) -> None:
        if event.type == "tool_execution_end":
            failed.set()
            raise Broken("screen gone")

    tools = [make_tool("first", first), make_tool("sibling", sibling)]
    agent, _, log = scripted_agent(calls("first", "sibling"), tools=tools, plugins=[Plugin()])
    agent.subscribe(broken)
    run(agent.prompt("go"))
    assert texts(log) == {"c1": "done"}
    assert_failed_once(log, after="tool_execution_end")


def test_a_cancellation_while_siblings_end_comes_out_of_the_loop() -> None:
    async def main() -> None:
        ending, release = asyncio.Event(), asyncio.Event()

        async def first(arguments: Any, context: ToolContext) -> str:
            return "done"

        async def sibling(arguments: Any, context: ToolContext) -> str:
            try:
                await asyncio.Event().wait()
            finally:
                ending.set()
                with suppress(asyncio.CancelledError):
                    await release.wait()
            return "never"

        def broken(event: AgentEvent) -> None:
            if event.type == "tool_execution_end":
                raise Broken("screen gone")

        tools = [make_tool("first", first), make_tool("sibling", sibling)]
        stream = ScriptedProvider(calls("first", "sibling")).stream
        config = AgentLoopConfig(model=SCRIPTED_MODEL, stream=stream)
        task = asyncio.create_task(run_agent_loop([], AgentContext(tools=tools), config, broken))
        await ending.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    run(main())


def test_a_call_ends_after_the_listeners_of_its_reports() -> None:
    order: list[str] = []

    async def reporting(arguments: Any, context: ToolContext) -> str:
        context.update("one")
        context.update("two")
        order.append("returned")
        return "done"

    agent, _, _ = scripted_agent(calls("reporting"), "done", tools=[make_tool("reporting", reporting)])

    async def slow(event: AgentEvent, signal: Any) -> None:
        if event.type == "tool_execution_update":
            for _ in range(5):
                await asyncio.sleep(0)
            order.append("handled")
        elif event.type == "tool_execution_end":
            order.append("end")

    agent.subscribe(slow)
    run(agent.prompt("go"))
    assert order == ["returned", "handled", "handled", "end"]


def test_reports_from_a_thread_arrive_in_order_before_the_end() -> None:
    def reporting(arguments: Any, context: ToolContext) -> str:
        for number in range(20):
            context.update(str(number))
        return "done"

    agent, _, log = scripted_agent(calls("reporting"), "done", tools=[make_tool("reporting", reporting)])
    run(agent.prompt("go"))
    reported = [event.partial_result.content[0].text for event in log.of("tool_execution_update")]
    assert reported == [str(number) for number in range(20)]
    assert log.types.index("tool_execution_end") > log.types.index("tool_execution_update") + 18


def test_a_report_after_the_event_loop_is_gone_is_dropped() -> None:
    contexts: list[ToolContext] = []

    async def keeping(arguments: Any, context: ToolContext) -> str:
        contexts.append(context)
        return "done"

    agent, _, log = scripted_agent(calls("keeping"), "done", tools=[make_tool("keeping", keeping)])
    run(agent.prompt("go"))
    thread = threading.Thread(target=contexts[0].update, args=("late",))
    thread.start()
    thread.join()
    contexts[0].update("late")
    assert log.of("tool_execution_update") == []


# --- recording ----------------------------------------------------------------------------------------------------


class Recorder:
    """Stores nothing, and says so when its hook and what it is about are the given ones."""

    def __init__(self, hook: str, about: str) -> None:
        self.failing = (hook, about)
        self.reported: list[PluginFailure] = []

    @hookimpl
    def record_message(self, message: Any) -> None:
        if ("record_message", message.role) == self.failing:
            raise OSError("disk full")

    @hookimpl
    def record_tool_result(self, call: ToolCallContent, result: ToolResultMessage) -> None:
        if ("record_tool_result", call.id) == self.failing:
            raise OSError("disk full")

    @hookimpl
    def plugin_error(self, failure: PluginFailure) -> None:
        self.reported.append(failure)


@pytest.mark.parametrize("sequential", [False, True])
def test_a_tool_result_that_cannot_be_recorded_still_ends_and_then_the_run_fails(sequential: bool) -> None:
    async def endless(arguments: Any, context: ToolContext) -> str:
        await asyncio.Event().wait()
        return "never"

    mode = "sequential" if sequential else "parallel"
    recorder = Recorder("record_tool_result", "c1")
    tools = [make_tool("quick", quick), make_tool("endless", endless)]
    agent, _, log = scripted_agent(calls("quick", "endless"), tools=tools, plugins=[recorder], tool_execution=mode)
    run(agent.prompt("go"))
    assert texts(log) == {"c1": "ok"}
    assert log.types[log.types.index("tool_execution_end") + 1 :] == CLOSING
    message = agent.state.messages[-1]
    assert message.stop_reason == "error"
    assert message.error_message is not None
    assert message.error_message.startswith("disk full")
    assert "Recorder" in message.error_message
    assert "record_tool_result" in message.error_message


def test_a_sibling_that_ends_just_when_a_result_cannot_be_recorded_is_not_announced() -> None:
    failing = asyncio.Event()

    class Plugin:
        @hookimpl
        def record_tool_result(self, call: ToolCallContent) -> None:
            if call.id == "c1":
                failing.set()
                raise OSError("disk full")

    async def sibling(arguments: Any, context: ToolContext) -> str:
        await failing.wait()
        return "done"

    tools = [make_tool("quick", quick), make_tool("sibling", sibling)]
    agent, _, log = scripted_agent(calls("quick", "sibling"), tools=tools, plugins=[Plugin()])
    run(agent.prompt("go"))
    assert texts(log) == {"c1": "ok"}
    assert log.types[log.types.index("tool_execution_end") + 1 :] == CLOSING


@pytest.mark.parametrize("role", ["user", "toolResult"])
def test_a_message_that_cannot_be_recorded_still_ends_and_then_the_run_fails(role: str) -> None:
    agent, _, log = scripted_agent(
        calls("quick"), tools=[make_tool("quick", quick)], plugins=[Recorder("record_message", role)]
    )
    run(agent.prompt("go"))
    ends = [event.message.role for event in log.of("message_end")]
    assert ends[-2:] == [role, "assistant"]
    assert log.types[-5:] == ["message_end", *CLOSING]
    assert "disk full" in (agent.state.error_message or "")
    assert [message.role for message in log.of("agent_end")[0].messages] == ends


def test_a_failure_message_that_cannot_be_recorded_is_reported() -> None:
    recorder = Recorder("record_message", "assistant")
    agent, _, log = scripted_agent("hello", plugins=[recorder])
    run(agent.prompt("go"))
    assert log.types[-5:] == ["message_end", *CLOSING]
    assert [(failure.hook, str(failure.error)) for failure in recorder.reported] == [("record_message", "disk full")]
    assert isinstance(recorder.reported[0].error, OSError)


def test_cancelling_a_single_call_ends_its_report_handlers() -> None:
    async def main() -> None:
        handling = asyncio.Event()
        ended = []

        async def slow(event: AgentEvent, signal: Any) -> None:
            if event.type == "tool_execution_update":
                handling.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    ended.append(event.type)

        async def reporting(arguments: Any, context: ToolContext) -> str:
            context.update("half")
            return "done"

        agent, _, log = scripted_agent(calls("reporting"), tools=[make_tool("reporting", reporting)])
        agent.subscribe(slow)
        task = asyncio.create_task(agent.prompt("go"))
        await handling.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == ["tool_execution_update"]
        assert log.types[-4:] == CLOSING

    run(main())
