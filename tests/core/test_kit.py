"""The rest of the test kit: recorder of hooks, golden sequences, and the fixtures in a session of their own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import pi_core.testing
from pi_core import Block, HookError, Kind, RunContext, hookimpl, hookspec, tool
from pi_core.testing import Call, Golden, HookRecorder, Reply, Say, event_records, run_hook, scripted_agent


@tool
def echo(text: str) -> str:
    """Say it again."""
    return text


CALLING = Reply(Say("so", chunks=["s", "o"]), Call("echo", {"text": "a", "timestamp": 3}, id="a"))


def test_the_public_names_are_sorted_and_documented() -> None:
    names = pi_core.testing.__all__
    assert names == sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    assert "Block" not in names
    assert all(getattr(pi_core.testing, name).__doc__ for name in names)


# --- the recorder ---


def test_the_recorder_keeps_the_calls_of_every_hook_in_order() -> None:
    class Guard:
        @hookimpl
        def before_tool_call(self, call: Any) -> Block:
            return Block("no")

    recorder = HookRecorder()
    agent, _, _ = scripted_agent(CALLING, "done", tools=[echo], plugins=[Guard(), recorder])
    agent.run_sync("go")
    recorder.assert_called("on_agent_start", "transform_context", "before_tool_call", "record_message", "on_agent_end")
    recorder.assert_called("stream", "stream")
    recorder.assert_not_called("execute_tool", "follow_up")
    (call,) = recorder.of("before_tool_call")
    assert (call.arguments["call"].name, type(call.arguments["ctx"])) == ("echo", RunContext)
    assert recorder.names[:2] == ["register_hookspecs", "register_providers"]
    recorder.clear()
    assert recorder.names == []
    with pytest.raises(AssertionError, match=r"stream was not called\. Calls: none"):
        recorder.assert_called("stream")


def test_what_was_not_called_is_an_error_that_shows_the_calls() -> None:
    recorder = HookRecorder()
    agent, _, _ = scripted_agent("done", plugins=[recorder])
    with pytest.raises(AssertionError, match=r"on_agent_start was not called\. Calls: register_hookspecs > "):
        recorder.assert_called("on_agent_start")
    agent.run_sync("go")
    with pytest.raises(AssertionError, match=r"on_agent_start was not called after on_agent_end\. Calls: "):
        recorder.assert_called("on_agent_end", "on_agent_start")
    with pytest.raises(AssertionError, match="stream was not called after stream"):
        recorder.assert_called("stream", "stream")
    with pytest.raises(AssertionError, match="stream, on_turn_end called"):
        recorder.assert_not_called("stream", "execute_tool", "on_turn_end")


def test_the_recorder_keeps_the_hooks_of_plugins_too() -> None:
    class Offered:
        @staticmethod
        @hookspec(Kind.CHAIN)
        async def change_title(title: str, ctx: RunContext) -> str | None:
            """Called to change a title."""

    class Offers:
        @hookimpl
        def register_hookspecs(self) -> list[object]:
            return [Offered]

    recorder = HookRecorder(Offered)
    title = asyncio.run(run_hook("change_title", Offers(), recorder, title="x"))
    assert title == "x"
    recorder.assert_called("change_title")
    assert recorder.of("change_title")[0].arguments["title"] == "x"


# --- golden sequences ---


def events() -> list[Any]:
    agent, _, log = scripted_agent(CALLING, "done", tools=[echo])
    agent.run_sync("go")
    return log.events


def test_records_of_two_runs_are_the_same() -> None:
    records = event_records(events())
    assert records == event_records(events())
    (end,) = [record for record in records if record["type"] == "tool_execution_end"]
    assert end["durationMs"] == 0
    assert records[2]["message"]["timestamp"] == 0
    (start,) = [record for record in records if record["type"] == "tool_execution_start"]
    assert start["args"] == {"text": "a", "timestamp": 3}
    updates = [record for record in records if record["type"] == "message_update"]
    assert all(update.keys() == {"type", "assistantMessageEvent"} for update in updates)


def test_a_golden_is_written_compared_and_told_apart(tmp_path: Path) -> None:
    found = events()
    with pytest.raises(AssertionError, match=r"there is no golden .*one\.json; write it with: pytest --update-goldens"):
        Golden(tmp_path / "new", "one")(found)
    writing = Golden(tmp_path / "new", "one", update=True)
    writing(found)
    writing(found[:3])
    writing(found[:1], "named")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["named.json", "one-2.json", "one.json"]
    comparing = Golden(tmp_path / "new", "one")
    comparing(events())
    comparing(found[:3])
    comparing(found[:1], "named")
    agent, _, log = scripted_agent(CALLING, "other", tools=[echo])
    agent.run_sync("go")
    with pytest.raises(AssertionError, match="the events differ from") as caught:
        Golden(tmp_path / "new", "one")(log.events)
    assert [line[0] for line in str(caught.value).splitlines() if '"other"' in line or '"done"' in line].count("-") > 0
    with pytest.raises(AssertionError, match=r"\.\.\. \d+ more lines\nwhen this is what you want"):
        Golden(tmp_path / "new", "one")(found[:2])


# --- the fixtures ---

TESTS = """
import asyncio
import sys

import pytest
from pi_core import HookError, RunContext, UserMessage, hookimpl


class Last:
    @hookimpl
    def transform_context(self, messages):
        return messages[-1:]


def test_first():
    assert not [name for name in sys.modules if name.startswith(("pi_core.testing", "pi_core.hooks", "pi_core.agent"))]
    assert "httpx" not in sys.modules


def test_hooks(hooks):
    messages = [UserMessage(content="a"), UserMessage(content="b")]
    assert asyncio.run(hooks(Last()).transform_context(messages, RunContext())) == messages[1:]


def test_recorder(hook_recorder, agent_with, event_log):
    agent, _, _ = agent_with(hook_recorder, replies=["hi"])
    agent.subscribe(event_log)
    agent.run_sync("go")
    hook_recorder.assert_called("on_agent_start", "on_agent_end")
    assert event_log.types[-1] == "agent_end"


@pytest.mark.parametrize("text", ["a/b", "c"])
def test_golden(golden, agent_with, text):
    agent, _, log = agent_with(replies=[text])
    agent.run_sync("go")
    golden(log.events)


def test_cassette(cassette):
    import httpx

    async def main():
        async with httpx.AsyncClient(transport=cassette("it").transport(httpx.MockTransport(ANSWER))) as client:
            return (await client.get("http://127.0.0.1:9/x")).text

    assert asyncio.run(main()) == "fine"


def ANSWER(request):
    import httpx

    return httpx.Response(200, text="fine")
"""


def run_pytest(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pi_core._pytest_plugin", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=folder,
        check=False,
    )
    return done.stdout + done.stderr


def test_goldens_and_cassettes_are_made_by_a_flag_and_then_hold(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(textwrap.dedent(TESTS), encoding="utf-8")
    said = run_pytest(tmp_path)
    assert "3 failed, 3 passed" in said, said
    assert said.count("pytest --update-goldens") >= 2
    assert "pytest --record-cassettes" in said
    assert "6 passed" in run_pytest(tmp_path, "--update-goldens", "--record-cassettes")
    made = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.json"))
    assert made == [
        "cassettes/test_it/it.json",
        "goldens/test_it/test_golden-a-b.json",
        "goldens/test_it/test_golden-c.json",
    ]
    assert "6 passed" in run_pytest(tmp_path)


def test_a_cassette_that_is_not_used_up_is_an_error_of_the_test(tmp_path: Path) -> None:
    entry = {"request": {"method": "GET", "url": "http://127.0.0.1/x"}, "response": {"status": 200, "body": []}}
    place = tmp_path / "cassettes" / "test_it" / "it.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps({"version": 1, "entries": [entry]}), encoding="utf-8")
    (tmp_path / "test_it.py").write_text("def test_it(cassette):\n    cassette('it')\n", encoding="utf-8")
    said = run_pytest(tmp_path)
    assert "1 passed, 1 error" in said
    assert "GET http://127.0.0.1/x was recorded, but not asked for" in said


def test_an_implementation_that_raises_is_still_an_error() -> None:
    class Bad:
        @hookimpl
        def transform_context(self) -> None:
            raise ValueError("no")

    with pytest.raises(HookError, match="no"):
        asyncio.run(run_hook("transform_context", HookRecorder(), Bad(), messages=[]))
