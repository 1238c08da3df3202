"""The loop: requests and their cost, streams that misbehave, polls, and the loop as a stream of events."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from pi_core import (
    Agent,
    AgentContext,
    AgentEvent,
    AgentLoopConfig,
    AgentMessage,
    AssistantMessage,
    AssistantStream,
    ConfigError,
    Context,
    HookError,
    Hooks,
    MessageAssembler,
    MessageUpdateEvent,
    Model,
    RunContext,
    StartEvent,
    StreamEvent,
    StreamOptions,
    TextContent,
    TextDeltaEvent,
    TextEndEvent,
    TextStartEvent,
    Tool,
    ToolCall,
    ToolContext,
    Turn,
    TurnUpdate,
    UserMessage,
    agent_loop,
    agent_loop_continue,
    hookimpl,
    run_agent_loop,
    run_agent_loop_continue,
    user_message,
)
from pi_core.testing import SCRIPTED_MODEL, Call, Reply, ScriptedProvider, scripted_agent

from .running import quick, run

CLOSING = ["message_start", "message_end", "turn_end", "agent_end"]


QUICK = Tool("quick", "", {"type": "object", "properties": {}}, quick)


def config(stream: Any, **options: Any) -> AgentLoopConfig:
    return AgentLoopConfig(model=SCRIPTED_MODEL, stream=stream, **options)


def ignore(event: AgentEvent) -> None:
    pass


def said(messages: Iterable[AgentMessage]) -> list[str]:
    """The texts of the user messages."""
    return [message.content[0].text for message in messages if isinstance(message, UserMessage)]  # type: ignore[union-attr]


# --- streams ------------------------------------------------------------------------------------------------------


class Watched:
    """A response whose closing is observed."""

    def __init__(self, *, then: Any = None, closing: Exception | None = None) -> None:
        self.closed = 0
        self._then = then
        self._closing = closing

    async def __call__(self, model: Model, context: Context, options: StreamOptions) -> Any:
        return self._events(model, options)

    async def _events(self, model: Model, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        assembler = MessageAssembler(model.api, model.provider, model.id)
        try:
            yield assembler.start()
            yield assembler.text_start(0, "Hi")
            if self._then is not None:
                yield self._then
            yield assembler.done("stop")
            yield assembler.text_delta(0, "never read")
        finally:
            self.closed += 1
            if self._closing is not None:
                raise self._closing


def test_a_response_is_closed_when_it_is_complete() -> None:
    watched = Watched()
    messages = run(run_agent_loop([], AgentContext(), config(watched), ignore))
    assert [message.text for message in messages] == ["Hi"]
    assert watched.closed == 1


def test_a_response_is_closed_when_a_listener_fails() -> None:
    def broken(event: AgentEvent) -> None:
        if isinstance(event, MessageUpdateEvent):
            raise OSError("screen gone")

    watched = Watched()
    with pytest.raises(OSError, match="screen gone"):
        run(run_agent_loop([], AgentContext(), config(watched), broken))
    assert watched.closed == 1


def test_a_response_is_closed_when_the_run_is_cancelled() -> None:
    async def main() -> None:
        watched, reading = Watched(), asyncio.Event()

        async def slow(event: AgentEvent) -> None:
            if isinstance(event, MessageUpdateEvent):
                reading.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(run_agent_loop([], AgentContext(), config(watched), slow))
        await reading.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert watched.closed == 1

    run(main())


def test_a_response_that_cannot_be_closed_counts_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    messages = run(run_agent_loop([], AgentContext(), config(Watched(closing=OSError("reset"))), ignore))
    assert [message.text for message in messages] == ["Hi"]
    assert "reset" in caplog.text


def test_what_is_no_stream_event_fails_the_run() -> None:
    with pytest.raises(TypeError, match="'surprise'"):
        run(run_agent_loop([], AgentContext(), config(Watched(then="surprise")), ignore))


def test_events_made_by_hand() -> None:
    partial = AssistantMessage(
        content=[TextContent(text="He")], api="a", provider="p", model="m", stop_reason="pending", response_id="r"
    )
    seen: list[str] = []

    async def stream(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        yield StartEvent(partial)
        yield TextDeltaEvent(0, "llo")
        yield TextStartEvent(1)
        yield TextDeltaEvent(1, "you")
        yield TextEndEvent(1, "You")

    def emit(event: AgentEvent) -> None:
        if isinstance(event, MessageUpdateEvent):
            seen.append("|".join(block.text for block in event.message.content if isinstance(block, TextContent)))

    [message] = run(run_agent_loop([], AgentContext(), config(stream), emit))
    assert seen == ["Hello", "Hello|", "Hello|you", "Hello|You"]
    assert (message.text, message.response_id, message.stop_reason) == ("HelloYou", "r", "error")
    assert message.error_message == "Stream ended without a final event"


def test_a_pushed_response() -> None:
    async def stream(model: Model, context: Context, options: StreamOptions) -> AssistantStream:
        stream = AssistantStream()
        assembler = MessageAssembler(model.api, model.provider, model.id)
        stream.push(assembler.start())
        if context.messages:
            stream.fail(ConnectionError("reset"))
        stream.end(assembler.message("length"))
        return stream

    [message] = run(run_agent_loop([], AgentContext(), config(stream), ignore))
    assert message.stop_reason == "length"
    with pytest.raises(ConnectionError):
        run(run_agent_loop([user_message("go")], AgentContext(), config(stream), ignore))


def test_a_stream_hook_needs_no_stream_function() -> None:
    class Plugin:
        @hookimpl
        async def stream(self, model: Model, context: Context, options: StreamOptions) -> Any:
            return ScriptedProvider("hello").stream(model, context, options) if model.id == "scripted" else None

    hooks = Hooks.over(Plugin())
    [message] = run(run_agent_loop([], AgentContext(), AgentLoopConfig(model=SCRIPTED_MODEL, hooks=hooks), ignore))
    assert message.text == "hello"
    other = AgentLoopConfig(model=Model(id="x", api="their-api", provider="p"), hooks=hooks)
    with pytest.raises(ConfigError, match="their-api"):
        run(run_agent_loop([], AgentContext(), other, ignore))


# --- polls --------------------------------------------------------------------------------------------------------


def test_the_queue_comes_before_the_plugins() -> None:
    class Plugin:
        @hookimpl
        def steering_messages(self, ctx: RunContext) -> Iterable[AgentMessage]:
            return (user_message(f"plugin {number}") for number in range(2) if ctx.turn_index == 0)

        @hookimpl
        async def follow_up_messages(self, ctx: RunContext) -> AgentMessage | None:
            return user_message("more") if ctx.turn_index == 1 else None

    agent, provider, _ = scripted_agent("1", "2", "3", plugins=[Plugin()], steering_mode="all")
    agent.steer(user_message("queue"))
    run(agent.prompt("go"))
    assert said(provider.requests[-1].messages) == [
        "go",
        "queue",
        "plugin 0",
        "plugin 1",
        "plugin 0",
        "plugin 1",
        "more",
    ]


@pytest.mark.parametrize("hook", ["steering_messages", "follow_up_messages"])
def test_a_plugin_that_fails_at_a_poll_costs_no_queued_message(hook: str) -> None:
    async def broken(ctx: RunContext) -> None:
        raise LookupError("queue gone")

    agent, _, log = scripted_agent("answer", **{hook: broken})
    agent.steer(user_message("steer"))
    agent.follow_up(user_message("later"))
    run(agent.prompt("go"))
    assert log.types[-4:] == CLOSING
    assert len(agent.follow_up_queue) == 1
    assert len(agent.steering_queue) == (1 if hook == "steering_messages" else 0)


def test_an_aborted_run_asks_no_hook_for_another_request() -> None:
    asked: list[str] = []

    class Plugin:
        @hookimpl
        def transform_context(self) -> None:
            asked.append("transform_context")

        @hookimpl
        def get_api_key(self) -> None:
            asked.append("get_api_key")

        @hookimpl
        def prepare_next_turn(self) -> None:
            asked.append("prepare_next_turn")

        @hookimpl
        def should_stop_after_turn(self) -> None:
            asked.append("should_stop_after_turn")

    agent, provider, log = scripted_agent(Reply(Call("quick")), "never", tools=[QUICK], plugins=[Plugin()])

    def abort(event: AgentEvent, signal: Any) -> None:
        if event.type == "turn_end":
            agent.abort()

    agent.subscribe(abort)
    run(agent.prompt("go"))
    assert asked == ["transform_context", "get_api_key", "should_stop_after_turn"]
    assert len(provider.requests) == 1
    assert log.types[-5:] == ["turn_start", *CLOSING]
    assert agent.state.messages[-1].error_message == "Request was aborted"


# --- context variables --------------------------------------------------------------------------------------------


def test_context_variables_reach_the_provider_hooks_and_tools() -> None:
    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="nobody")
    seen: list[tuple[str, str]] = []

    class Plugin:
        @hookimpl
        async def before_tool_call(self, call: ToolCall) -> None:
            seen.append(("hook", tenant.get()))

    async def asynchronous(arguments: Any, context: ToolContext) -> None:
        seen.append(("tool", tenant.get()))
        tenant.set("changed by one call")

    def threaded(arguments: Any, context: ToolContext) -> None:
        seen.append(("thread", tenant.get()))

    def stream(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        seen.append(("provider", tenant.get()))
        return provider.stream(model, context, options)

    provider = ScriptedProvider(Reply(Call("a", id="1"), Call("t", id="2")), "done")
    schema = {"type": "object", "properties": {}}
    tools = [Tool("a", "", schema, asynchronous), Tool("t", "", schema, threaded)]
    agent = Agent(model=SCRIPTED_MODEL, stream=stream, tools=tools, plugins=[Plugin()])

    async def main() -> None:
        tenant.set("acme")
        await agent.prompt("go")
        assert tenant.get() == "acme"

    run(main())
    assert {value for _, value in seen} == {"acme"}
    assert {place for place, _ in seen} == {"hook", "tool", "thread", "provider"}


# --- as a stream --------------------------------------------------------------------------------------------------


def test_the_loop_as_a_stream() -> None:
    async def main() -> None:
        context = AgentContext(messages=[user_message("earlier")], tools=[QUICK])
        provider = ScriptedProvider(Reply(Call("quick")), "done", "continued")
        stream = agent_loop([user_message("go")], context, config(provider.stream))
        types = [event.type async for event in stream]
        assert (types[0], types[-1]) == ("agent_start", "agent_end")
        assert len(context.messages) == 1
        produced = await stream.result()
        assert [message.role for message in produced] == ["user", "assistant", "toolResult", "assistant"]
        continued = agent_loop_continue(context, config(provider.stream))
        assert [message.text for message in await continued.result()] == ["continued"]

    run(main())


def test_closing_the_stream_ends_the_run() -> None:
    async def main() -> None:
        ended = []

        async def endless(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
            assembler = MessageAssembler(model.api, model.provider, model.id)
            yield assembler.start()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(True)

        stream = agent_loop([], AgentContext(), config(endless))
        async for event in stream:
            if event.type == "message_start":
                break
        await stream.aclose()
        assert ended == [True]
        assert [event async for event in stream] == []
        with pytest.raises(RuntimeError, match="closed"):
            await stream.result()

    run(main())


def test_the_stream_raises_what_the_run_failed_with() -> None:
    async def broken(messages: list[AgentMessage]) -> None:
        raise LookupError("pruned too much")

    async def main() -> None:
        hooks = Hooks(None, {"transform_context": broken})
        stream = agent_loop([user_message("go")], AgentContext(), config(ScriptedProvider().stream, hooks=hooks))
        types = [(await anext(stream)).type for _ in range(4)]
        assert types == ["agent_start", "turn_start", "message_start", "message_end"]
        for read in (anext(stream), stream.result()):
            with pytest.raises(HookError, match="pruned too much"):
                await read

    run(main())


def test_observing_plugins_are_called_before_the_sink() -> None:
    order: list[str] = []

    class Plugin:
        @hookimpl
        async def on_message_update(self, event: MessageUpdateEvent) -> None:
            await asyncio.sleep(0)
            order.append("plugin")

    async def sink(event: AgentEvent) -> None:
        if event.type == "message_update":
            order.append("sink")

    settings = config(ScriptedProvider("hello").stream, hooks=Hooks.over(Plugin()))
    run(run_agent_loop_continue(AgentContext(messages=[user_message("go")]), settings, sink))
    assert order == ["plugin", "sink"] * 3


def test_the_run_context_follows_the_run() -> None:
    seen: list[tuple[int, int, str, str]] = []

    class Plugin:
        @hookimpl
        def transform_context(self, messages: list[AgentMessage], ctx: RunContext) -> None:
            seen.append((ctx.turn_index, len(ctx.messages), ctx.system_prompt, ctx.model.id))

        @hookimpl
        def prepare_next_turn(self, turn: Turn, ctx: RunContext) -> TurnUpdate:
            other = SCRIPTED_MODEL.model_copy(update={"id": "other"})
            return TurnUpdate(model=other, context=turn.context.copy(system_prompt="new"))

    agent, provider, _ = scripted_agent(
        Reply(Call("quick")), "done", tools=[QUICK], plugins=[Plugin()], system_prompt="old"
    )
    run(agent.prompt("go"))
    assert seen == [(0, 1, "old", "scripted"), (1, 3, "new", "other")]
    assert [request.system_prompt for request in provider.requests] == ["old", "new"]
    assert (agent.state.system_prompt, agent.state.model.id) == ("old", "scripted")
