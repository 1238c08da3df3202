"""Builds made in Python; build files are in ``test_build_file``."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest

from pi_core import Build, ConfigError, HookError, Tool, hookimpl
from pi_core.testing import SCRIPTED_MODEL, Call, Reply, ScriptedProvider


def tool(name: str) -> Tool:
    parameters = {"type": "object", "properties": {}}
    return Tool(name, "", parameters, lambda arguments, context: f"{name} ran")


class Offers:
    """A plugin with tools and a provider."""

    def __init__(self, name: str, *tools: str, replies: tuple[Any, ...] = ()) -> None:
        self.name = name
        self.tools = [tool(one) for one in tools]
        self.provider = ScriptedProvider(*replies)

    @hookimpl
    def register_tools(self) -> list[Tool]:
        return self.tools

    @hookimpl
    def register_providers(self) -> list[Any]:
        return [self.provider] if self.provider.replies else []


def build(*plugins: Any, **options: Any) -> Build:
    return Build(list(plugins), only=[], **options)


def test_an_agent_of_a_build_has_its_tools_providers_and_hooks() -> None:
    one = Offers("a", "look", replies=(Reply(Call("look")), "done"))
    agent = build(one).agent(model=SCRIPTED_MODEL, system_prompt="Be brief.")
    messages = agent.run_sync("go")
    assert [message.role for message in messages] == ["user", "assistant", "toolResult", "assistant"]
    assert one.provider.requests[0].system_prompt == "Be brief."
    assert one.provider.requests[0].tool_names == ["look"]


def test_tools_by_name_by_owner_and_as_they_are() -> None:
    made = build(Offers("a", "read", "write"), Offers("b", "read"))
    assert [one.name for one in made.tools()] == ["write"]
    assert made.tools(["a/read"])[0] is not made.tools(["b/read"])[0]
    own = tool("own")
    agent = build(Offers("a", "x", replies=("ok",))).agent(model=SCRIPTED_MODEL, tools=["x", own])
    assert [one.name for one in agent.state.tools] == ["x", "own"]
    assert build(Offers("a", "x", replies=("ok",))).agent(model=SCRIPTED_MODEL, tools=[]).state.tools == []


def test_a_tool_that_is_not_there_and_one_that_two_own() -> None:
    made = build(Offers("a", "read"), Offers("b", "read", "ls"))
    with pytest.raises(ConfigError, match=r"There is no tool 'cat'\. Tools here: ls"):
        made.tools(["cat"])
    with pytest.raises(ConfigError, match="tool 'read' is offered by plugin 'a' and plugin 'b'"):
        made.tools(["read"])
    with pytest.raises(ConfigError, match="Tools here: none"):
        build().tools(["cat"])


def test_a_model_nobody_serves() -> None:
    other = SCRIPTED_MODEL.model_copy(update={"api": "other"})
    with pytest.raises(ConfigError, match=r"speaks 'other' \(providers here: scripted\)"):
        build(Offers("a", replies=("ok",))).agent(model=other)


def test_builds_do_not_see_each_other() -> None:
    one, two = build(Offers("a", "x")), build(Offers("b", "y"))
    assert (one.registry.tools.names(), two.registry.tools.names()) == (["x"], ["y"])


def test_blocked_by_the_environment() -> None:
    made = Build.from_environment(environ={"PI_BLOCK": " modes ,, scripted"})
    states = {record.name: record.state for record in made.plugins}
    assert (states["modes"], states["scripted"], states["models"]) == ("blocked", "blocked", "loaded")
    assert Build.from_environment(environ={}).registry.commands.get("prompt") is not None


def test_problems_are_those_of_the_loader() -> None:
    made = build(Offers("a", "read"), Offers("b", "read"), order=["zzz"])
    conflict, fault = made.problems()
    assert conflict.startswith("tool 'read' is offered by plugin 'a' and plugin 'b'")
    assert fault == "the order names plugin 'zzz', which is not installed"
    with pytest.raises(ConfigError, match="the order names plugin 'zzz'"):
        build(order=["zzz"], strict=True)


def test_decisions() -> None:
    made = build(Offers("a", "read"), Offers("b", "read"), conflicts={"read": "b"})
    assert made.problems() == []
    owner = made.registry.tools.owner("read")
    assert owner is not None
    assert owner.plugin == "b"


def test_agents_of_one_build_share_its_plugins_and_nothing_else() -> None:
    made = build(Offers("a", replies=("one", "two")))
    first, second = (made.agent(model=SCRIPTED_MODEL) for _ in range(2))

    async def main() -> None:
        await asyncio.gather(first.prompt("hi"), second.prompt("ho"))

    asyncio.run(main())
    assert (len(first.state.messages), len(second.state.messages)) == (2, 2)


def test_a_plugin_that_fails_on_a_name_is_blamed_and_one_that_refuses_it_is_heard() -> None:
    class Models:
        @hookimpl
        def resolve_model(self, name: str | None) -> Any:
            if name == "refused":
                raise ConfigError("Not this one.")
            return SCRIPTED_MODEL if name == "known" else dataclasses.fields(3)  # type: ignore[arg-type]

    made = build(Models())
    assert asyncio.run(made.resolve_model("known")) is SCRIPTED_MODEL
    with pytest.raises(ConfigError, match=r"^Not this one\.$"):
        asyncio.run(made.resolve_model("refused"))
    with pytest.raises(HookError, match="plugin 'Models', hook resolve_model"):
        asyncio.run(made.resolve_model("broken"))
