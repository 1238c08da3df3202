from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from pi_core import Build, ConfigError, Model, RunContext, SelectionContext
from pi_core.testing import assert_plugin_contract
from pi_plugins.models import Catalog, ModelsPlugin, _servers
from pi_plugins.models._known import LOCAL_SERVERS, PROVIDERS, LocalServer, key_variables
from pi_plugins.providers._stream import missing_key_text

from .conftest import ModelServer


def resolve(name: str | None, **options: Any) -> tuple[Model | None, list[str]]:
    selection = SelectionContext(**{"environ": {}, **options})
    model = asyncio.run(ModelsPlugin().resolve_model(name, selection))
    return model, selection.notices


def refused(name: str | None, **options: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        resolve(name, **options)
    return str(caught.value)


# --- a name ---


@pytest.mark.parametrize("provider", PROVIDERS)
def test_provider_and_id(provider: str) -> None:
    model, notices = resolve(f"{provider}/some/model:free")
    assert model is not None
    known = PROVIDERS[provider]
    assert (model.provider, model.id, model.api, model.base_url) == (
        provider,
        "some/model:free",
        known.api,
        known.base_url,
    )
    assert notices == [f"{provider} has no model 'some/model:free' that is known here: it is asked for as named"]


def test_a_local_server_by_name() -> None:
    model, notices = resolve("ollama/qwen3:4b")
    assert model is not None
    assert (model.provider, model.id) == ("ollama", "qwen3:4b")
    assert model.base_url.startswith("http://127.0.0.1:")
    assert notices == []


def test_a_misspelt_provider() -> None:
    assert refused("opnai/gpt-5") == "There is no provider 'opnai', did you mean 'openai/gpt-5'?"


def test_a_provider_without_a_model() -> None:
    assert refused("openai") == "'openai' is a provider: name a model too, as openai/MODEL"


def test_a_name_that_means_nothing_here_is_left_to_others() -> None:
    assert resolve("zzz/model") == (None, [])
    assert resolve("some-model") == (None, [])


def test_an_id_that_is_like_no_other_goes_to_the_provider_whose_key_is_set() -> None:
    model, notices = resolve("zzz-9", environ={"GROQ_API_KEY": "k", "XAI_API_KEY": "k"})
    assert model is not None
    assert (model.provider, model.id) == ("groq", "zzz-9")
    assert notices == [
        "Taking 'zzz-9' as groq/zzz-9, because GROQ_API_KEY is set. Name it as provider/id to choose another"
    ]


# --- no name ---


def test_a_key_in_the_environment_chooses_and_says_so() -> None:
    model, notices = resolve(None, environ={"MISTRAL_API_KEY": "k", "OPENAI_API_KEY": ""})
    assert model is not None
    assert model.provider == "mistral"
    assert notices == [f"Using mistral/{model.id}, because MISTRAL_API_KEY is set. Name another with --model"]


def test_a_key_whose_provider_has_no_usual_model_chooses_nothing() -> None:
    assert resolve(None, environ={"HF_TOKEN": "k"}) == (None, [])


def test_a_local_server_that_runs(server: ModelServer, free_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    servers = (LocalServer("lmstudio", "LM Studio", free_port), LocalServer("llamacpp", "llama.cpp", server.port))
    monkeypatch.setattr(_servers, "LOCAL_SERVERS", servers)
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port}")
    model, notices = resolve(None)
    assert model is not None
    assert (model.provider, model.id, model.base_url) == ("llamacpp", "small", server.address)
    assert notices == [
        f"Using llamacpp/small from llama.cpp at {server.address}. Name another with --model",
    ]
    assert server.asked == ["/v1/models"]


def test_the_first_of_the_local_servers_counts(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    other = ModelServer()
    try:
        servers = (LocalServer("one", "One", server.port), LocalServer("two", "Two", other.port))
        monkeypatch.setattr(_servers, "LOCAL_SERVERS", servers)
        model, _ = resolve(None)
        assert model is not None
        assert model.provider == "one"
        server.answer = {"data": []}
        model, _ = resolve(None)
        assert model is not None
        assert model.provider == "two"
    finally:
        other.close()


@pytest.mark.parametrize(
    "answer",
    [b"<html>", b"\xff\xfe", [], {"data": 3}, {"data": [{"name": "x"}, "y", {"id": 3}]}, {"models": []}, b""],
)
def test_something_else_on_the_port_is_no_server(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    monkeypatch.setattr(_servers, "LOCAL_SERVERS", (LocalServer("vllm", "vLLM", server.port),))
    server.answer = answer
    assert resolve(None) == (None, [])
    server.answer, server.status = {"data": [{"id": "x"}]}, 404
    assert resolve(None) == (None, [])


def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_servers, "_LIST_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(_servers, "LOCAL_SERVERS", (LocalServer("vllm", "vLLM", silent.getsockname()[1]),))
        assert resolve(None) == (None, [])


def test_where_local_servers_listen() -> None:
    assert {server.name: server.base_url for server in LOCAL_SERVERS} == {
        "ollama": "http://127.0.0.1:11434/v1",
        "lmstudio": "http://127.0.0.1:1234/v1",
        "llamacpp": "http://127.0.0.1:8080/v1",
        "vllm": "http://127.0.0.1:8000/v1",
    }


def test_with_nothing_at_all_a_build_says_three_ways() -> None:
    build = Build([ModelsPlugin()], only=[])
    with pytest.raises(ConfigError) as caught:
        asyncio.run(build.resolve_model(None, SelectionContext(environ={})))
    text = str(caught.value)
    assert text.startswith("No model is configured. Three ways to get one:")
    assert all(f"\n  {number}. " in text for number in (1, 2, 3))


# --- an address ---


def test_an_address_and_a_model() -> None:
    model, notices = resolve("my-model", base_url="http://127.0.0.1:9/v1/", environ={"OPENAI_API_KEY": "k"})
    assert model is not None
    assert (model.provider, model.id, model.base_url) == ("custom", "my-model", "http://127.0.0.1:9/v1")
    assert (model.api, notices) == ("openai-completions", [])


def test_an_address_with_an_api_and_the_name_of_a_provider() -> None:
    model, _ = resolve("openai/gpt-5", base_url="https://gateway.example/v1", api="anthropic-messages")
    assert model is not None
    assert (model.provider, model.id, model.api) == ("openai", "gpt-5", "anthropic-messages")
    model, _ = resolve("org/model", base_url="https://gateway.example/v1")
    assert model is not None
    assert (model.provider, model.id) == ("custom", "org/model")


def test_an_address_alone_is_asked_for_its_models(server: ModelServer) -> None:
    model, notices = resolve(None, base_url=server.address)
    assert model is not None
    assert (model.provider, model.id) == ("custom", "small")
    assert notices == [f"Using small, the first model that {server.address} names. Name another with --model"]
    assert server.asked == ["/v1/models"]


@pytest.mark.parametrize(
    "address",
    [
        "ftp://x/v1",
        "127.0.0.1:8080",
        "localhost/v1",
        "http://",
        "http:///v1",
        "http://[bad",
        "http://127.0.0.1:99999",
        "http://127.0.0.1/v1?version=1",
    ],
)
def test_an_address_that_is_none(address: str) -> None:
    said = f"--base-url needs an address such as http://127.0.0.1:8080/v1, without user and query, got '{address}'"
    assert refused("m", base_url=address) == said
    assert refused(None, base_url=address) == said


def test_an_address_with_a_password_is_refused_without_showing_it() -> None:
    said = refused(None, base_url="http://me:planted@127.0.0.1:9/v1")
    assert said is not None
    assert said.endswith("without user and query, got 'http://***@127.0.0.1:9/v1'")


def test_an_address_where_nobody_listens(free_port: int) -> None:
    address = f"http://127.0.0.1:{free_port}/v1"
    said = refused(None, base_url=address)
    assert said == f"{address}/models names no model: is the server running? Name one with --model"


# --- keys ---


def test_the_key_of_a_provider_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "secret")
    monkeypatch.setenv("OPENAI_API_KEY", "")
    plugin = ModelsPlugin()
    ctx = RunContext()
    assert asyncio.run(plugin.get_api_key("groq", ctx)) == "secret"
    assert asyncio.run(plugin.get_api_key("openai", ctx)) is None
    assert asyncio.run(plugin.get_api_key("custom", ctx)) is None


@pytest.mark.parametrize("provider", [name for name, known in PROVIDERS.items() if known.model])
def test_the_usual_model_of_a_provider_is_in_the_catalog(provider: str) -> None:
    # Routes to whatever OpenRouter thinks best, so no price and no limit of it can be in a catalog.
    assert PROVIDERS[provider].model == "openrouter/auto" or Catalog().row(provider, PROVIDERS[provider].model)


@pytest.mark.parametrize("provider", [*PROVIDERS, "some-other.one"])
def test_the_error_of_a_missing_key_names_a_variable_that_counts(provider: str) -> None:
    assert f"environment variable {key_variables(provider)[0]}, " in missing_key_text(provider)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_is_known_of_a_provider(provider: str) -> None:
    known = PROVIDERS[provider]
    assert known.base_url.startswith("https://")
    assert not known.base_url.endswith("/")
    assert known.keys
    assert all(key.isupper() for key in known.keys)


def test_the_plugin_keeps_its_contract() -> None:
    assert_plugin_contract(ModelsPlugin())
