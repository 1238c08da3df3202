"""What the name of a model can be, and which model is taken without one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pi_core import Build, ConfigError, Model, SelectionContext
from pi_plugins.config import Settings
from pi_plugins.models import ModelRuntime, ModelsPlugin, _servers
from pi_plugins.models._known import LocalServer
from pi_plugins.models._validation import LEVELS
from pi_plugins.providers.openai_completions import OpenAICompletionsPlugin

from .catalogs import SmallCatalog
from .conftest import ModelServer

NAME_IT = "Name it as provider/id to choose another"
UNKNOWN = "One that is not known here is named as provider/id"
A, B = {"ALPHA_API_KEY": "a"}, {"BETA_API_KEY": "b"}


def runtime(folder: Path, environ: dict[str, str], **settings: Any) -> ModelRuntime:
    return ModelRuntime(
        agent_dir=folder,
        environ=environ,
        settings=Settings.model_validate(settings),
        catalog=SmallCatalog(),
    )


def choose(
    folder: Path,
    name: str | None,
    environ: dict[str, str] | None = None,
    given: dict[str, Any] | None = None,
    **more: Any,
) -> tuple[Model | None, SelectionContext]:
    made = runtime(folder, environ or {}, **more)
    ctx = SelectionContext(environ=made.environ, **(given or {}))
    return asyncio.run(made.resolve(name, ctx)), ctx


def named(folder: Path, name: str | None, environ: dict[str, str] | None = None, **more: Any) -> str:
    model, _ = choose(folder, name, environ, **more)
    assert model is not None
    return f"{model.provider} {model.id}"


def refused(folder: Path, name: str | None, environ: dict[str, str] | None = None, **more: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        choose(folder, name, environ, **more)
    return str(caught.value)


# --- exact ---


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("alpha/sonnet-4", "alpha sonnet-4"),
        ("ALPHA/Sonnet-4", "alpha sonnet-4"),
        ("sonnet-4", "alpha sonnet-4"),
        ("beta/eu/other", "beta/eu other"),
        ("beta/alpha/sonnet-5", "beta alpha/sonnet-5"),
        ("beta/mini[1m]", "beta mini[1m]"),
        ("beta/same:high", "beta same:high"),
    ],
)
def test_an_exact_name(folder: Path, name: str, found: str) -> None:
    assert named(folder, name) == found


def test_a_known_model_has_limits_and_prices_of_the_catalog(folder: Path) -> None:
    model, ctx = choose(folder, "alpha/sonnet-4")
    assert model is not None
    assert (model.context_window, model.max_tokens, model.cost.output, model.reasoning) == (1000, 100, 15, True)
    assert ctx.notices == []


def test_a_name_that_is_also_the_id_at_another_provider_goes_where_there_is_a_key(folder: Path) -> None:
    assert named(folder, "alpha/sonnet-5", A | B) == "alpha sonnet-5"
    assert named(folder, "alpha/sonnet-5") == "alpha sonnet-5"
    model, ctx = choose(folder, "alpha/sonnet-5", B)
    assert model is not None
    assert (model.provider, model.id) == ("beta", "alpha/sonnet-5")
    assert ctx.notices == [f"Taking 'alpha/sonnet-5' as beta/alpha/sonnet-5, because BETA_API_KEY is set. {NAME_IT}"]


def test_an_id_of_several_providers(folder: Path) -> None:
    assert named(folder, "same", A) == "alpha same"
    assert named(folder, "same", B) == "beta same"
    served = "The model 'same' is served by several providers: alpha/same, beta/same."
    assert refused(folder, "same") == f"{served} None of these providers has a key. Name one of them"
    assert refused(folder, "same", A | B) == f"{served} More than one of these providers has a key. Name one of them"
    said = refused(folder, "same", A, given={"api_key": "k"})
    assert said == f"{served} --api-key does not choose a provider. Name one of them"


# --- rough ---


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("sonnet", "alpha sonnet-5"),
        ("SONN", "alpha sonnet-5"),
        ("20260101", "alpha sonnet-5-20260101"),
        ("Sonnet Four", "alpha sonnet-4"),
        ("beta/sonnet", "beta alpha/sonnet-5"),
    ],
)
def test_a_part_of_a_name(folder: Path, name: str, found: str) -> None:
    assert named(folder, name, A) == found


def test_a_part_of_a_name_looks_first_where_there_is_a_key(folder: Path) -> None:
    assert named(folder, "sonnet", B) == "beta alpha/sonnet-5"


def test_a_model_its_maker_serves_goes_before_that_of_a_router(folder: Path) -> None:
    assert named(folder, "sonnet", A | B) == "alpha sonnet-5"


def test_what_a_part_was_taken_for_is_said(folder: Path) -> None:
    _, ctx = choose(folder, "sonnet", A)
    assert ctx.notices == [
        "Taking 'sonnet' as alpha/sonnet-5, because ALPHA_API_KEY is set. Name it as provider/id to choose another"
    ]


# --- levels ---


def test_a_level_after_the_name(folder: Path) -> None:
    for name, level in [("sonnet-4:high", "high"), ("alpha/sonnet-4:OFF", "off"), ("sonnet:low", "low")]:
        model, ctx = choose(folder, name, A)
        assert model is not None
        assert (model.provider, ctx.thinking_level) == ("alpha", level)


def test_an_id_that_ends_like_a_level_has_none(folder: Path) -> None:
    _, ctx = choose(folder, "beta/same:high")
    assert ctx.thinking_level is None


def test_what_is_no_level_belongs_to_the_name(folder: Path) -> None:
    model, ctx = choose(folder, "alpha/sonnet-4:loud")
    assert model is not None
    assert (model.id, ctx.thinking_level) == ("sonnet-4:loud", None)


# --- unknown ---


def test_an_unknown_id_of_a_known_provider_is_asked_for_as_named(folder: Path) -> None:
    model, ctx = choose(folder, "alpha/sonnet-9:high")
    assert model is not None
    assert (model.id, model.name, model.base_url, ctx.thinking_level) == (
        "sonnet-9",
        "sonnet-9",
        "https://alpha.example/v1",
        "high",
    )
    assert (model.context_window, model.cost.output, model.reasoning) == (1000, 0, True)
    assert ctx.notices == [
        "alpha has no model 'sonnet-9' that is known here: it is asked for as named; did you mean 'alpha/sonnet-5'?"
    ]


def test_an_unknown_model_of_a_level_can_think(folder: Path) -> None:
    (folder).mkdir()
    entry = {"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "models": [{"id": "m"}]}
    (folder / "models.json").write_text(json.dumps({"providers": {"gamma": entry}}))
    plain, _ = choose(folder, "gamma/new")
    thinking, _ = choose(folder, "gamma/new:low")
    off, _ = choose(folder, "gamma/new:off")
    assert [one.reasoning for one in (plain, thinking, off) if one is not None] == [False, True, False]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("alhpa/sonnet-4", "There is no provider 'alhpa', did you mean 'alpha/sonnet-4'?"),
        (
            "sonnet-4x",
            f"There is no model 'sonnet-4x', did you mean 'alpha/sonnet-4'? {UNKNOWN}",
        ),
        (
            "sonet",
            f"There is no model 'sonet', did you mean 'alpha/sonnet-5'? {UNKNOWN}",
        ),
        ("alpha", "'alpha' is a provider: name a model too, as alpha/MODEL"),
        (
            "mini:loud",
            f"There is no model 'mini:loud', and 'loud' is none of the thinking levels: {', '.join(LEVELS)}",
        ),
    ],
)
def test_a_name_that_is_nearly_right(folder: Path, name: str, said: str) -> None:
    assert refused(folder, name) == said


def test_a_name_that_is_like_nothing_is_left_to_others(folder: Path) -> None:
    assert choose(folder, "zzzz/qqqq")[0] is None
    made = runtime(folder, {})
    with pytest.raises(ConfigError, match=r"^There is no model 'zzzz'\. pi models list shows those there are$"):
        asyncio.run(made.select("zzzz", SelectionContext(environ=made.environ)))


# --- a provider ---


def test_a_provider_restricts_the_name(folder: Path) -> None:
    assert named(folder, "same", A, given={"provider": "beta"}) == "beta same"
    assert named(folder, "beta/same", A, given={"provider": "beta"}) == "beta same"
    assert named(folder, "sonnet", A, given={"provider": "beta"}) == "beta alpha/sonnet-5"
    assert named(folder, "new", A, given={"provider": "beta"}) == "beta new"
    said = refused(folder, "same", given={"provider": "betta"})
    assert said == "There is no provider 'betta', did you mean 'beta'?"


def test_a_provider_without_a_name_gives_its_usual_model(folder: Path) -> None:
    assert named(folder, None, A | B, given={"provider": "beta"}) == "beta mini"


# --- a key ---


def test_a_key_of_the_command_line_is_that_of_the_model_named(folder: Path) -> None:
    made = runtime(folder, A)
    ctx = SelectionContext(environ=made.environ, api_key="given")
    assert asyncio.run(made.resolve("alpha/sonnet-4", ctx)) is not None
    assert asyncio.run(made.api_key("alpha")) == "given"
    assert asyncio.run(made.api_key("beta")) is None


def test_a_key_of_the_command_line_needs_a_model(folder: Path) -> None:
    said = refused(folder, None, A, given={"api_key": "k"})
    assert said == "--api-key needs a model: a key does not say whose it is. Name one with --model"
    assert named(folder, None, {}, given={"api_key": "k", "provider": "alpha"}) == "alpha sonnet-5"


# --- no name ---


def test_the_model_of_the_settings(folder: Path) -> None:
    settings = {"default_provider": "beta", "default_model": "same"}
    model, ctx = choose(folder, None, A | B, **settings)
    assert model is not None
    assert (model.provider, model.id, ctx.notices) == ("beta", "same", [])
    model, ctx = choose(folder, None, A, **settings)
    assert model is not None
    assert (model.provider, ctx.notices[0]) == (
        "alpha",
        "The settings name beta/same, but beta has no key: another model takes its place",
    )


def test_the_settings_put_providers_in_order(folder: Path) -> None:
    assert named(folder, None, A | B) == "alpha sonnet-5"
    model, ctx = choose(folder, None, A | B, provider_order=("beta",))
    assert model is not None
    assert (model.provider, model.id) == ("beta", "mini")
    assert ctx.notices == ["Using beta/mini, because BETA_API_KEY is set. Name another with --model"]


def test_the_settings_can_put_a_local_server_before_keys(
    folder: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_servers, "LOCAL_SERVERS", (LocalServer("ollama", "Ollama", server.port),))
    assert named(folder, None, A) == "alpha sonnet-5"
    assert named(folder, None, A, provider_order=("ollama",)) == "ollama small"
    assert named(folder, None, A, default_provider="ollama") == "ollama small"
    assert named(folder, None, A, given={"provider": "ollama"}) == "ollama small"
    assert named(folder, "large", A, given={"provider": "ollama"}) == "ollama large"


def test_the_provider_of_the_settings_goes_first(folder: Path) -> None:
    assert named(folder, None, A | B, default_provider="beta") == "beta mini"


def test_a_named_model_is_found_without_waiting(folder: Path) -> None:
    build = Build([ModelsPlugin(runtime(folder, A)), OpenAICompletionsPlugin()], only=[])

    async def main() -> str:
        return build.agent(model="alpha/sonnet-4").state.model.id

    assert asyncio.run(main()) == "sonnet-4"


def test_the_first_of_the_enabled_models(folder: Path) -> None:
    model, ctx = choose(folder, None, A | B, enabled_models=("beta/m*:low", "alpha/*"))
    assert model is not None
    assert (model.id, ctx.thinking_level) == ("mini[1m]", "low")


def test_without_a_key_nothing_is_chosen(folder: Path) -> None:
    made = runtime(folder, {})
    with pytest.raises(ConfigError, match=r"^No provider has a key, and no local server answers\."):
        asyncio.run(made.select(None, SelectionContext(environ=made.environ)))


def test_a_provider_whose_key_cannot_be_had_is_not_chosen(folder: Path) -> None:
    runtime(folder, {}).credentials.set_key("alpha", "$NOT_SET")
    model, ctx = choose(folder, None, A | B)
    assert model is not None
    assert (str(model.provider), ctx.notices) == (
        "beta",
        [
            f"alpha is passed over: {folder}/auth.json: the environment variable NOT_SET is not set, or empty",
            "Using beta/mini, because BETA_API_KEY is set. Name another with --model",
        ],
    )


def test_a_provider_of_the_settings_whose_key_cannot_be_had_is_told_once(folder: Path) -> None:
    runtime(folder, {}).credentials.set_key("alpha", "$NOT_SET")
    _, ctx = choose(folder, None, A | B, default_provider="alpha", default_model="opus-5")
    assert ctx.notices[0] == (
        f"The settings name alpha/opus-5, but {folder}/auth.json: the environment variable NOT_SET is not set, or "
        "empty: another model takes its place"
    )
    assert len(ctx.notices) == 2


# --- patterns ---


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("alpha/sonnet-4", ["alpha/sonnet-4 None"]),
        ("*opus*", ["alpha/opus-5 None"]),
        ("ALPHA/SONNET-?", ["alpha/sonnet-4 None", "alpha/sonnet-5 None"]),
        ("alpha/sonnet-[45]:high", ["alpha/sonnet-4 high", "alpha/sonnet-5 high"]),
        ("mini[1m]", ["beta/mini[1m] None"]),
        ("beta/eu/*", ["beta/eu/other None"]),
        ("sonnet:low", ["alpha/sonnet-5 low"]),
    ],
)
def test_a_pattern(folder: Path, pattern: str, found: list[str]) -> None:
    models, warnings = runtime(folder, A | B | {"BETA_EU_API_KEY": "e"}).scope([pattern])
    assert [f"{model.provider}/{model.id} {level}" for model, level in models] == found
    assert warnings == []


def test_patterns_keep_their_order_and_name_a_model_once(folder: Path) -> None:
    models, _ = runtime(folder, A | B).scope(["beta/mini:low", "alpha/sonnet-*", "alpha/sonnet-4:high", "beta/mini"])
    assert [(model.id, level) for model, level in models] == [
        ("mini", "low"),
        ("sonnet-4", None),
        ("sonnet-5", None),
        ("sonnet-5-20260101", None),
    ]


def test_patterns_name_models_with_a_key_only(folder: Path) -> None:
    models, warnings = runtime(folder, A).scope(["beta/*", "alpha/opus-5"])
    assert [model.id for model, _ in models] == ["opus-5"]
    assert warnings == ["No model with a key fits the pattern 'beta/*'"]


def test_what_patterns_warn_of(folder: Path) -> None:
    models, warnings = runtime(folder, A | B).scope(["same", "opus-5:loud"])
    assert [model.provider for model, _ in models] == ["alpha", "beta", "alpha"]
    assert warnings == [
        "The pattern 'same' fits several providers: alpha, beta. Name one as provider/id",
        "'loud' in the pattern 'opus-5:loud' is no thinking level: the usual one is used",
    ]


# --- an address ---


def test_a_known_model_at_another_address_keeps_what_is_known(folder: Path) -> None:
    model, ctx = choose(folder, "alpha/sonnet-4:high", given={"base_url": "http://127.0.0.1:9/v1"})
    assert model is not None
    assert (model.base_url, model.cost.output, model.context_window) == ("http://127.0.0.1:9/v1", 15, 1000)
    assert ctx.thinking_level == "high"
    other, _ = choose(folder, "alpha/opus-5", given={"base_url": "http://127.0.0.1:9/v1"})
    assert other is not None
    assert (other.api, other.compat) == ("openai-completions", None)
