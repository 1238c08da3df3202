"""The limits of a run: where it ends, and what the transcript says about it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pi_core import (
    Agent,
    AgentContext,
    AgentLoopConfig,
    AgentMessage,
    AssistantMessage,
    Build,
    Cost,
    Hooks,
    ModelCost,
    SelectionContext,
    Usage,
    hookimpl,
    run_agent_loop,
    tool,
    user_message,
)
from pi_core.testing import SCRIPTED_MODEL, Barrier, Call, EventLog, Reply, ScriptedProvider, Wait
from pi_plugins.limits import LimitsPlugin


@tool
def look() -> str:
    """Look."""
    return "nothing"


def limited(**options: Any) -> LimitsPlugin:
    plugin = LimitsPlugin()
    plugin.configure(plugin.Options.model_validate(options))
    return plugin


def agent_with(plugin: LimitsPlugin, *replies: Reply | str, **options: Any) -> tuple[Agent, ScriptedProvider]:
    provider = ScriptedProvider(*replies)
    options = {"tools": [look], **options}
    return Agent(model=SCRIPTED_MODEL, stream=provider.stream, plugins=[plugin], **options), provider


def looking(cost: float = 0.0) -> Reply:
    return Reply(Call("look"), usage=Usage(cost=Cost(total=cost)))


def last(agent: Agent) -> AssistantMessage:
    message = agent.state.messages[-1]
    assert isinstance(message, AssistantMessage)
    return message


def test_a_run_ends_after_its_turns_and_says_so() -> None:
    agent, provider = agent_with(limited(turns=2), *[looking() for _ in range(5)])
    log = EventLog(agent)
    messages = agent.run_sync("go")
    assert len(provider.requests) == 2
    assert [message.role for message in messages] == ["user", *["assistant", "toolResult"] * 2, "assistant"]
    assert last(agent).stop_reason == "aborted"
    assert last(agent).error_message == agent.state.error_message == "Stopped after 2 turns: limits.turns is 2"
    assert log.types[-3:] == ["message_end", "turn_end", "agent_end"]


def test_each_run_has_all_of_its_turns() -> None:
    agent, provider = agent_with(limited(turns=2), looking(), "one", looking(), "two")
    agent.run_sync("go")
    agent.run_sync("go on")
    assert len(provider.requests) == 4
    assert (last(agent).stop_reason, last(agent).text) == ("stop", "two")


def test_an_answer_within_the_limit_is_left_alone_and_queued_messages_stay() -> None:
    agent, provider = agent_with(limited(turns=1), "answer", "second")
    agent.follow_up(user_message("more"))
    agent.run_sync("go")
    assert (last(agent).stop_reason, last(agent).text) == ("stop", "answer")
    assert len(provider.requests) == 1
    assert agent.has_queued_messages


def test_the_turn_that_passes_the_cost_is_the_last_one() -> None:
    replies: list[Reply | str] = [looking(0.3), looking(0.3), looking(0.3), "a run pays only for itself"]
    agent, provider = agent_with(limited(cost_usd=0.5), *replies)
    agent.run_sync("go")
    assert len(provider.requests) == 2
    assert last(agent).error_message == "Stopped after $0.6: limits.cost_usd is 0.5"
    agent.run_sync("go on")
    assert last(agent).text == "a run pays only for itself"


def test_time_that_is_up_aborts_a_request_and_says_so() -> None:
    agent, _ = agent_with(limited(seconds=0.02), Reply("a part", Wait(Barrier()), "never"))
    agent.run_sync("go")
    assert (last(agent).stop_reason, last(agent).text) == ("aborted", "a part")
    assert last(agent).error_message == "Stopped after 0.02 s: limits.seconds is 0.02"


def test_time_that_is_up_aborts_tools_and_says_so() -> None:
    @tool
    async def wait() -> str:
        """Wait."""
        await asyncio.Event().wait()
        return "never"

    replies: list[Reply | str] = [Reply(Call("wait")), "never asked for"]
    agent, provider = agent_with(limited(seconds=0.02), *replies, tools=[wait], abort_grace_seconds=0)
    agent.run_sync("go")
    assert len(provider.requests) == 1
    assert agent.state.messages[-2].role == "toolResult"
    assert last(agent).error_message == "Stopped after 0.02 s: limits.seconds is 0.02"


def test_the_clock_stops_with_the_run() -> None:
    async def main() -> AssistantMessage:
        barrier, plugin = Barrier(), limited(seconds=0.2)
        agent, _ = agent_with(plugin, "short", Reply(Wait(barrier), "long"))
        await agent.prompt("go")
        plugin.configure(LimitsPlugin.Options())
        asyncio.get_running_loop().call_later(0.3, barrier.release)
        await agent.prompt("go on")
        return last(agent)

    assert asyncio.run(main()).text == "long"


def test_a_bare_loop_ends_after_the_turn() -> None:
    async def main() -> list[AgentMessage]:
        provider = ScriptedProvider(looking(), looking(), looking())
        config = AgentLoopConfig(model=SCRIPTED_MODEL, hooks=Hooks.over(limited(turns=2)), stream=provider.stream)
        return await run_agent_loop([user_message("go")], AgentContext(tools=[look]), config, lambda event: None)

    assert [message.role for message in asyncio.run(main())] == ["user", *["assistant", "toolResult"] * 2]


class Prices:
    """Knows a model with a price and one without."""

    @hookimpl
    def resolve_model(self, name: str | None) -> Any:
        priced = SCRIPTED_MODEL.model_copy(update={"cost": ModelCost(input=1, output=2)})
        return {"free": SCRIPTED_MODEL, "priced": priced}.get(name or "")


@pytest.mark.parametrize(
    ("limit", "name", "notices"),
    [
        ("cost_usd", "free", ["No prices are known for scripted/scripted: the limit of $1 has no effect"]),
        ("cost_usd", "priced", []),
        ("cost_usd", "unknown", []),
        ("turns", "free", []),
    ],
)
def test_a_cost_limit_without_prices_is_pointed_out(limit: str, name: str, notices: list[str]) -> None:
    selection = SelectionContext()
    model = asyncio.run(Hooks.over(limited(**{limit: 1}), Prices()).resolve_model(name, selection))
    assert (model is None) == (name == "unknown")
    assert selection.notices == notices


@pytest.mark.parametrize("options", [{"turns": 0}, {"seconds": -1}, {"cost_usd": float("nan")}, {"tokens": 3}])
def test_senseless_limits_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        LimitsPlugin.Options.model_validate(options)


def test_a_build_file_sets_them(tmp_path: Path) -> None:
    path = tmp_path / "pi-build.toml"
    path.write_text('[build]\nname = "team"\n[limits]\nturns = 1\n', encoding="utf-8")
    provider = ScriptedProvider(looking(), "never asked for")
    agent = Build.load(path).agent(model=SCRIPTED_MODEL, tools=[look], stream=provider.stream)
    agent.run_sync("go")
    assert len(provider.requests) == 1
    assert last(agent).error_message == "Stopped after 1 turn: limits.turns is 1"
