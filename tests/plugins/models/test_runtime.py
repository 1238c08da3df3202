"""Requests of the runtime: keys, headers, addresses, and what is said when they cannot be had."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pi_core import (
    AbortController,
    Agent,
    AssistantMessage,
    Build,
    ConfigError,
    HookTrace,
    Model,
    RunContext,
    SelectionContext,
    StreamOptions,
    complete,
    hookimpl,
)
from pi_core.testing import scripted_agent
from pi_plugins._trace_changes import change
from pi_plugins.models import ModelRuntime, ModelsPlugin, share_runtime, shared_runtime
from pi_plugins.providers.openai_completions import OpenAICompletionsPlugin

from .catalogs import SmallCatalog
from .loopback import Loopback, Quiet

ANSWER = b'data: {"choices":[{"delta":{"content":"k"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


class Completions(Loopback):
    """A server of chat completions on this machine.

    :ivar requests: headers and body of each request.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], dict[str, Any]]] = []
        outer = self

        class Handler(Quiet):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.requests.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(ANSWER)))
                self.end_headers()
                self.wfile.write(ANSWER)

        super().__init__(Handler)
        self.address = f"http://127.0.0.1:{self.port}/v1"


@pytest.fixture
def completions() -> Iterator[Completions]:
    made = Completions()
    yield made
    made.close()


@pytest.fixture
def files(folder: Path) -> Path:
    folder.mkdir()
    return folder


def write(files: Path, *, models: dict[str, Any] | None = None, auth: dict[str, Any] | None = None) -> None:
    if models is not None:
        (files / "models.json").write_text(json.dumps({"providers": models}))
    if auth is not None:
        (files / "auth.json").write_text(json.dumps(auth))


def acme(completions: Completions, **more: Any) -> dict[str, Any]:
    """The provider of the recorded runs."""
    model = {"id": "m1", "reasoning": True, "maxTokens": 4000}
    headers = {"X-Static": "s", "X-Env": "$HV"}
    given = {"baseUrl": completions.address, "api": "openai-completions", "apiKey": "sk-e2e", "headers": headers}
    return {"acme": {**given, "models": [model], **more}}


def made(files: Path, environ: dict[str, str] | None = None, **options: Any) -> ModelRuntime:
    environ = {"PATH": os.environ["PATH"], **(environ or {})}
    return ModelRuntime(agent_dir=files, environ=environ, catalog=SmallCatalog(), **options)


def ask(runtime: ModelRuntime, model: Model | str = "acme/m1", **options: Any) -> AssistantMessage:
    async def main() -> AssistantMessage:
        chosen = model
        if isinstance(chosen, str):
            chosen = await runtime.select(chosen, SelectionContext(environ=runtime.environ))
        return await complete(chosen, "hi", provider=runtime.stream, **options)

    return asyncio.run(main())


def sent(completions: Completions) -> dict[str, str]:
    assert len(completions.requests) == 1
    return completions.requests[0][0]


# --- recorded runs of the original ---


def test_the_environment_of_a_stored_credential_is_used_in_its_key_and_in_headers(
    files: Path, completions: Completions
) -> None:
    auth = {"type": "api_key", "key": "${NAME}-x$$y", "env": {"NAME": "envblock", "HV": "hv"}}
    write(files, models=acme(completions), auth={"acme": auth})
    assert ask(made(files, {"NAME": "process", "HV": "process"})).text == "k"
    headers = sent(completions)
    assert headers["authorization"] == "Bearer envblock-x$y"
    assert (headers["x-static"], headers["x-env"]) == ("s", "hv")


def test_a_stored_key_goes_before_that_of_models_json(files: Path, completions: Completions) -> None:
    write(files, models=acme(completions), auth={"acme": {"type": "api_key", "key": "from-auth-json"}})
    assert ask(made(files, {"HV": "hv"})).text == "k"
    assert sent(completions)["authorization"] == "Bearer from-auth-json"


def test_a_stored_command_that_fails_is_the_reason_and_nothing_else_is_tried(
    files: Path, completions: Completions
) -> None:
    command = {"type": "api_key", "key": "!echo locked >&2; exit 7"}
    write(files, models=acme(completions), auth={"acme": command})
    answer = ask(made(files, {"HV": "hv", "ACME_API_KEY": "env"}))
    assert answer.stop_reason == "error"
    assert answer.error_message == (
        f"No API key for provider: acme. {files}/auth.json: the command 'echo …' ended with exit code 7: locked"
    )
    assert answer.error_details is not None
    assert answer.error_details.retryable is False
    assert completions.requests == []


def test_a_level_after_the_name(files: Path, completions: Completions) -> None:
    write(files, models=acme(completions))
    runtime = made(files, {"HV": "hv"})
    selection = SelectionContext(environ=runtime.environ)
    model = asyncio.run(runtime.select("m1:high", selection))
    assert ask(runtime, model, reasoning=selection.thinking_level).text == "k"
    assert completions.requests[0][1]["reasoning_effort"] == "high"
    assert completions.requests[0][1]["max_completion_tokens"] == 4000
    assert sent(completions)["authorization"] == "Bearer sk-e2e"


def test_an_invalid_models_json_is_told_before_nothing_is_found(files: Path) -> None:
    (files / "models.json").write_text('{"providers": {"acme": {"baseUrl": 1}}}')
    selection = SelectionContext()
    with pytest.raises(ConfigError, match=r"^No provider has a key"):
        asyncio.run(made(files).select(None, selection))
    assert selection.notices == [f"{files}/models.json:1: providers.acme.baseUrl: expected a text, got 1"]


def test_a_problem_is_told_once(files: Path) -> None:
    (files / "models.json").write_text("{")
    runtime = made(files, {"ALPHA_API_KEY": "a"})
    first, second = SelectionContext(environ=runtime.environ), SelectionContext(environ=runtime.environ)
    asyncio.run(runtime.select("alpha/opus-5", first))
    asyncio.run(runtime.select("alpha/opus-5", second))
    assert (len(first.notices), second.notices) == (1, [])


def test_a_missing_key_says_how_to_give_one(files: Path) -> None:
    answer = ask(made(files), "alpha/sonnet-4")
    assert answer.error_message is not None
    assert answer.error_message.startswith("No API key for provider: alpha. Set the environment variable ALPHA_API_KEY")


# --- which key ---


def test_the_order_of_keys(files: Path) -> None:
    runtime = made(files, {"ALPHA_API_KEY": "environment"})

    def key() -> str | None:
        return asyncio.run(runtime.api_key("alpha"))

    assert key() == "environment"
    write(files, models={"alpha": {"apiKey": "models"}})
    assert key() == "models"
    write(files, auth={"alpha": {"type": "api_key", "key": "stored"}})
    assert key() == "stored"
    runtime.set_runtime_key("alpha", "given")
    assert key() == "given"
    runtime.set_runtime_key("alpha", None)
    assert key() == "stored"


def test_where_a_key_comes_from(files: Path) -> None:
    runtime = made(files, {"ALPHA_API_KEY": "a"})
    found = runtime.key_source("alpha")
    assert found is not None
    assert (found.kind, found.label) == ("environment", "ALPHA_API_KEY")
    write(files, models={"alpha": {"apiKey": "m"}})
    found = runtime.key_source("alpha")
    assert found is not None
    assert (found.kind, found.label) == ("models_json", f"{files}/models.json:1")
    assert runtime.key_source("beta") is None


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"type": "api_key", "key": "$A-$B"}, "the environment variables A, B are not set, or empty"),
        ({"type": "api_key"}, 'a credential of type "api_key" needs a "key"'),
        ({"type": "magic"}, '"type" has to be "api_key", "oauth" or "keyring"'),
        ({"type": "api_key", "key": "k", "env": {"A": 1}}, '"env" has to map names to texts'),
        ("sk-planted", 'expected an object with a "type"'),
        ({"type": "oauth"}, 'a credential of type "oauth" needs "access", and "expires" in milliseconds'),
        (
            {"type": "oauth", "access": "sk-planted", "expires": 1_000_000},
            (
                "the token of an OAuth login expired at 1970-01-01 00:16 UTC and is not renewed here: log in again "
                "with the program that stored it, or store a key with: pi auth login alpha"
            ),
        ),
    ],
)
def test_a_stored_credential_that_cannot_be_used_says_why_and_owns_its_provider(
    files: Path, entry: Any, reason: str
) -> None:
    write(files, models={"alpha": {"apiKey": "m"}}, auth={"alpha": entry})
    runtime = made(files, {"ALPHA_API_KEY": "a"})
    with pytest.raises(ConfigError) as caught:
        asyncio.run(runtime.api_key("alpha"))
    assert str(caught.value) == f"No API key for provider: alpha. {files}/auth.json: {reason}"
    assert not runtime.has_auth("alpha")


def test_a_token_of_an_oauth_login_is_used_until_it_expires(files: Path) -> None:
    token = {"type": "oauth", "access": "the-token", "refresh": "r", "expires": int(time.time() * 1000) + 3_600_000}
    write(files, auth={"alpha": token})
    runtime = made(files)
    assert asyncio.run(runtime.api_key("alpha")) == "the-token"
    assert runtime.has_auth("alpha")


def test_a_broken_auth_json_is_a_problem_and_the_last_credentials_stay(files: Path) -> None:
    write(files, auth={"alpha": {"type": "api_key", "key": "stored"}})
    runtime = made(files)
    assert asyncio.run(runtime.api_key("alpha")) == "stored"
    (files / "auth.json").write_text('{"alpha": ')
    assert asyncio.run(runtime.api_key("alpha")) == "stored"
    assert [problem.startswith(f"{files}/auth.json:1:") for problem in runtime.problems()] == [True]


# --- commands ---


def counting(log: Path) -> str:
    return f"!echo run >> {log}; echo the-key"


def test_a_stored_command_runs_once_in_a_process(files: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    write(files, auth={"alpha": {"type": "api_key", "key": counting(log)}})

    async def main() -> list[str | None]:
        runtime, other = made(files), made(files)
        keys = await asyncio.gather(*(runtime.api_key("alpha") for _ in range(5)), other.api_key("alpha"))
        return [*keys, await runtime.api_key("alpha")]

    assert set(asyncio.run(main())) == {"the-key"}
    assert asyncio.run(made(files).api_key("alpha")) == "the-key"
    assert log.read_text() == "run\n"


def test_a_stored_command_that_failed_is_not_run_again(files: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    write(files, auth={"alpha": {"type": "api_key", "key": f"!echo run >> {log}; exit 3"}})
    runtime = made(files)
    for _ in range(2):
        with pytest.raises(ConfigError, match="exit code 3"):
            asyncio.run(runtime.api_key("alpha"))
    assert log.read_text() == "run\n"


def test_a_command_of_models_json_runs_at_every_request(files: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    write(files, models={"alpha": {"apiKey": counting(log)}})
    runtime = made(files)
    assert [asyncio.run(runtime.api_key("alpha")) for _ in range(2)] == ["the-key"] * 2
    assert log.read_text() == "run\nrun\n"


def test_looking_for_models_runs_no_command(files: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    write(
        files,
        models={"alpha": {"apiKey": counting(log)}},
        auth={"beta": {"type": "api_key", "key": counting(log)}},
    )
    runtime = made(files)
    assert {model.provider for model in runtime.available()} == {"alpha", "beta"}
    runtime.scope(["*"])
    asyncio.run(runtime.select(None, SelectionContext(environ=runtime.environ)))
    assert runtime.credentials.list() == [("beta", "api_key")]
    assert not log.exists()


def test_one_request_runs_a_command_once(
    files: Path, completions: Completions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    write(files, models=acme(completions, apiKey=counting(log), headers={}))
    assert asyncio.run(ask_with_build(made(files), "acme/m1")).text == "k"
    assert sent(completions)["authorization"] == "Bearer the-key"
    assert log.read_text() == "run\n"
    log.unlink()
    write(files, models=acme(completions, apiKey=f"!echo run >> {log}; exit 1", headers={}))
    answer = asyncio.run(ask_with_build(made(files), "acme/m1"))
    assert answer.error_message is not None
    assert "the command 'echo …' ended with exit code 1" in answer.error_message
    assert log.read_text() == "run\n"


def test_an_abort_ends_a_command(files: Path, completions: Completions, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    write(files, models=acme(completions, apiKey=f"!echo up > {fifo}; sleep 60", headers={}))

    async def main() -> AssistantMessage:
        runtime, controller = made(files), AbortController()
        model = await runtime.select("acme/m1", SelectionContext(environ=runtime.environ))
        answer = asyncio.create_task(complete(model, "hi", provider=runtime.stream, signal=controller.signal))
        await asyncio.to_thread(fifo.read_text)
        controller.abort()
        return await answer

    assert asyncio.run(main()).stop_reason == "aborted"
    assert completions.requests == []


# --- headers, address, environment ---


def test_the_order_of_headers(files: Path, completions: Completions) -> None:
    entry = {
        "baseUrl": completions.address,
        "apiKey": "k",
        "headers": {"X-Both": "provider", "x-provider": "p", "x-gone": "p"},
        "models": [{"id": "own", "headers": {"x-BOTH": "model", "x-model": "m", "x-gone": None}}],
        "modelOverrides": {
            "own": {"headers": {"x-override": "o"}},
            "mini[1m]": {"headers": {"x-override": "o"}},
        },
    }
    write(files, models={"beta": entry})
    assert ask(made(files), "beta/own", headers={"x-MODEL": "call"}).text == "k"
    headers = sent(completions)
    assert {name: headers.get(name) for name in ("x-both", "x-provider", "x-gone", "x-model", "x-override")} == {
        "x-both": "model",
        "x-provider": "p",
        "x-gone": None,
        "x-model": "call",
        "x-override": "o",
    }
    completions.requests.clear()
    assert ask(made(files), "beta/mini[1m]").text == "k"
    headers = sent(completions)
    assert (headers["x-catalog"], headers["x-both"], headers["x-override"]) == ("c", "provider", "o")


def test_a_header_that_cannot_be_had_is_the_reason(files: Path, completions: Completions) -> None:
    write(files, models=acme(completions))
    answer = ask(made(files))
    assert answer.error_message == (
        f"The header 'X-Env' of provider 'acme' ({files}/models.json:1) cannot be had: "
        "the environment variable HV is not set, or empty"
    )


def test_a_key_as_bearer_token(files: Path, completions: Completions) -> None:
    write(files, models=acme(completions, authHeader=True, headers={"x-api-key": "other"}))
    assert ask(made(files)).text == "k"
    assert sent(completions)["authorization"] == "Bearer sk-e2e"
    entry = acme(completions, authHeader=True, headers={})
    del entry["acme"]["apiKey"]
    write(files, models=entry)
    answer = ask(made(files))
    assert answer.error_message == (
        f"{files}/models.json:1: providers.acme.authHeader needs an API key, and there is none"
    )


def test_a_variable_in_an_address_comes_from_the_credential(files: Path, completions: Completions) -> None:
    port = completions.address.split(":")[2].split("/")[0]
    write(
        files,
        models=acme(completions, baseUrl="http://127.0.0.1:${PORT}/v1", headers={}),
        auth={"acme": {"type": "api_key", "key": "k", "env": {"PORT": port}}},
    )
    assert ask(made(files)).text == "k"
    write(files, auth={"acme": {"type": "api_key", "key": "k"}})
    assert ask(made(files)).error_message == (
        "The address of acme/m1 cannot be had: the environment variable PORT is not set, or empty"
    )


def test_a_provider_on_this_machine_needs_no_key(files: Path, completions: Completions) -> None:
    entry = acme(completions, headers={})
    del entry["acme"]["apiKey"]
    write(files, models=entry)
    runtime = made(files)
    assert runtime.has_auth("acme")
    assert ask(runtime).text == "k"
    assert "authorization" not in sent(completions)


def test_an_api_that_nobody_speaks_is_an_error_of_the_stream(files: Path, completions: Completions) -> None:
    write(files, models=acme(completions, api="morse", headers={}))
    assert ask(made(files)).error_message == "No provider speaks 'morse': install the plugin of one that does"


def test_the_providers_of_a_build_make_the_requests(files: Path, completions: Completions) -> None:
    write(files, models=acme(completions, headers={}))
    build = Build([OpenAICompletionsPlugin()], only=[])
    assert ask(made(files, registry=build.registry)).text == "k"
    answer = ask(made(files, registry=Build([], only=[]).registry))
    assert answer.error_message is not None
    assert answer.error_message.startswith("No provider speaks 'openai-completions'")


# --- agents and builds ---


async def ask_with_build(runtime: ModelRuntime, name: str, *plugins: object) -> AssistantMessage:
    build = Build([*plugins, ModelsPlugin(runtime), OpenAICompletionsPlugin()], only=[])
    agent = await build.create_agent(model=name, selection=SelectionContext(environ=runtime.environ))
    await agent.prompt("hi")
    message = agent.state.messages[-1]
    assert isinstance(message, AssistantMessage)
    return message


def test_an_agent_of_the_runtime(files: Path, completions: Completions) -> None:
    write(files, models=acme(completions))
    runtime = made(files, {"HV": "hv"})

    async def main() -> str:
        model = await runtime.select("acme/m1", SelectionContext(environ=runtime.environ))
        agent = Agent(model=model, stream=runtime.stream)
        await agent.prompt("hi")
        message = agent.state.messages[-1]
        assert isinstance(message, AssistantMessage)
        return message.text

    assert asyncio.run(main()) == "k"
    assert sent(completions)["x-env"] == "hv"


def test_a_build_with_the_plugin(files: Path, completions: Completions) -> None:
    write(files, models=acme(completions))
    assert asyncio.run(ask_with_build(made(files, {"HV": "hv"}), "acme/m1")).text == "k"
    headers = sent(completions)
    assert (headers["authorization"], headers["x-env"]) == ("Bearer sk-e2e", "hv")


def test_a_key_of_another_plugin_goes_first(files: Path, completions: Completions) -> None:
    class Vault:
        @hookimpl(tryfirst=True)
        def get_api_key(self, provider: str) -> str:
            return f"vault-{provider}"

    write(files, models=acme(completions, headers={}, apiKey="!exit 1"))
    assert asyncio.run(ask_with_build(made(files), "acme/m1", Vault())).text == "k"
    assert sent(completions)["authorization"] == "Bearer vault-acme"


def test_a_model_that_needs_nothing_is_left_as_it_is(files: Path) -> None:
    agent, provider, _ = scripted_agent("hello", plugins=[ModelsPlugin(made(files))])
    assert agent.run_sync("hi")[-1].text == "hello"
    options = provider.requests[0].options
    assert (options.api_key, options.headers, options.env) == (None, None, None)


def test_the_runtime_that_a_process_shares(files: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = shared_runtime()
    assert first is shared_runtime()
    assert first.agent_dir == files
    mine = made(files)
    mine.set_runtime_key("alpha", "mine")
    share_runtime(mine)
    assert asyncio.run(ModelsPlugin().get_api_key("alpha", RunContext())) == "mine"
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "other"))
    assert asyncio.run(ModelsPlugin().get_api_key("alpha", RunContext())) is None


# --- secrets ---


def test_a_key_planted_everywhere_shows_nowhere(
    files: Path, completions: Completions, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "hunter2-planted-0123"
    caplog.set_level("DEBUG")
    shown: list[str] = []
    entries: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (acme(completions, apiKey=secret, baseUrl="http://127.0.0.1:1/v1", headers={"x-token": secret}), {}),
        (acme(completions, apiKey=f"!echo {secret} >&2; echo {secret}; exit 1"), {}),
        (acme(completions, headers={"x-token": f"{secret}\n{secret}"}), {}),
        (acme(completions, headers={"x-token": [secret]}), {}),
        (acme(completions), {"acme": {"type": "api_key", "key": f"{secret}$MISSING"}}),
        (acme(completions), {"acme": {"type": "api_key", "key": f"!{secret}"}}),
        (acme(completions), {"acme": {"type": "oauth", "access": secret, "expires": 1}}),
        (acme(completions), {"acme": {"type": "magic", "key": secret, "env": {"A": secret}}}),
    ]
    for models, auth in entries:
        write(files, models=models, auth=auth)
        runtime = made(files, {"HV": secret, "ACME_TOKEN": secret})
        shown += runtime.problems()
        for model in [*runtime.models(), *runtime.available()]:
            shown.append(repr(model))
        found = runtime.model("acme", "m1")
        if found is not None:
            answer = ask(runtime, found)
            assert answer.stop_reason == "error"
            shown += [answer.error_message or "", repr(answer)]
        shown += [repr(runtime), repr(runtime.table.config()), repr(runtime.credentials.get("acme"))]
        shown.append(repr(runtime.key_source("acme")))
        shown.append(str(runtime.key_fault("acme")))
    runtime.set_runtime_key("acme", secret)
    auth_of_request = asyncio.run(runtime.request_auth(found or runtime.models()[0]))
    shown += [repr(auth_of_request), repr(SelectionContext(api_key=secret)), caplog.text]
    assert completions.requests == []
    assert secret not in "\n".join(shown)


def test_a_trace_does_not_show_the_key(files: Path, completions: Completions) -> None:
    secret = "hunter2-planted-0123"
    write(
        files,
        models=acme(completions, apiKey=secret, authHeader=True, headers={"x-plain": secret}),
        auth={"acme": {"type": "api_key", "key": secret, "env": {"A": secret}}},
    )

    traced: dict[str, str] = {}

    def tracer(trace: HookTrace) -> None:
        traced[trace.hook] = repr(change(trace, 400))

    async def main() -> None:
        build = Build([ModelsPlugin(made(files)), OpenAICompletionsPlugin()], only=[])
        agent = await build.create_agent(model="acme/m1")
        agent.hooks.trace(tracer)
        await agent.prompt("hi")

    asyncio.run(main())
    assert sent(completions)["authorization"] == f"Bearer {secret}"
    assert traced["get_api_key"] == "'***'"
    assert secret not in str(traced)


def test_variables_that_the_api_reads_by_itself_make_a_provider_usable(files: Path) -> None:
    runtime = made(files, {"ANTHROPIC_AUTH_TOKEN": "token"})
    assert runtime.has_auth("anthropic")
    assert asyncio.run(runtime.api_key("anthropic")) is None
    runtime = made(files, {"ANTHROPIC_AUTH_TOKEN": "token", "ANTHROPIC_OAUTH_TOKEN": "sk-ant-oat01-x"})
    assert asyncio.run(runtime.api_key("anthropic")) == "sk-ant-oat01-x"


def test_options_of_a_call_win(files: Path, completions: Completions) -> None:
    write(files, models=acme(completions, headers={}, apiKey="!exit 1"))
    runtime = made(files)
    model = runtime.model("acme", "m1")
    assert model is not None
    prepared, options = asyncio.run(runtime.prepared(model, StreamOptions(api_key="call", env={"A": "1"})))
    assert (prepared, options.api_key, options.env) == (model, "call", {"A": "1"})


def test_a_proxy_gets_no_key_and_no_header_of_the_provider(files: Path, completions: Completions) -> None:
    write(files, models=acme(completions, apiKey="secret-key", headers={"x-secret": "secret"}))
    model = Model(id="m1", api="proxy", provider="acme", base_url="http://127.0.0.1:9")
    given = StreamOptions(api_key="")
    assert asyncio.run(made(files).prepared(model, given)) == (model, given)
