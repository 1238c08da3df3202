from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from pi_core import (
    AbortController,
    Context,
    HookError,
    PluginLoadError,
    ProviderResponse,
    RunContext,
    StreamOptions,
    UserMessage,
    hookimpl,
)
from pi_core.testing import (
    SCRIPTED_MODEL,
    Barrier,
    Call,
    Reply,
    Say,
    ScriptedProvider,
    Think,
    Wait,
    assert_plugin_contract,
    heavy_imports,
    run_hook,
    scripted_agent,
    scripted_message,
)
from pi_plugins.coding_agent import CodingAgentPlugin, Input
from pi_plugins.modes import ModesPlugin


class SiteLike(Protocol):
    def add(self, name: str, plugins: dict[str, str]) -> Path: ...


async def played(provider: ScriptedProvider, **options: Any) -> list[Any]:
    context = Context("", [UserMessage(content="hi")], ())
    return [event async for event in provider.stream(SCRIPTED_MODEL, context, StreamOptions(**options))]


def types(events: list[Any]) -> list[str]:
    return [event.type for event in events]


# --- the scripted provider ---


def test_blocks_are_streamed_in_chunks() -> None:
    provider = ScriptedProvider(
        Reply(Think("hm", chunks=["h", "m"]), Say("hello", chunks=["hel", "lo"]), Call("read", {"path": "x"}))
    )
    events = asyncio.run(played(provider))
    assert types(events) == [
        "start", "thinking_start", "thinking_delta", "thinking_delta", "thinking_end",
        "text_start", "text_delta", "text_delta", "text_end",
        "toolcall_start", "toolcall_delta", "toolcall_end", "done",
    ]  # fmt: skip
    message = events[-1].message
    assert (message.text, message.stop_reason) == ("hello", "toolUse")
    assert message.tool_calls[0].arguments == {"path": "x"}
    assert message.tool_calls[0].id == "call_1_2"


def test_replies_come_in_order_and_then_fail() -> None:
    provider = ScriptedProvider("one")
    provider.add("two", Reply(error="overloaded"))
    texts = [asyncio.run(played(provider))[-1].message for _ in range(4)]
    assert [(message.text, message.error_message) for message in texts] == [
        ("one", None),
        ("two", None),
        ("", "overloaded"),
        ("", "script exhausted"),
    ]
    assert len(provider.requests) == 4


def test_replies_that_were_never_asked_for() -> None:
    provider = ScriptedProvider("one", "two")
    asyncio.run(played(provider))
    with pytest.raises(AssertionError, match="1 of 2 scripted replies were never asked for"):
        provider.assert_exhausted()
    asyncio.run(played(provider))
    provider.assert_exhausted()


def test_a_request_that_raises_and_a_stream_without_an_end() -> None:
    provider = ScriptedProvider(Reply(raises=OSError("down")), Reply("half", ends=False))
    with pytest.raises(OSError, match="down"):
        asyncio.run(played(provider))
    assert types(asyncio.run(played(provider)))[-1] == "text_end"


def test_an_abort_ends_a_wait() -> None:
    async def main() -> None:
        controller = AbortController()
        provider = ScriptedProvider(Reply("so far", Wait(Barrier()), "never"))
        options = StreamOptions(signal=controller.signal)
        async for event in provider.stream(SCRIPTED_MODEL, Context(), options):
            if event.type == "text_end":
                asyncio.get_running_loop().call_soon(controller.abort)
        assert event.type == "error"
        assert (event.message.stop_reason, event.message.text) == ("aborted", "so far")

    asyncio.run(asyncio.wait_for(main(), 10))


def test_a_barrier_stays_open() -> None:
    async def main() -> None:
        barrier = Barrier()
        waiting = asyncio.ensure_future(barrier.wait())
        await asyncio.sleep(0)
        assert not waiting.done()
        barrier.release()
        await asyncio.wait_for(waiting, 10)
        await asyncio.wait_for(barrier.wait(), 10)

    asyncio.run(main())


def test_the_callbacks_of_the_options_are_called_and_a_failure_is_an_error() -> None:
    seen: list[Any] = []

    async def on_payload(payload: Any, model: Any) -> None:
        seen.append(("payload", payload["model"]))

    async def transform(headers: Any) -> Any:
        seen.append(("headers", dict(headers)))
        return headers

    async def on_response(response: ProviderResponse, model: Any) -> None:
        seen.append(("response", response.status))

    options: dict[str, Any] = {"on_payload": on_payload, "transform_headers": transform, "on_response": on_response}
    asyncio.run(played(ScriptedProvider("hi"), headers={"x": "1"}, **options))
    assert seen == [("payload", "scripted"), ("headers", {"x": "1"}), ("response", 200)]

    def fail(payload: Any, model: Any) -> None:
        raise ValueError("boom")

    events = asyncio.run(played(ScriptedProvider("hi"), on_payload=fail))
    assert types(events) == ["error"]
    assert events[0].message.error_message == "boom"


# --- scripts in JSON ---


def test_replies_of_json() -> None:
    replies: list[Any] = [
        "hello",
        {"text": "hi", "usage": {"input": 3, "output": 2}},
        {"blocks": [{"thinking": "hm"}, {"text": "hello", "chunks": ["hel", "lo"]}], "stopReason": "length"},
        {"blocks": [{"toolCall": {"name": "read", "arguments": {"path": "x"}, "id": "a"}}]},
        {"blocks": [], "error": "overloaded"},
    ]
    provider = ScriptedProvider(*map(Reply.from_json, replies))
    messages = [asyncio.run(played(provider))[-1].message for _ in replies]
    assert [message.stop_reason for message in messages] == ["stop", "stop", "length", "toolUse", "error"]
    assert messages[1].usage.input == 3
    assert messages[3].tool_calls[0].id == "a"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (3, "expected a text or an object, got 3"),
        ({"txt": "x"}, "unknown key 'txt', known are blocks, error, stopReason, text, usage"),
        ({"text": "x", "stopReason": "done"}, "stopReason 'done', known are pending, stop"),
        ({"blocks": [{"txt": "x"}]}, "a block needs text, thinking, toolCall with a name, or wait, got {'txt': 'x'}"),
        ({"blocks": ["x"]}, "a block needs text"),
        ({"blocks": [{"toolCall": {"arguments": {}}}]}, "a block needs text"),
        ({"text": 3}, "a block needs text"),
        ({"blocks": [{"wait": False}]}, "a block needs text"),
        ({"blocks": [{"text": "x", "chunks": 5}]}, "chunks are a list of texts, the pieces that are streamed, got 5"),
        ({"blocks": [{"thinking": "x", "chunks": [1]}]}, "chunks are a list of texts"),
        ({"blocks": [{"toolCall": {"name": "t", "arguments": []}}]}, "arguments of a toolCall are an object, got []"),
        ({"blocks": [{"toolCall": {"name": "t", "id": 1}}]}, "the id of a toolCall is a text, got 1"),
    ],
)
def test_json_that_is_no_reply_says_what_is_wrong(data: Any, why: str) -> None:
    with pytest.raises(ValueError, match="scripted reply") as caught:
        Reply.from_json(data)
    assert why in str(caught.value)


def test_a_reply_that_hangs_until_it_is_aborted() -> None:
    agent, _, _ = scripted_agent(Reply.from_json({"blocks": [{"text": "so far"}, {"wait": True}]}))
    agent.subscribe(lambda event, signal: agent.abort() if event.type == "message_update" else None)
    last = agent.run_sync("go")[-1]
    assert (last.stop_reason, last.text) == ("aborted", "so far")  # type: ignore[union-attr]


# --- checks of plugins ---


class Good:
    @hookimpl
    def transform_context(self, messages: list[Any], ctx: RunContext) -> list[Any]:
        assert ctx.turn_index == 0
        return messages[-1:]


def test_one_hook_is_called_with_a_context_of_its_own() -> None:
    messages = [UserMessage(content="a"), UserMessage(content="b")]
    assert asyncio.run(run_hook("transform_context", Good(), messages=messages)) == messages[1:]
    with pytest.raises(KeyError, match="has"):
        asyncio.run(run_hook("has", Good(), name="x"))
    with pytest.raises(HookError, match="plugin 'Good'"):
        asyncio.run(run_hook("transform_context", Good(), messages=messages, ctx=None))


def test_hooks_of_every_sort_can_be_called_alone() -> None:
    class Models:
        @hookimpl
        def register_tools(self) -> list[Any]:
            return ["a", "b"]

        @hookimpl
        def resolve_model(self, ctx: Any) -> Any:
            ctx.notice("chosen")
            return SCRIPTED_MODEL

        @hookimpl
        def plugin_error(self, failure: Any) -> None:
            assert failure == "it"

    assert [value for _, value in asyncio.run(run_hook("register_tools", Models()))] == ["a", "b"]
    assert asyncio.run(run_hook("resolve_model", Models(), name=None)) is SCRIPTED_MODEL
    assert asyncio.run(run_hook("plugin_error", Models(), failure="it")) is None


def test_the_contract_of_a_plugin() -> None:
    class Misspelt:
        @hookimpl
        def on_turn_strat(self) -> None:
            """Never called."""

    assert_plugin_contract(Good())
    assert_plugin_contract(ModesPlugin())
    with pytest.raises(PluginLoadError, match="did you mean 'on_turn_start'"):
        assert_plugin_contract(Misspelt())
    with pytest.raises(PluginLoadError, match="it implements no hook"):
        assert_plugin_contract(object())


class Heard:
    """What was typed, in capitals."""

    @hookimpl
    async def input(self, given: Input) -> Input:
        return replace(given, text=given.text.upper())


def test_hooks_that_a_plugin_offers_are_tested_beside_it() -> None:
    assert_plugin_contract(Heard(), CodingAgentPlugin())
    for plugins in ([Heard(), CodingAgentPlugin()], [CodingAgentPlugin(), Heard()]):
        answer = asyncio.run(run_hook("input", *plugins, given=Input("hi"), session=None))
        assert answer == Input("HI")
    with pytest.raises(PluginLoadError, match=r"there is no hook input at .*; the plugin that offers it is missing"):
        assert_plugin_contract(Heard())


def test_an_entry_point_that_imports_much_breaks_the_contract(site: SiteLike) -> None:
    source = textwrap.dedent(
        """
        {imports}
        from pi_core import hookimpl

        class Plugin:
            @hookimpl
            def on_turn_start(self):
                import pytest
        """
    )
    site.add(
        "pi-heavy", {"heavy": source.format(imports="import click.testing, json"), "light": source.format(imports="")}
    )
    import pi_heavy.heavy  # type: ignore[import-not-found]
    import pi_heavy.light  # type: ignore[import-not-found]

    assert_plugin_contract(pi_heavy.light.Plugin())
    with pytest.raises(AssertionError, match=r"importing pi_heavy\.heavy imports click: import them in the functions"):
        assert_plugin_contract(pi_heavy.heavy.Plugin())


def test_what_cannot_be_imported_has_no_light_imports() -> None:
    with pytest.raises(ImportError, match="pi_nowhere cannot be imported"):
        heavy_imports("pi_nowhere")


def test_a_message_for_hooks_that_want_one() -> None:
    assert scripted_message(text="hi").text == "hi"
    assert scripted_message().content == []


# --- pytest ---


def test_the_fixtures_import_the_framework_when_they_are_used(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent(
            """
            import sys
            from pi_core import hookimpl

            class Last:
                @hookimpl
                def transform_context(self, messages):
                    return messages[-1:]

            def test_first():
                assert "pi_core.agent" not in sys.modules
                assert "pi_core.hooks" not in sys.modules

            def test_scripted(scripted):
                scripted.add("hello")
                assert len(scripted.replies) == 1

            def test_agent_with(agent_with):
                agent, provider, log = agent_with(Last(), replies=["one"])
                agent.run_sync("hi")
                provider.assert_exhausted()
                assert log.types[-1] == "agent_end"

            def test_run_hook(run_hook):
                from pi_core import UserMessage
                messages = [UserMessage(content="a"), UserMessage(content="b")]
                assert run_hook("transform_context", Last(), messages=messages) == messages[1:]
            """
        ),
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pi_core._pytest_plugin", str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=tmp_path,
        check=False,
    )
    assert "4 passed" in done.stdout, done.stdout + done.stderr
