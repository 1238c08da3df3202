"""Tool calls: what ends them early, what their progress reports do, and what fails the run."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from pi_core import (
    AbortController,
    AbortSignal,
    AgentEvent,
    AssistantMessage,
    HookError,
    Hooks,
    PluginFailure,
    ReplaceArguments,
    RunContext,
    TextContent,
    Tool,
    ToolCall,
    ToolCallContent,
    ToolContext,
    ToolResult,
    ToolResultPatch,
    hookimpl,
    run_tool_call,
)
from pi_core.testing import Call, EventLog, Reply, scripted_agent, scripted_message

from .running import quick, run


class Unreadable(Exception):
    """An exception that cannot say what it is."""

    def __str__(self) -> str:
        raise ValueError("no words")


NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


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


# --- abort and timeout --------------------------------------------------------------------------------------------


def test_a_tool_that_ignores_the_abort_is_given_up_after_the_grace_period() -> None:
    ended = []

    async def deaf(arguments: Any, context: ToolContext) -> str:
        assert agent.signal is not None
        agent.abort()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(context.tool_call_id)
        return "never"

    agent, provider, log = scripted_agent(
        calls("deaf", "quick"), tools=[make_tool("deaf", deaf), make_tool("quick", quick)], abort_grace_seconds=0.02
    )
    run(agent.prompt("go"))
    assert texts(log) == {"c1": "Operation aborted", "c2": "Operation aborted"}
    assert ended == ["c1"]
    assert log.of("tool_execution_end")[-1].duration_ms >= 10
    assert agent.state.messages[-1].stop_reason == "aborted"
    assert len(provider.requests) == 1


def test_a_tool_that_ends_within_the_grace_period_keeps_its_result() -> None:
    async def listening(arguments: Any, context: ToolContext) -> str:
        assert context.signal is not None
        agent.abort()
        await context.signal.wait()
        return "half of it"

    agent, _, log = scripted_agent(calls("listening"), tools=[make_tool("listening", listening)])
    run(agent.prompt("go"))
    assert texts(log) == {"c1": "half of it"}


def test_a_tool_in_a_thread_is_abandoned() -> None:
    release, reported = threading.Event(), threading.Event()

    def blocking(arguments: Any, context: ToolContext) -> str:
        context.update("waiting")
        release.wait(20)
        context.update("too late")
        reported.set()
        return "never"

    agent, _, log = scripted_agent(
        calls("blocking"), "next", tools=[make_tool("blocking", blocking)], abort_grace_seconds=0.02
    )

    def abort(event: AgentEvent, signal: AbortSignal) -> None:
        if event.type == "tool_execution_update":
            agent.abort()

    agent.subscribe(abort)

    async def main() -> None:
        await agent.prompt("go")
        assert texts(log) == {"c1": "Operation aborted"}
        release.set()
        await asyncio.to_thread(reported.wait, 20)
        await agent.prompt("again")

    run(main())
    reports = [event.partial_result.content[0].text for event in log.of("tool_execution_update")]
    assert reports == ["waiting"]


def test_an_abandoned_thread_does_not_keep_the_process_alive() -> None:
    program = """
        import asyncio, threading
        from pi_core import Tool
        from pi_core.testing import Call, Reply, scripted_agent

        def blocking(arguments, context):
            threading.Event().wait()

        tool = Tool("blocking", "", {"type": "object"}, blocking, timeout=0.05)
        agent, _, _ = scripted_agent(Reply(Call("blocking")), "done", tools=[tool])
        messages = agent.run_sync("go")
        print(messages[2].content[0].text, messages[-1].text, sep="; ")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "Tool blocking timed out after 0.05 seconds; done\n"


def test_a_timeout_is_an_error_result_that_says_so() -> None:
    async def slow(arguments: Any, context: ToolContext) -> str:
        await asyncio.Event().wait()
        return "never"

    agent, _, log = scripted_agent(
        calls("slow", "quick"), "done", tools=[make_tool("slow", slow, timeout=0.02), make_tool("quick", quick)]
    )
    run(agent.prompt("go"))
    assert texts(log) == {"c1": "Tool slow timed out after 0.02 seconds", "c2": "ok"}
    assert [result.is_error for result in log.of("turn_end")[0].tool_results] == [True, False]
    assert agent.state.messages[-1].text == "done"


def test_an_abort_shortens_a_timeout_but_never_lengthens_it() -> None:
    async def deaf(arguments: Any, context: ToolContext) -> str:
        agent.abort()
        await asyncio.Event().wait()
        return "never"

    for timeout, grace, text in ((60, 0.02, "Operation aborted"), (0.02, 60, "Tool deaf timed out after 0.02 seconds")):
        agent, _, log = scripted_agent(
            calls("deaf"), tools=[make_tool("deaf", deaf, timeout=timeout)], abort_grace_seconds=grace
        )
        run(agent.prompt("go"))
        assert texts(log) == {"c1": text}


def test_what_a_tool_returns_when_its_time_is_up_counts(caplog: pytest.LogCaptureFixture) -> None:
    async def tidy(arguments: Any, context: ToolContext) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            agent.abort()
        return "what there was"

    cancellations = []

    def look(event: AgentEvent, signal: AbortSignal) -> None:
        task = asyncio.current_task()
        assert task is not None
        cancellations.append(task.cancelling())

    agent, _, log = scripted_agent(calls("tidy"), tools=[make_tool("tidy", tidy, timeout=0.02)])
    agent.subscribe(look)
    run(agent.prompt("go"))
    assert set(cancellations) == {0}
    assert texts(log) == {"c1": "what there was"}
    assert caplog.text == ""


def test_an_abort_does_not_reach_a_call_that_is_over(caplog: pytest.LogCaptureFixture) -> None:
    agent, _, log = scripted_agent(calls("quick"), tools=[make_tool("quick", quick)])

    def abort(event: AgentEvent, signal: AbortSignal) -> None:
        if event.type == "turn_end":
            agent.abort()

    agent.subscribe(abort)
    run(agent.prompt("go"))
    assert texts(log) == {"c1": "ok"}
    assert caplog.text == ""


# --- what a tool raises and returns -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (asyncio.CancelledError(), "Tool bad was cancelled"),
        (SystemExit(3), "Tool bad tried to exit the process with 3"),
        (TimeoutError("the disk is slow"), "the disk is slow"),
        (KeyError("name"), "KeyError: 'name'"),
        (StopAsyncIteration("odd"), "odd"),
        (Unreadable(), "Unreadable, whose text cannot be read: ValueError"),
    ],
)
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("threaded", [False, True])
def test_what_a_tool_raises_is_its_result(error: BaseException, text: str, parallel: bool, threaded: bool) -> None:
    async def bad(arguments: Any, context: ToolContext) -> str:
        raise error

    def bad_in_thread(arguments: Any, context: ToolContext) -> str:
        raise error

    names = ("bad", "quick") if parallel else ("bad",)
    tools = [make_tool("bad", bad_in_thread if threaded else bad), make_tool("quick", quick)]
    agent, _, log = scripted_agent(calls(*names), "done", tools=tools)
    run(agent.prompt("go"))
    assert texts(log) == {"c1": text, **({"c2": "ok"} if parallel else {})}
    assert log.of("tool_execution_end")[-1 if not parallel else 0] is not None
    assert agent.state.messages[-1].text == "done"


def test_a_usage_that_is_none_is_the_fault_of_the_tool() -> None:
    async def bad(arguments: Any, context: ToolContext) -> ToolResult:
        return ToolResult(usage=5)  # type: ignore[arg-type]

    agent, _, log = scripted_agent(calls("bad"), "done", tools=[make_tool("bad", bad)])
    run(agent.prompt("go"))
    assert texts(log) == {"c1": "Tool bad gave int instead of a Usage"}
    assert agent.state.messages[-1].text == "done"


@pytest.mark.parametrize("make", [iter, tuple, list])
def test_content_may_be_any_series_of_blocks(make: Any) -> None:
    async def give(arguments: Any, context: ToolContext) -> ToolResult:
        return ToolResult(make([TextContent(text="one")]))

    agent, _, log = scripted_agent(calls("give"), "done", tools=[make_tool("give", give)])
    run(agent.prompt("go"))
    assert texts(log) == {"c1": "one"}
    assert agent.state.messages[2].content == [TextContent(text="one")]


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (None, "a progress report is a ToolResult or a text, got NoneType"),
        ({"content": []}, "a progress report is a ToolResult or a text, got dict"),
        (ToolResult(content=5), "Tool tell gave content that is not a list of text and image blocks"),  # type: ignore[arg-type]
    ],
)
@pytest.mark.parametrize("threaded", [False, True])
def test_a_progress_report_is_a_result_or_a_text(report: Any, said: str, threaded: bool) -> None:
    def report_in_thread(arguments: Any, context: ToolContext) -> None:
        context.update(report)

    async def report_here(arguments: Any, context: ToolContext) -> None:
        context.update(report)

    execute = report_in_thread if threaded else report_here
    agent, _, log = scripted_agent(calls("tell"), "done", tools=[make_tool("tell", execute)])
    run(agent.prompt("go"))
    assert texts(log)["c1"].startswith(said)
    assert not log.of("tool_execution_update")


def test_stop_iteration_in_a_thread_is_a_result() -> None:
    def bad(arguments: Any, context: ToolContext) -> str:
        raise StopIteration

    agent, _, log = scripted_agent(calls("bad"), "done", tools=[make_tool("bad", bad)])
    run(agent.prompt("go"))
    assert texts(log) == {"c1": "the tool raised StopIteration"}


def test_content_in_json_form_becomes_blocks_and_other_content_an_error() -> None:
    async def raw(arguments: Any, context: ToolContext) -> ToolResult:
        return ToolResult(content=[{"type": "text", "text": "fine"}])  # type: ignore[list-item]

    async def odd(arguments: Any, context: ToolContext) -> ToolResult:
        return ToolResult(content=[{"kind": "text"}])  # type: ignore[list-item]

    agent, _, log = scripted_agent(calls("raw", "odd"), "done", tools=[make_tool("raw", raw), make_tool("odd", odd)])
    run(agent.prompt("go"))
    assert texts(log)["c1"] == "fine"
    assert texts(log)["c2"].startswith("Tool odd gave content that is not a list of text and image blocks")
    assert [event.to_json()["isError"] for event in log.of("tool_execution_end")] == [False, True]


def holding_itself() -> dict[str, Any]:
    data: dict[str, Any] = {}
    data["itself"] = data
    return data


def nested(levels: int) -> list[Any]:
    data: list[Any] = []
    for _ in range(levels):
        data = [data]
    return data


@pytest.mark.parametrize("data", [holding_itself(), nested(300)], ids=["a circle", "too deep"])
@pytest.mark.parametrize(("field", "name"), [("details", "details"), ("structured_content", "structured content")])
def test_data_that_cannot_be_written_as_json_is_the_failure_of_its_call(data: Any, field: str, name: str) -> None:
    async def give(arguments: Any, context: ToolContext) -> ToolResult:
        return ToolResult.text("fine", **{field: data})

    agent, _, log = scripted_agent(calls("give"), "done", tools=[make_tool("give", give)])
    messages = run(agent.prompt("go"))
    assert texts(log)["c1"].startswith(f"Tool give gave {name} that cannot be written as JSON: ")
    assert [message.to_json()["role"] for message in messages] == ["user", "assistant", "toolResult", "assistant"]


def test_details_as_deep_as_json_can_be_stay() -> None:
    async def give(arguments: Any, context: ToolContext) -> ToolResult:
        return ToolResult.text("fine", details=nested(200))

    agent, _, log = scripted_agent(calls("give"), "done", tools=[make_tool("give", give)])
    messages = run(agent.prompt("go"))
    assert texts(log) == {"c1": "fine"}
    assert messages[2].to_json()["details"] == nested(200)


def test_content_that_a_hook_puts_in_place_is_checked_too() -> None:
    patches: dict[str, Any] = {"c1": [{"type": "text", "text": "patched"}], "c2": "patched"}

    class Plugin:
        @hookimpl
        def after_tool_call(self, call: ToolCall) -> ToolResultPatch:
            return ToolResultPatch(content=patches[call.id])

    agent, _, log = scripted_agent(
        calls("quick", "quick"), "done", tools=[make_tool("quick", quick)], plugins=[Plugin()]
    )
    run(agent.prompt("go"))
    assert texts(log)["c1"] == "patched"
    assert [event.is_error for event in log.of("tool_execution_end")] == [False, True]
    assert agent.state.messages[-1].text == "done"


def test_a_hook_that_gives_no_result_is_told() -> None:
    class Plugin:
        @hookimpl
        def execute_tool(self, call: ToolCall) -> Any:
            return "text"

    agent, _, log = scripted_agent(calls("quick"), "done", tools=[make_tool("quick", quick)], plugins=[Plugin()])
    run(agent.prompt("go"))
    assert "str" in texts(log)["c1"]
    assert log.of("tool_execution_end")[0].is_error


# --- a single call ------------------------------------------------------------------------------------------------


def test_a_tool_calls_a_tool_through_the_same_hooks() -> None:
    seen = []

    class Plugin:
        @hookimpl
        def before_tool_call(self, call: ToolCall) -> Any:
            seen.append(call.name)
            return ReplaceArguments({"changed": True}) if call.name == "inner" else None

        @hookimpl
        def after_tool_call(self, call: ToolCall, result: ToolResult, ctx: RunContext) -> Any:
            return ToolResultPatch(details={"turn": ctx.turn_index}) if call.name == "inner" else None

    async def inner(arguments: Any, context: ToolContext) -> str:
        context.update("from inside")
        return str(arguments)

    async def outer(arguments: Any, context: ToolContext) -> ToolResult:
        outcome = await run_tool_call(
            ToolCallContent(id="n1", name="inner"),
            tools=[make_tool("inner", inner)],
            assistant_message=scripted_message(),
            signal=context.signal,
            on_update=context.update,
            hooks=agent.hooks,
            ctx=context.run,
        )
        return outcome.result

    agent, _, log = scripted_agent(calls("outer"), "done", tools=[make_tool("outer", outer)], plugins=[Plugin()])
    run(agent.prompt("go"))
    assert seen == ["outer", "inner"]
    assert texts(log) == {"c1": "{'changed': True}"}
    assert log.of("tool_execution_end")[0].result.details == {"turn": 0}
    assert [event.tool_call_id for event in log.of("tool_execution_update")] == ["c1"]


def call_alone(tool: Tool, **options: Any) -> Coroutine[Any, Any, Any]:
    message: AssistantMessage = scripted_message()
    return run_tool_call(ToolCallContent(id="c", name=tool.name), tools=[tool], assistant_message=message, **options)


def test_a_single_call_is_given_up_after_the_grace_period() -> None:
    controller = AbortController()

    async def deaf(arguments: Any, context: ToolContext) -> str:
        controller.abort()
        await asyncio.Event().wait()
        return "never"

    outcome = run(call_alone(make_tool("deaf", deaf), signal=controller.signal, abort_grace_seconds=0.02))
    assert (outcome.result.content[0].text, outcome.is_error) == ("Operation aborted", True)


def test_a_single_call_raises_what_its_update_callback_raises() -> None:
    async def reporting(arguments: Any, context: ToolContext) -> str:
        context.update("half")
        await asyncio.Event().wait()
        return "never"

    def broken(result: ToolResult) -> None:
        raise OSError("screen gone")

    with pytest.raises(OSError, match="screen gone"):
        run(call_alone(make_tool("reporting", reporting), on_update=broken))


def test_a_guard_that_raises_is_named_in_the_result_and_reported() -> None:
    reported: list[str] = []

    class Guard:
        @hookimpl
        def before_tool_call(self, call: ToolCall) -> None:
            raise HookError("no policy", plugin="policy", hook="before_tool_call")

        @hookimpl
        def plugin_error(self, failure: PluginFailure) -> None:
            reported.append(failure.hook)

    outcome = run(call_alone(make_tool("quick", quick), hooks=Hooks.over(Guard())))
    assert outcome.is_error
    assert outcome.result.content[0].text.startswith("no policy")
    assert outcome.duration_ms is None
    assert reported == ["before_tool_call"]
