"""Plain functions that an application passes to its agent, beside plugins."""

from __future__ import annotations

from typing import Any

import pytest

from pi_core import Agent, Block, Hooks, ToolCall, UserMessage, hookimpl
from pi_core.testing import SCRIPTED_MODEL, Call, Reply, ScriptedProvider, scripted_agent

from . import samples
from .making import holding

READ = Reply(Call("read", {"path": "x"}))


def end_of(log: Any) -> tuple[bool, str]:
    (event,) = log.of("tool_execution_end")
    return event.is_error, event.result.content[0].text


def test_a_function_takes_part_before_the_plugins() -> None:
    trace: list[str] = []

    def own(call: ToolCall) -> None:
        trace.append(f"own {call.name}")

    plugin = holding("p", before_tool_call=hookimpl(lambda self: trace.append("plugin")))
    agent, _, _ = scripted_agent(READ, "done", plugins=[plugin], tools=[samples.tool()], before_tool_call=own)
    agent.run_sync("go")
    assert trace == ["own read", "plugin"]


def test_an_agent_needs_no_plugin() -> None:
    agent, provider, _ = scripted_agent("ok", transform_context=lambda messages: messages[-1:])
    agent.run_sync([UserMessage(content="a"), UserMessage(content="b")])
    assert [message.content for message in provider.requests[0].messages] == ["b"]


def test_a_function_that_raises_is_blamed_on_the_application() -> None:
    async def fail(call: ToolCall) -> None:
        raise ValueError("boom")

    agent, _, log = scripted_agent(READ, "done", tools=[samples.tool()], before_tool_call=fail)
    agent.run_sync("go")
    assert end_of(log) == (True, "boom (plugin 'application', hook before_tool_call)")


def test_a_facade_of_its_own_is_extended_and_loses_no_guard() -> None:
    hooks = Hooks(callables={"before_tool_call": lambda call: Block("the first guard")})
    provider = ScriptedProvider(READ, "done")
    agent = Agent(
        model=SCRIPTED_MODEL,
        stream=provider.stream,
        hooks=hooks,
        tools=[samples.tool()],
        before_tool_call=lambda call: None,
    )
    messages = agent.run_sync("go")
    assert messages[2].content[0].text == "the first guard"  # type: ignore[union-attr]
    assert [owner.plugin for owner, _, _ in hooks.implementations("before_tool_call")] == ["application"]


def test_a_name_that_is_no_hook() -> None:
    with pytest.raises(TypeError, match="there is no hook 'before_tool_cal' that a callable can implement"):
        scripted_agent(before_tool_cal=lambda call: None)


def test_a_callable_object_may_be_async() -> None:
    class Stop:
        async def __call__(self, turn: Any) -> bool:
            return True

    agent, provider, _ = scripted_agent(READ, "never", tools=[samples.tool()], should_stop_after_turn=Stop())
    agent.run_sync("go")
    assert len(provider.requests) == 1
