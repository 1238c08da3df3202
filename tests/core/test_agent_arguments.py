"""What an agent refuses to be made of or given, before it can spoil a transcript."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pi_core import Agent, ConfigError, MessageQueue, Tool, user_message
from pi_core.testing import SCRIPTED_MODEL, scripted_agent


def make(**arguments: Any) -> Agent:
    return Agent(**{"model": SCRIPTED_MODEL, "stream": lambda *given: None, **arguments})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"model": "gpt"}, "model is a Model, got str"),
        ({"tools": [print]}, "expected a Tool, got builtin_function_or_method; @tool makes one"),
        ({"messages": ["text"]}, "expected a message, got str"),
        ({"system_prompt": None}, "system_prompt is a text, perhaps empty, got NoneType"),
    ],
)
def test_an_agent_is_not_made_of_something_else(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        make(**arguments)


def named(name: str) -> Tool:
    return Tool(name, "", {"type": "object"}, lambda arguments, context: None)


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="two tools are named 'same'"):
        make(tools=[named("same"), named("other"), named("same")])


@pytest.mark.parametrize(
    ("name", "value", "error", "said"),
    [
        ("system_prompt", None, TypeError, "system_prompt is a text"),
        ("model", "gpt", TypeError, "model is a Model, got str"),
        ("thinking_level", "hard", ValueError, "one of off, minimal, .*, got 'hard'"),
        ("tools", [named("same"), named("same")], ConfigError, "two tools are named 'same'"),
    ],
)
def test_a_refused_value_leaves_the_state_as_it_was(
    name: str, value: object, error: type[Exception], said: str
) -> None:
    state = make(system_prompt="Be brief.", thinking_level="low", tools=[named("one")]).state
    before = getattr(state, name)
    with pytest.raises(error, match=said):
        setattr(state, name, value)
    assert getattr(state, name) is before


@pytest.mark.parametrize("name", ["tool_execution", "steering_mode", "follow_up_mode"])
def test_a_way_that_does_not_exist(name: str) -> None:
    with pytest.raises(ValueError, match="got 'some'"):
        make(**{name: "some"})
    with pytest.raises(ValueError, match="all or one-at-a-time at a drain"):
        MessageQueue("some")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "give",
    [
        lambda agent: agent.steer("text"),
        lambda agent: agent.follow_up(user_message("first"), [user_message("second")]),
        lambda agent: agent.run_sync(["text"]),
        lambda agent: agent.run_sync(5),
        lambda agent: setattr(agent.state, "messages", [None]),
        lambda agent: setattr(agent.state, "tools", [None]),
    ],
)
def test_what_is_refused_leaves_no_trace(give: Callable[[Agent], Any]) -> None:
    agent, provider, _ = scripted_agent("done")
    with pytest.raises(TypeError, match="expected a "):
        give(agent)
    assert (agent.state.messages, agent.state.tools, agent.has_queued_messages) == ([], [], False)
    agent.run_sync("go")
    assert [message.role for message in agent.state.messages] == ["user", "assistant"]
    provider.assert_exhausted()
