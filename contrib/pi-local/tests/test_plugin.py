from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from local_helpers import FAKE_SERVER
from pi_local.plugin import LocalPlugin
from pi_local.server import running, spec_of, stop
from pi_local.state import ServerFiles
from pi_local.store import Store

from pi_core import Agent, Context, HookError, Model, RunContext, SelectionContext, StreamOptions
from pi_core.testing import (
    SCRIPTED_MODEL,
    assert_plugin_contract,
    heavy_imports,
    run_hook,
    scripted_agent,
)
from pi_plugins.providers.openai_completions import OpenAICompletionsPlugin


def resolve(name: str | None, ctx: SelectionContext | None = None) -> Model | None:
    found: Model | None = asyncio.run(
        run_hook("resolve_model", LocalPlugin(), name=name, ctx=ctx or SelectionContext())
    )
    return found


def test_the_contract_of_a_plugin() -> None:
    assert_plugin_contract(LocalPlugin())
    assert heavy_imports("pi_local.plugin") == []


def test_the_model_of_a_name(store: Store, gguf: Path) -> None:
    store.add(gguf, name="mine")
    model = resolve("local/mine")
    assert model is not None
    assert (model.id, model.provider, model.api, model.base_url) == ("mine", "local", "openai-completions", "")
    assert (model.context_window, model.max_tokens) == (8192, 1024)
    assert resolve("mine") == model
    assert not store.run_dir.exists()


def test_names_that_mean_nothing_here(store: Store, gguf: Path) -> None:
    store.add(gguf, name="mine")
    for name in ("openai/mine", "other", "qwen2.5-coder-1.5b"):
        assert resolve(name) is None
    assert resolve("mine", SelectionContext(base_url="http://127.0.0.1:1/v1")) is None
    assert resolve(None, SelectionContext(base_url="http://127.0.0.1:1/v1")) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("local/qwen2.5-coder-1.5b", r"not here yet: run 'pi local pull qwen2\.5-coder-1\.5b'"),
        ("local/nope", r"There is no local model 'nope'\. Stored: gone; 'pi local add FILE'"),
        ("local/gone", r"The file of local/gone is gone: .*gguf\. Put it back, or 'pi local rm gone'"),
        ("gone", "The file of local/gone is gone"),
    ],
)
def test_names_that_cannot_be_served(store: Store, gguf: Path, name: str, reason: str) -> None:
    store.add(gguf, name="gone")
    gguf.unlink()
    with pytest.raises(HookError, match=reason):
        resolve(name)


def test_a_default_is_announced(store: Store, gguf: Path) -> None:
    ctx = SelectionContext()
    assert resolve(None, ctx) is None
    assert ctx.notices == []
    store.add(gguf, name="mine")
    model = resolve(None, ctx)
    assert model is not None
    assert model.id == "mine"
    assert len(ctx.notices) == 1
    assert "local/mine, which runs on this machine: small models can be wrong" in ctx.notices[0]
    gguf.unlink()
    assert resolve(None) is None


def test_other_providers_are_none_of_its_business(store: Store) -> None:
    agent, provider, _ = scripted_agent("hello", plugins=[LocalPlugin(["/does/not/exist"])])
    assert agent.run_sync("hi")[-1].text == "hello"
    assert provider.requests[0].model == SCRIPTED_MODEL
    assert not store.root.exists()


def test_a_local_model_with_an_address_is_left_as_it_is(store: Store) -> None:
    given = Model(id="x", api="scripted", provider="local", base_url="http://127.0.0.1:1/v1")
    agent, provider, _ = scripted_agent("hello", plugins=[LocalPlugin(["/does/not/exist"])])
    agent.state.model = given
    assert agent.run_sync("hi")[-1].text == "hello"
    assert provider.requests[0].model == given


@pytest.fixture
def served(store: Store, tmp_path: Path) -> Any:
    """Adds a model that the fake server serves, and ends that in the end."""

    def add(**behaviour: Any) -> Model:
        import json

        file = tmp_path / "fake.gguf"
        file.write_text("GGUF" + json.dumps({"starts": str(tmp_path / "starts.txt"), **behaviour}), encoding="utf-8")
        store.add(file, name="fake")
        model = resolve("local/fake")
        assert model is not None
        return model

    yield add
    for files in ServerFiles.of_model(store.run_dir, "fake"):
        asyncio.run(stop(files))


Served = Callable[..., Model]


def local_agent(model: Model) -> Agent:
    return Agent(model=model, plugins=[LocalPlugin(FAKE_SERVER), OpenAICompletionsPlugin()])


def test_a_request_starts_the_server_and_brings_its_key(
    store: Store, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not this one")
    agent = local_agent(served())
    assert agent.run_sync("hi")[-1].text == "hello from the fake"
    assert agent.run_sync("again")[-1].text == "hello from the fake"
    assert local_agent(agent.state.model).run_sync("hi")[-1].text == "hello from the fake"
    assert len((tmp_path / "starts.txt").read_text(encoding="utf-8").split()) == 1
    assert agent.state.model.base_url == ""


def test_a_server_that_does_not_start_ends_the_response_with_its_words(served: Served) -> None:
    agent = local_agent(served(die="no memory for this"))
    message = agent.run_sync("hi")[-1]
    assert message.stop_reason == "error"
    assert "no memory for this" in message.error_message


def test_a_model_that_was_removed_ends_the_response(store: Store, served: Served) -> None:
    agent = local_agent(served())
    store.remove("fake")
    message = agent.run_sync("hi")[-1]
    assert message.stop_reason == "error"
    assert "There is no local model 'fake'. None is stored: 'pi local pull' fetches one" in message.error_message


def test_aborting_while_the_server_loads(store: Store, served: Served, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    agent = local_agent(served(gate=str(tmp_path / "gate")))
    fake = store.get("fake")
    assert fake is not None
    files = ServerFiles.of(spec_of(fake, store))

    async def run() -> Any:
        task = asyncio.ensure_future(agent.prompt("hi"))
        while (state := files.read()) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        agent.abort()
        await task
        return agent.state.messages[-1], state.pid

    message, pid = asyncio.run(run())
    with suppress(ChildProcessError):  # it may have been collected already
        os.waitpid(pid, 0)
    assert message.stop_reason == "aborted"
    assert running(files) is None


def test_the_command_is_listed_without_being_imported() -> None:
    (command,) = LocalPlugin().register_commands()
    assert command.name == "local"
    assert "\n" not in command.help
    assert {"add", "list", "pull", "rm", "status", "stop"} <= set(command.load().commands)  # type: ignore[attr-defined]


def test_the_wrapper_answers_what_the_provider_streams(served: Served) -> None:
    model = served()
    answered: dict[str, Any] = {}

    async def proceed(**changes: Any) -> str:
        answered.update(changes)
        return "the stream"

    stream = asyncio.run(
        LocalPlugin(FAKE_SERVER).stream(model, Context(), StreamOptions(), RunContext(), proceed=proceed)
    )
    assert stream == "the stream"
    assert answered["model"].base_url.startswith("http://127.0.0.1:")
    assert answered["options"].api_key
