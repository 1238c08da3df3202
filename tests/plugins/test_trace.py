"""Tracing of hooks into a file: what is written, and what becomes of a run whose trace cannot be."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from pi_core import Agent, PluginFailure, UserMessage, hookimpl
from pi_core.testing import SCRIPTED_MODEL, ScriptedProvider
from pi_plugins.trace import TraceOptions, TracePlugin, TraceWriter

FULL = Path("/dev/full")
needs_a_full_disk = pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")


class Greeter:
    """Puts a message in front of each request, and collects the failures of plugins."""

    def __init__(self) -> None:
        self.failures: list[PluginFailure] = []

    @hookimpl
    def transform_context(self, messages: list[UserMessage]) -> list[UserMessage]:
        return [UserMessage(content="hello"), *messages]

    @hookimpl
    def plugin_error(self, failure: PluginFailure) -> None:
        self.failures.append(failure)


def traced_by_the_plugin(file: Path, greeter: Greeter, *, runs: int = 1) -> tuple[Agent, ScriptedProvider]:
    plugin = TracePlugin()
    plugin.configure(TraceOptions(file=file))
    provider = ScriptedProvider(*["done"] * runs)
    agent = Agent(model=SCRIPTED_MODEL, stream=provider.stream, plugins=[plugin, greeter])

    async def run() -> None:
        for _ in range(runs):
            await agent.prompt("go")

    asyncio.run(run())
    return agent, provider


def test_every_call_of_an_implementation_is_a_line(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    traced_by_the_plugin(file, Greeter(), runs=2)
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    transforms = [line for line in lines if line["hook"] == "transform_context"]
    assert [line["plugin"] for line in transforms] == ["Greeter", "Greeter"]
    assert all("changed" in line for line in transforms)


@needs_a_full_disk
def test_a_disk_that_is_full_is_told_once_and_no_plugin_is_blamed() -> None:
    told: list[OSError] = []
    greeter = Greeter()
    provider = ScriptedProvider("done", "done")
    agent = Agent(model=SCRIPTED_MODEL, stream=provider.stream, plugins=[greeter])
    agent.hooks.trace(TraceWriter(FULL, failed=told.append))

    async def run() -> None:
        await agent.prompt("go")
        await agent.prompt("go on")

    asyncio.run(run())
    assert [error.strerror for error in told] == ["No space left on device"]
    assert greeter.failures == []
    assert [len(request.messages) for request in provider.requests] == [2, 4]


@needs_a_full_disk
def test_the_plugin_reports_its_own_failure_and_the_run_goes_on() -> None:
    greeter = Greeter()
    agent, _ = traced_by_the_plugin(FULL, greeter)
    assert [(failure.plugin, type(failure.error)) for failure in greeter.failures] == [("trace", OSError)]
    assert agent.state.messages[-1].to_json()["content"][0]["text"] == "done"
