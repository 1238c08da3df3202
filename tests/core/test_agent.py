"""The agent: subscribers, queues, continuing, state, and failures of its run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pi_core import (
    AbortSignal,
    Agent,
    AgentBusyError,
    AgentEvent,
    AgentMessage,
    ConfigError,
    ContinueError,
    HookError,
    Hooks,
    ImageContent,
    MessageQueue,
    RunContext,
    StreamOptions,
    TextContent,
    Tool,
    ToolContext,
    hookimpl,
    user_message,
)
from pi_core.testing import SCRIPTED_MODEL, Call, EventLog, Reply, ScriptedProvider, scripted_agent, scripted_message

from .running import run

CLOSING = ["message_start", "message_end", "turn_end", "agent_end"]


# --- subscribers --------------------------------------------------------------------------------------------------


def test_a_subscriber_added_during_an_event_gets_that_event() -> None:
    agent, _, _ = scripted_agent("hello")
    seen: list[str] = []

    def first(event: AgentEvent, signal: AbortSignal) -> None:
        if event.type == "turn_start":
            agent.subscribe(lambda event, signal: seen.append(event.type))

    agent.subscribe(first)
    run(agent.prompt("go"))
    assert seen[0] == "turn_start"
    assert seen[-1] == "agent_end"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_subscribers_that_leave_during_an_event(asynchronous: bool) -> None:
    agent, _, _ = scripted_agent("hello")
    order: list[str] = []

    def subscriber(name: str) -> Any:
        async def later() -> None:
            await asyncio.sleep(0)

        def handle(event: AgentEvent, signal: AbortSignal) -> Any:
            if event.type != "agent_start":
                return None
            order.append(name)
            if name == "second":
                leave["first"]()
                leave["second"]()
                leave["third"]()
            return later() if asynchronous else None

        return handle

    leave = {name: agent.subscribe(subscriber(name)) for name in ("first", "second", "third", "fourth")}
    run(agent.prompt("go"))
    assert order == ["first", "second", "fourth"]
    order.clear()
    agent.reset()
    agent.stream_function = ScriptedProvider("again").stream
    run(agent.prompt("go"))
    assert order == ["fourth"]
    leave["first"]()


def test_the_same_subscriber_counts_once() -> None:
    agent, _, log = scripted_agent("hello")
    leave = agent.subscribe(log)
    run(agent.prompt("go"))
    assert log.types.count("agent_start") == 1
    leave()
    leave()
    agent.stream_function = ScriptedProvider("hello").stream
    run(agent.prompt("go"))
    assert log.types.count("agent_start") == 1


def test_a_subscriber_sees_the_state_after_the_event() -> None:
    agent, _, _ = scripted_agent("hello")
    seen: list[tuple[str, int, bool, Any]] = []

    def look(event: AgentEvent, signal: AbortSignal) -> None:
        streaming = agent.state.streaming_message
        text = "".join(block.text for block in streaming.content) if streaming is not None else None  # type: ignore[union-attr]
        seen.append((event.type, len(agent.state.messages), agent.state.is_streaming, text))

    agent.subscribe(look)
    run(agent.prompt("go"))
    assert seen == [
        ("agent_start", 0, True, None),
        ("turn_start", 0, True, None),
        ("message_start", 0, True, "go"),
        ("message_end", 1, True, None),
        ("message_start", 1, True, ""),
        ("message_update", 1, True, ""),
        ("message_update", 1, True, "hello"),
        ("message_update", 1, True, "hello"),
        ("message_end", 2, True, None),
        ("turn_end", 2, True, None),
        ("agent_end", 2, True, None),
    ]
    assert not agent.state.is_streaming


# --- prompts ------------------------------------------------------------------------------------------------------


def test_what_a_prompt_may_be() -> None:
    agent, provider, _ = scripted_agent("1", "2", "3", "4")
    image = ImageContent(data="QUJD", mime_type="image/png")
    produced = run(agent.prompt("look", [image]))
    assert [message.role for message in produced] == ["user", "assistant"]
    assert produced[0].content == [TextContent(text="look"), image]
    run(agent.prompt(user_message("one"), [image]))
    run(agent.prompt((user_message("two"), user_message("three"))))
    assert run(agent.prompt([]))[-1].text == "4"
    assert [len(request.messages) for request in provider.requests] == [1, 3, 6, 7]


def test_an_agent_runs_in_one_event_loop_after_another() -> None:
    agent, _, _ = scripted_agent("1", "2")
    assert agent.run_sync("go")[-1].text == "1"
    assert agent.run_sync("go")[-1].text == "2"
    assert len(agent.state.messages) == 4


def test_one_run_at_a_time() -> None:
    agent, _, _ = scripted_agent("hello")
    refused: list[str] = []

    async def intrude(event: AgentEvent, signal: AbortSignal) -> None:
        for attempt in (agent.prompt("second"), agent.continue_()):
            with pytest.raises(AgentBusyError) as caught:
                await attempt
            refused.append(str(caught.value))
        with pytest.raises(AgentBusyError):
            agent.reset()

    agent.subscribe(intrude)
    run(agent.prompt("go"))
    assert "steer()" in refused[0]
    assert len(agent.state.messages) == 2


def test_no_one_to_ask() -> None:
    with pytest.raises(ConfigError, match="scripted"):
        Agent(model=SCRIPTED_MODEL)
    with pytest.raises(TypeError, match="plugins or hooks"):
        Agent(stream=ScriptedProvider().stream, plugins=[object()], hooks=Hooks())
    with pytest.raises(TypeError, match="no hook 'before_tool'"):
        Agent(stream=ScriptedProvider().stream, before_tool=lambda call: None)


def test_the_transport_is_auto_unless_the_options_name_one() -> None:
    stream = ScriptedProvider().stream
    assert Agent(stream=stream).options.transport == "auto"
    options = Agent(stream=stream, options=StreamOptions(session_id="s")).options
    assert (options.session_id, options.transport) == ("s", "auto")
    assert Agent(stream=stream, options=StreamOptions(transport="sse")).options.transport == "sse"


# --- queues -------------------------------------------------------------------------------------------------------


def test_queues() -> None:
    kept = MessageQueue()
    agent, _, _ = scripted_agent("1", steering_queue=kept, follow_up_mode="all")
    assert agent.steering_queue is kept
    agent.follow_up(user_message("later"), user_message("even later"))
    assert agent.peek_queued_messages() == agent.follow_up_queue.peek()
    assert len(agent.peek_queued_messages()) == 2
    agent.steer(user_message("a"), user_message("b"))
    assert len(agent.peek_queued_messages()) == 1
    assert agent.has_queued_messages
    agent.clear_queues()
    assert not agent.has_queued_messages
    assert (kept.drain(), agent.peek_queued_messages()) == ([], [])


def test_a_hook_steers_and_ends_the_run() -> None:
    class Plugin:
        @hookimpl
        def after_tool_call(self, ctx: RunContext) -> None:
            ctx.steer(user_message("be brief"))
            ctx.follow_up(user_message("thanks"))
            ctx.abort()

    async def quick(arguments: Any, context: ToolContext) -> str:
        return "ok"

    tool = Tool("quick", "", {"type": "object"}, quick)
    agent, provider, log = scripted_agent(Reply(Call("quick")), "more", tools=[tool], plugins=[Plugin()])
    run(agent.prompt("go"))
    assert len(provider.requests) == 1
    assert agent.state.messages[-1].error_message == "Request was aborted"
    assert [len(agent.steering_queue), len(agent.follow_up_queue)] == [1, 1]
    assert log.types[-4:] == CLOSING


# --- continuing ---------------------------------------------------------------------------------------------------


def test_continuing_after_an_answer_with_what_plugins_have() -> None:
    class Plugin:
        def __init__(self) -> None:
            self.steering = [user_message("plugin steers")]

        @hookimpl
        def steering_messages(self) -> list[AgentMessage]:
            given, self.steering = self.steering, []
            return given  # type: ignore[return-value]

    agent, provider, _ = scripted_agent("1", plugins=[Plugin()], messages=[user_message("go")])
    agent.state.messages.append(scripted_message(text="an answer"))
    agent.steer(user_message("first"), user_message("second"))
    produced = run(agent.continue_())
    assert [message.role for message in produced[:2]] == ["user", "user"]
    assert len(provider.requests[0].messages) == 4
    assert len(agent.steering_queue) == 0


def test_nothing_to_continue_from_changes_nothing() -> None:
    agent, _, log = scripted_agent(Reply(error="overloaded"))
    run(agent.prompt("go"))
    seen = len(log.events)
    with pytest.raises(ContinueError, match="assistant"):
        run(agent.continue_())
    assert agent.state.error_message == "overloaded"
    assert len(log.events) == seen
    assert agent.signal is None
    agent.reset()
    assert agent.state.error_message is None
    with pytest.raises(ContinueError, match="No messages"):
        run(agent.continue_())


@pytest.mark.parametrize("hook", ["steering_messages", "follow_up_messages"])
def test_a_plugin_that_fails_before_a_continued_run_costs_no_queued_message(hook: str) -> None:
    async def broken(ctx: RunContext) -> None:
        raise LookupError("queue gone")

    agent, _, log = scripted_agent("1", "2", **{hook: broken})
    agent.state.messages = [scripted_message(text="an answer")]
    queue = agent.steering_queue if hook == "steering_messages" else agent.follow_up_queue
    queue.add(user_message("later"))
    with pytest.raises(HookError, match="queue gone"):
        run(agent.continue_())
    assert len(queue) == 1
    assert log.events == []
    assert not agent.state.is_streaming


def test_the_agent_is_busy_while_plugins_are_asked_what_to_continue_with() -> None:
    async def main() -> None:
        asked, answer = asyncio.Event(), asyncio.Event()

        async def slow(ctx: RunContext) -> AgentMessage:
            asked.set()
            await answer.wait()
            return user_message("go on")

        agent, provider, _ = scripted_agent("never asked", steering_messages=slow)
        agent.state.messages = [scripted_message(text="an answer")]
        task = asyncio.create_task(agent.continue_())
        await asked.wait()
        with pytest.raises(AgentBusyError):
            await agent.prompt("second")
        idle = asyncio.create_task(agent.wait_for_idle())
        agent.abort()
        answer.set()
        produced = await task
        await idle
        assert [message.role for message in produced] == ["user", "assistant"]
        assert produced[-1].stop_reason == "aborted"
        assert provider.requests == []

    run(main())


# --- state --------------------------------------------------------------------------------------------------------


def test_assigned_lists_are_copied_and_read_when_a_run_starts() -> None:
    agent, provider, _ = scripted_agent("1", "2")
    tools: list[Tool] = []
    messages: list[AgentMessage] = [user_message("earlier")]
    agent.state.tools, agent.state.messages = tools, messages
    run(agent.prompt("go"))
    assert (tools, len(messages)) == ([], 1)

    async def quick(arguments: Any, context: ToolContext) -> str:
        return "ok"

    agent.state.tools.append(Tool("quick", "", {"type": "object"}, quick))
    agent.state.system_prompt = "Be brief."
    run(agent.prompt("go"))
    assert (provider.requests[1].tool_names, provider.requests[1].system_prompt) == (["quick"], "Be brief.")


def test_waiting_for_idle() -> None:
    async def main() -> None:
        release = asyncio.Event()
        agent, _, _ = scripted_agent("hello")

        async def hold(event: AgentEvent, signal: AbortSignal) -> None:
            if event.type == "agent_end":
                await release.wait()

        agent.subscribe(hold)
        await agent.wait_for_idle()
        task = asyncio.create_task(agent.prompt("go"))
        await asyncio.sleep(0)
        impatient, patient = asyncio.create_task(agent.wait_for_idle()), asyncio.create_task(idle_state(agent))
        await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.wait([impatient])
        assert not task.done()
        release.set()
        assert await patient is False
        await task

    async def idle_state(agent: Agent) -> bool:
        await agent.wait_for_idle()
        return agent.state.is_streaming

    run(main())


# --- failures -----------------------------------------------------------------------------------------------------


def test_the_signal_of_a_failed_run_is_aborted_when_the_run_is_over() -> None:
    signals: list[tuple[AbortSignal, bool]] = []

    async def broken(messages: list[AgentMessage]) -> None:
        raise OSError("disk full")

    agent, _, _ = scripted_agent("never", "fine", transform_context=broken)
    agent.subscribe(lambda event, signal: signals.append((signal, signal.aborted)))
    run(agent.prompt("go"))
    assert {aborted for _, aborted in signals} == {False}
    assert signals[0][0].aborted
    assert agent.state.messages[-1].stop_reason == "error"


def test_an_exception_without_words_is_named() -> None:
    async def broken(messages: list[AgentMessage]) -> None:
        raise AssertionError

    agent, _, log = scripted_agent("never", transform_context=broken)

    def listener(event: AgentEvent, signal: AbortSignal) -> None:
        if event.type == "turn_start":
            raise ZeroDivisionError

    run(agent.prompt("go"))
    assert "transform_context" in (agent.state.error_message or "")
    agent.subscribe(listener)
    run(agent.prompt("go"))
    assert agent.state.error_message == "ZeroDivisionError"
    assert log.types[-4:] == CLOSING


def test_a_request_that_raises_cancelled_error_by_itself_fails_the_run() -> None:
    agent, _, log = scripted_agent(Reply(raises=asyncio.CancelledError()), "fine")  # type: ignore[arg-type]
    produced = run(agent.prompt("go"))
    assert (produced[-1].stop_reason, produced[-1].error_message) == ("error", "CancelledError")
    assert log.types[-4:] == CLOSING
    assert run(agent.prompt("go"))[-1].text == "fine"


def test_a_failed_request_is_a_message_and_the_agent_goes_on() -> None:
    agent, provider, log = scripted_agent(Reply("half", error="overloaded"), Reply(raises=OSError("no route")), "fine")
    assert isinstance(log, EventLog)
    assert run(agent.prompt("1"))[-1].text == "half"
    assert agent.state.error_message == "overloaded"
    assert run(agent.prompt("2"))[-1].error_message == "no route"
    assert run(agent.prompt("3"))[-1].text == "fine"
    assert agent.state.error_message is None
    provider.assert_exhausted()
