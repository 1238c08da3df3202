"""``models.json``: what counts, and what is said about the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pi_core import Model
from pi_plugins.models import ModelRuntime

from .catalogs import SmallCatalog

ADDRESS = "expected an address such as https://host/v1, without user and query"
FULL_COST = {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 0}


@pytest.fixture
def path(folder: Path) -> Path:
    folder.mkdir()
    return folder / "models.json"


def write(path: Path, providers: dict[str, Any]) -> ModelRuntime:
    path.write_text(json.dumps({"providers": providers}, indent=1))
    return runtime(path)


def runtime(path: Path, **options: Any) -> ModelRuntime:
    return ModelRuntime(agent_dir=path.parent, environ={}, catalog=SmallCatalog(), **options)


def model(made: ModelRuntime, provider: str, model_id: str) -> Model:
    found = made.model(provider, model_id)
    assert found is not None
    return found


# --- the file ---


def test_no_file_is_no_problem(path: Path) -> None:
    assert runtime(path).problems() == []


def test_comments_and_a_byte_order_mark(path: Path) -> None:
    text = '\ufeff{ // mine\n "providers": { /* all\n of it */ "acme": {"baseUrl": "https://a.example//v1", "models":'
    path.write_text(f'{text} [{{"id": "m", "api": "openai-completions"}}]}} }} }}', encoding="utf-8")
    assert model(runtime(path), "acme", "m").base_url == "https://a.example//v1"


def test_text_that_is_no_json_is_said_with_its_place(path: Path) -> None:
    path.write_text('{"providers": {\n  "acme": oops}}')
    assert runtime(path).problems() == [f"{path}:2:11: expecting value"]


def test_a_changed_file_counts_at_once(path: Path) -> None:
    made = write(path, {"alpha": {"baseUrl": "https://one.example"}})
    assert model(made, "alpha", "sonnet-4").base_url == "https://one.example"
    write(path, {"alpha": {"baseUrl": "https://another.example"}})
    assert model(made, "alpha", "sonnet-4").base_url == "https://another.example"
    path.unlink()
    assert model(made, "alpha", "sonnet-4").base_url == "https://alpha.example/v1"


def test_a_file_that_breaks_leaves_what_it_said_before(path: Path) -> None:
    made = write(path, {"alpha": {"baseUrl": "https://one.example"}})
    assert made.problems() == []
    path.write_text("{")
    assert model(made, "alpha", "sonnet-4").base_url == "https://one.example"
    assert [problem.startswith(f"{path}:1:") for problem in made.problems()] == [True]


@pytest.mark.parametrize("text", ["[]", "3", '{"providers": []}', "null"])
def test_something_else_than_providers(path: Path, text: str) -> None:
    path.write_text(text)
    assert runtime(path).problems() == [f'{path}:1: expected an object: {{"providers": {{"NAME": {{...}}}}}}']


# --- one wrong entry ---


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", '.: the name: expected a text that is not empty, got ""'),
        ("\x1b[31m", r'."\u001b[31m": the name: expected a text without control characters, got "\u001b[31m"'),
        ("\ud800", r'."\ud800": the name: expected a text, got "\ud800"'),
    ],
)
def test_a_name_that_no_provider_can_have_costs_itself(path: Path, name: str, said: str) -> None:
    made = write(path, {name: {"baseUrl": "https://a.example"}, "alpha": {"baseUrl": "https://one.example"}})
    assert [problem.partition("providers")[2] for problem in made.problems()] == [said]
    assert model(made, "alpha", "sonnet-4").base_url == "https://one.example"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"baseUrl": 5}, "{p}.baseUrl: expected a text, got 5"),
        ({"baseUrl": "host/v1"}, '{p}.baseUrl: {address}, got "host/v1"'),
        ({"baseUrl": "https://"}, '{p}.baseUrl: {address}, got "https://"'),
        ({"baseUrl": "https://a.example/\x00"}, r'{p}.baseUrl: {address}, got "https://a.example/\u0000"'),
        ({"baseUrl": "https://me:sk-planted@a.example/v1"}, '{p}.baseUrl: {address}, got "https://***@a.example/v1"'),
        ({"baseUrl": "https://a.example/v1?key=1"}, '{p}.baseUrl: {address}, got "https://a.example/v1?key=***"'),
        ({"apiKey": 12345678}, "{p}.apiKey: expected a text, got a number"),
        ({"headers": {"x": 12345678}}, "{p}.headers.x: expected a text, got a number"),
        ({"authHeader": "yes"}, '{p}.authHeader: expected true or false, got "yes"'),
        ({"models": {}}, "{p}.models: expected a list, got an object"),
        (
            {"name": "Acme"},
            '{p}: must specify "baseUrl", "headers", "compat", "modelOverrides", "models" or "apiKey"',
        ),
        ([], "{p}: expected an object, got a list"),
    ],
)
def test_a_wrong_provider_costs_itself(path: Path, entry: Any, said: str) -> None:
    made = write(path, {"bad": entry, "alpha": {"baseUrl": "https://one.example"}})
    found = made.problems()
    assert len(found) == 1
    place, _, text = found[0].partition(": ")
    assert place.startswith(f"{path}:")
    assert text == said.format(p="providers.bad", address=ADDRESS)
    assert model(made, "alpha", "sonnet-4").base_url == "https://one.example"
    assert made.model("bad", "m") is None


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({}, ".id: is missing"),
        ({"id": ""}, '.id: expected a text that is not empty, got ""'),
        ({"id": "\x1b[2J"}, r'.id: expected a text without control characters, got "\u001b[2J"'),
        ({"id": "m", "name": "\ud800"}, r'.name: expected a text, got "\ud800"'),
        (
            {"id": "m", "contextWindow": 10**10},
            ".contextWindow: expected a number of at most 1000000000, got 10000000000",
        ),
        ({"id": "m", "inputLimits": {"images": 3}}, ".inputLimits.images: expected an object, got 3"),
        (
            {"id": "m", "inputLimits": {"images": {"resize": {"jpegQuality": 101}}}},
            ".inputLimits.images.resize.jpegQuality: expected a number of at most 100, got 101",
        ),
        ({"id": "m", "promptCache": {"short": -1}}, ".promptCache.short: expected a number of at least 0, got -1"),
        ({"id": "m", "contextWindow": 0}, ".contextWindow: expected a number above 0, got 0"),
        ({"id": "m", "maxTokens": -1}, ".maxTokens: expected a number above 0, got -1"),
        ({"id": "m", "maxTokens": 1.5}, ".maxTokens: expected a whole number, got 1.5"),
        ({"id": "m", "cost": {"input": 1}}, ".cost.output: is missing"),
        ({"id": "m", "cost": FULL_COST | {"input": -1}}, ".cost.input: expected a number of at least 0, got -1"),
        ({"id": "m", "input": ["smell"]}, ".input[0]: expected 'text' or 'image', got \"smell\""),
        ({"id": "m", "input": []}, ".input: expected a list that is not empty, got a list"),
        ({"id": "m", "reasoning": 1}, ".reasoning: expected true or false, got 1"),
        ({"id": "m", "thinkingLevelMap": {"low": 3}}, ".thinkingLevelMap.low: expected a text, got 3"),
        ({"id": "m", "extends": 3}, ".extends: expected true, or the id of a model, got 3"),
        ("m", ': expected an object, got "m"'),
    ],
)
def test_a_wrong_model_costs_itself(path: Path, entry: Any, said: str) -> None:
    good = {"id": "good"}
    provider = {"baseUrl": "https://a.example", "api": "openai-completions", "models": [entry, good]}
    made = write(path, {"acme": provider})
    texts = [problem.partition(": ")[2] for problem in made.problems()]
    assert f"providers.acme.models[0]{said}" in texts
    assert made.model("acme", "good") is not None
    assert made.model("acme", "m") is None


def test_a_problem_names_the_line(path: Path) -> None:
    write(path, {"acme": {"baseUrl": "https://a.example", "models": [{"id": "m", "maxTokens": 0}]}})
    line = path.read_text().splitlines().index('     "maxTokens": 0') + 1
    assert runtime(path).problems()[0].startswith(f"{path}:{line}: ")


def test_a_wrong_override_costs_itself(path: Path) -> None:
    overrides = {"sonnet-4": {"maxTokens": "many"}, "opus-5": {"maxTokens": 7}, "sonnet-6": {"maxTokens": 7}}
    made = write(path, {"alpha": {"modelOverrides": overrides}})
    assert model(made, "alpha", "opus-5").max_tokens == 7
    assert model(made, "alpha", "sonnet-4").max_tokens == 100
    assert [problem.partition(": ")[2] for problem in made.problems()] == [
        'providers.alpha.modelOverrides.sonnet-4.maxTokens: expected a whole number, got "many"',
        "providers.alpha.modelOverrides.sonnet-6: there is no model alpha/sonnet-6, did you mean 'sonnet-5'?",
    ]


def test_a_switch_that_does_not_fit_its_api_costs_itself(path: Path) -> None:
    compat = {"supportsStore": "no", "maxTokensField": "max_tokens", "suportsStrictMode": True, "own": 1}
    models = [
        {"id": "m", "compat": compat},
        {"id": "a", "api": "anthropic-messages", "compat": {"allowedFallbackModels": [{"model": "b"}, 3]}},
        {"id": "b", "api": "morse", "compat": {"supportsStore": "no"}},
    ]
    entry = {"baseUrl": "https://a.example", "api": "openai-completions", "models": models}
    made = write(path, {"acme": entry, "beta": {"api": "openai-completions", "compat": {"zaiToolStream": 1}}})
    assert [problem.partition("providers.")[2] for problem in made.problems()] == [
        "acme.models[0].compat.suportsStrictMode: unknown key, which is ignored, did you mean 'supportsStrictMode'?",
        'acme.models[0].compat.supportsStore: expected true or false, got "no"',
        "acme.models[1].compat.allowedFallbackModels[1]: expected an object, got 3",
        "beta.compat.zaiToolStream: expected true or false, got 1",
    ]
    assert model(made, "acme", "m").compat == {"maxTokensField": "max_tokens", "suportsStrictMode": True, "own": 1}
    assert model(made, "acme", "b").compat == {"supportsStore": "no"}


def test_an_unknown_key_that_is_nearly_a_known_one(path: Path) -> None:
    made = write(path, {"alpha": {"baseurl": "x", "compat": {}, "mine": 1}})
    assert [problem.partition(": ")[2] for problem in made.problems()] == [
        "providers.alpha.baseurl: unknown key, which is ignored, did you mean 'baseUrl'?"
    ]


def test_a_key_that_is_there_twice(path: Path) -> None:
    path.write_text('{"providers": {"alpha": {\n"baseUrl": "https://1.example",\n"baseUrl": "https://2.example"}}}')
    made = runtime(path)
    assert model(made, "alpha", "same").base_url == "https://2.example"
    assert [problem.partition(": ")[2] for problem in made.problems()] == [
        "providers.alpha.baseUrl: is there twice (line 2 and line 3); the last one counts"
    ]


def test_no_problem_shows_a_key(path: Path) -> None:
    secret = "sk-planted-0123456789"
    entry = {"apiKey": [secret], "headers": {"authorization": [secret]}, "baseUrl": "https://a.example"}
    made = write(path, {"acme": entry, "other": {"apiKey": secret, "models": [{"id": 3}]}})
    assert len(made.problems()) == 3
    assert secret not in "".join(made.problems())
    assert secret not in repr(made.table.config())


# --- models ---


def test_a_model_of_a_new_provider_has_defaults(path: Path) -> None:
    made = write(path, {"acme": {"baseUrl": "https://a.example", "api": "openai-completions", "models": [{"id": "m"}]}})
    found = model(made, "acme", "m")
    assert (found.name, found.api, found.base_url) == ("m", "openai-completions", "https://a.example")
    assert (found.context_window, found.max_tokens, found.input, found.reasoning) == (128_000, 16_384, ["text"], False)
    assert found.cost.output == 0


@pytest.mark.parametrize("missing", ["api", "baseUrl"])
def test_a_model_without_api_or_address(path: Path, missing: str) -> None:
    entry = {"baseUrl": "https://a.example", "api": "openai-completions", "headers": {}, "models": [{"id": "m"}]}
    del entry[missing]
    made = write(path, {"acme": entry})
    where = "at the provider or at the model" if missing == "api" else "at the provider"
    assert [problem.partition(": ")[2] for problem in made.problems()] == [
        f'providers.acme.models[0]: there is no "{missing}"; set it {where}'
    ]


def test_where_api_and_address_of_a_new_model_come_from(path: Path) -> None:
    models: list[dict[str, Any]] = [
        {"id": "own", "api": "openai-responses", "baseUrl": "https://own.example"},
        {"id": "opus-5", "reasoning": True},
        {"id": "new"},
        {"id": "messages", "api": "anthropic-messages"},
    ]
    made = write(path, {"alpha": {"models": models}})
    assert [(model(made, "alpha", one["id"]).api, model(made, "alpha", one["id"]).base_url) for one in models] == [
        ("openai-responses", "https://own.example"),
        ("anthropic-messages", "https://alpha.example/v1"),
        ("openai-completions", "https://alpha.example/v1"),
        ("anthropic-messages", "https://alpha.example/v1"),
    ]
    made = write(path, {"alpha": {"api": "x", "baseUrl": "https://p.example", "models": models[2:3]}})
    assert (model(made, "alpha", "new").api, model(made, "alpha", "new").base_url) == ("x", "https://p.example")


def test_a_provider_address_reroutes_its_models_and_its_compat_is_merged(path: Path) -> None:
    made = write(path, {"alpha": {"baseUrl": "https://proxy.example", "compat": {"supportsStore": False}}})
    found = model(made, "alpha", "opus-5")
    assert found.base_url == "https://proxy.example"
    assert found.compat == {"supportsLongCacheRetention": False, "supportsStore": False}
    assert found.name == "Opus"


def test_compat_of_a_new_model_is_over_that_of_its_provider(path: Path) -> None:
    provider = {"a": 1, "openRouterRouting": {"only": ["x"], "sort": "price"}}
    own = {"b": 2, "openRouterRouting": {"only": ["y"]}}
    made = write(path, {"alpha": {"compat": provider, "models": [{"id": "new", "compat": own}]}})
    assert model(made, "alpha", "new").compat == {"a": 1, "b": 2, "openRouterRouting": {"only": ["y"], "sort": "price"}}


def test_replacing_a_model_says_what_is_lost(path: Path) -> None:
    made = write(path, {"alpha": {"models": [{"id": "sonnet-4", "contextWindow": 5}]}})
    found = model(made, "alpha", "sonnet-4")
    assert (found.cost.output, found.reasoning, found.context_window) == (0, False, 5)
    assert [problem.partition(": ")[2] for problem in made.problems()] == [
        (
            "providers.alpha.models[0]: this replaces alpha/sonnet-4 without its reasoning, cost, maxTokens. Add "
            '"extends": true to keep them, or use "modelOverrides"'
        )
    ]


def test_a_model_can_extend_the_one_it_replaces(path: Path) -> None:
    made = write(path, {"alpha": {"models": [{"id": "sonnet-4", "contextWindow": 5, "extends": True}]}})
    found = model(made, "alpha", "sonnet-4")
    assert (found.cost.output, found.reasoning, found.context_window, found.name) == (15, True, 5, "Sonnet Four")
    assert made.problems() == []


def test_a_model_can_extend_another_one(path: Path) -> None:
    acme = {"baseUrl": "https://a.example", "models": [{"id": "mine", "extends": "alpha/sonnet-4"}]}
    alpha = {"models": [{"id": "sonnet-4-eu", "extends": "sonnet-4", "name": "EU"}]}
    made = write(path, {"acme": acme, "alpha": alpha})
    mine, eu = model(made, "acme", "mine"), model(made, "alpha", "sonnet-4-eu")
    assert (mine.name, mine.provider, mine.base_url, mine.cost.output) == ("mine", "acme", "https://a.example", 15)
    assert (eu.name, eu.base_url, eu.cost.output) == ("EU", "https://alpha.example/v1", 15)
    assert made.problems() == []


def test_extending_what_is_not_there(path: Path) -> None:
    made = write(path, {"alpha": {"models": [{"id": "x", "extends": "sonnet-44"}, {"id": "y", "extends": True}]}})
    assert [problem.partition(": ")[2] for problem in made.problems()] == [
        "providers.alpha.models[0].extends: there is no model 'sonnet-44', did you mean 'sonnet-4'?",
        "providers.alpha.models[1].extends: there is no model 'y'",
    ]


def test_overrides_merge_objects_and_replace_the_rest(path: Path) -> None:
    override = {
        "name": "Mine",
        "cost": {"output": 9},
        "thinkingLevelMap": {"high": "max"},
        "compat": {"supportsStore": True},
        "samplingParams": {"top_p": 1},
        "input": ["text", "image"],
    }
    made = write(
        path, {"beta": {"modelOverrides": {"mini": override}}, "alpha": {"modelOverrides": {"opus-5": override}}}
    )
    mini, opus = model(made, "beta", "mini"), model(made, "alpha", "opus-5")
    assert (mini.name, mini.thinking_level_map, mini.input) == ("Mine", {"off": None, "high": "max"}, ["text", "image"])
    assert (mini.cost.output, mini.base_url) == (9, "https://beta.example/v1")
    assert opus.compat == {"supportsLongCacheRetention": False, "supportsStore": True}


def test_overrides_are_on_top_of_models(path: Path) -> None:
    entry = {"models": [{"id": "new", "maxTokens": 1}], "modelOverrides": {"new": {"maxTokens": 2}}}
    assert model(write(path, {"alpha": entry}), "alpha", "new").max_tokens == 2


# --- a project ---


def test_a_trusted_project_wins_key_by_key(path: Path, tmp_path: Path) -> None:
    project = tmp_path / "project" / ".pi" / "models.json"
    project.parent.mkdir(parents=True)
    mine = {
        "baseUrl": "https://mine.example",
        "headers": {"x-a": "1"},
        "modelOverrides": {"sonnet-4": {"maxTokens": 1}},
    }
    theirs = {"baseUrl": "https://theirs.example", "modelOverrides": {"sonnet-4": {"contextWindow": 2}}}
    project.write_text(json.dumps({"providers": {"alpha": theirs}}))
    write(path, {"alpha": mine})
    cwd = tmp_path / "project"
    trusted = model(runtime(path, cwd=cwd, trusted=True), "alpha", "sonnet-4")
    assert (trusted.base_url, trusted.max_tokens, trusted.context_window) == ("https://theirs.example", 1, 2)
    plain = model(runtime(path, cwd=cwd), "alpha", "sonnet-4")
    assert (plain.base_url, plain.max_tokens, plain.context_window) == ("https://mine.example", 1, 1000)


def test_a_folder_that_is_both_the_users_and_the_projects_is_read_once(path: Path, tmp_path: Path) -> None:
    path.write_text("{")
    (tmp_path / ".pi").symlink_to(path.parent)
    (problem,) = runtime(path, cwd=tmp_path, trusted=True).problems()
    assert problem.startswith(f"{path}:1:")


def test_something_else_than_a_file(path: Path) -> None:
    path.mkdir()
    assert runtime(path).problems() == [f"{path}: not a regular file"]
