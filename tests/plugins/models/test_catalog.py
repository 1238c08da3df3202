"""The catalog as its readers see it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pi_core import Model, ThinkingLevel
from pi_plugins.models._catalog_set import CatalogSet, write_set
from pi_plugins.models._generations import publish
from pi_plugins.models._health import check
from pi_plugins.models._known import PROVIDERS
from pi_plugins.models._validation import LEVELS
from pi_plugins.models.catalog import SHIPPED, Catalog
from pi_plugins.models.levels import clamp_level, supported_levels

from .sources import LONG_AGO, shipped


def row(provider: str, model_id: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": model_id,
        "name": model_id,
        "api": "openai-completions",
        "provider": provider,
        "baseUrl": "http://127.0.0.1",
        "reasoning": False,
        "input": ["text"],
        "contextWindow": 1,
        "maxTokens": 1,
        **changes,
    }


def refreshed(folder: Path, generated_at: str = "2026-01-01T00:00:00+00:00", **providers: list[str]) -> Path:
    """Make a set the current one and return its folder."""
    folder.mkdir(exist_ok=True)
    rows = {name: {model_id: row(name, model_id) for model_id in ids} for name, ids in providers.items()}
    return publish(folder, lambda made: write_set(made, rows, generated_at=generated_at, sources={}), lambda step: None)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    return shipped(tmp_path / "installed")


class TestShipped:
    def test_it_is_whole(self) -> None:
        assert CatalogSet(SHIPPED).faults() == []

    def test_every_provider_here_has_models(self, tmp_path: Path) -> None:
        catalog = Catalog(tmp_path)
        assert catalog.providers() == sorted(PROVIDERS)
        assert not [name for name in PROVIDERS if not catalog.rows(name)]

    def test_models_are_served_where_their_provider_is(self, tmp_path: Path) -> None:
        for model in Catalog(tmp_path).rows():
            known = PROVIDERS[model["provider"]]
            if model["api"] == known.api:
                assert model["baseUrl"] == known.base_url

    def test_a_model_that_is_taken_without_being_named_is_in_it(self, tmp_path: Path) -> None:
        catalog = Catalog(tmp_path)
        unnamed = {name: known.model for name, known in PROVIDERS.items() if known.model}
        del unnamed["openrouter"]  # its router may answer with images, which no model of the catalog does
        assert not [name for name, model_id in unnamed.items() if catalog.row(name, model_id) is None]

    def test_every_row_is_a_model_and_loses_nothing(self, tmp_path: Path) -> None:
        for found in Catalog(tmp_path).rows():
            made = Model.model_validate(found)
            assert made.model_extra == {}
            assert made.model_dump(exclude_unset=True) == found

    def test_what_is_known_of_some_models(self, tmp_path: Path) -> None:
        catalog = Catalog(tmp_path)
        mini = catalog.model("openai", "gpt-5-mini")
        assert mini is not None
        assert (mini.api, mini.context_window, mini.max_tokens) == ("openai-responses", 400_000, 128_000)
        assert (mini.cost.input, mini.cost.output, mini.cost.cache_read) == (0.25, 2, 0.025)
        tiered = catalog.model("google", "gemini-2.5-pro")
        assert tiered is not None
        assert tiered.cost.tiers is not None
        assert [(tier.input_tokens_above, tier.input) for tier in tiered.cost.tiers] == [(200_000, 2.5)]
        claude = catalog.model("opencode", "claude-sonnet-4-6")
        assert claude is not None
        assert (claude.api, claude.base_url) == ("anthropic-messages", "https://opencode.ai/zen")

    @pytest.mark.parametrize(
        ("provider", "model_id", "levels"),
        [
            ("openai", "gpt-4o", "off"),
            ("openai", "gpt-5-mini", "minimal low medium high"),
            ("openai", "gpt-5-pro", "high"),
            ("openai", "gpt-5.1", "off low medium high"),
            ("openai", "gpt-5.2", "off low medium high xhigh"),
            ("openai", "gpt-5.2-codex", "low medium high xhigh"),
            ("openai", "gpt-5.4-pro", "medium high xhigh"),
            ("openai", "o3", "low medium high"),
            ("anthropic", "claude-sonnet-4-5", "off minimal low medium high"),
            ("anthropic", "claude-opus-4-6", "off minimal low medium high max"),
            ("anthropic", "claude-opus-4-7", "off minimal low medium high xhigh max"),
            ("google", "gemini-2.5-pro", "minimal low medium high"),
            ("google", "gemini-2.5-flash", "off minimal low medium high"),
            ("groq", "openai/gpt-oss-120b", "low medium high"),
            ("mistral", "mistral-small-latest", "off high"),
            ("deepseek", "deepseek-v4-pro", "off minimal low medium high xhigh max"),
        ],
    )
    def test_thinking_levels(self, tmp_path: Path, provider: str, model_id: str, levels: str) -> None:
        model = Catalog(tmp_path).model(provider, model_id)
        assert model is not None
        assert supported_levels(model) == levels.split()

    def test_a_level_that_a_model_does_not_have_becomes_the_next_one(self, tmp_path: Path) -> None:
        catalog = Catalog(tmp_path)
        wishes: list[tuple[str, ThinkingLevel, ThinkingLevel]] = [
            ("gpt-5-mini", "off", "minimal"),
            ("gpt-5-mini", "max", "high"),
            ("gpt-5.4-pro", "low", "medium"),
            ("gpt-4o", "high", "off"),
        ]
        for model_id, wish, given in wishes:
            model = catalog.model("openai", model_id)
            assert model is not None
            assert clamp_level(model, wish) == given

    def test_the_levels_are_those_of_the_core(self) -> None:
        assert ThinkingLevel.__args__ == LEVELS  # type: ignore[attr-defined]


class TestReading:
    def test_a_file_is_read_when_its_provider_is_asked_for(self, tmp_path: Path, installed: Path) -> None:
        (installed / "groq.json").write_text("damaged")
        catalog = Catalog(tmp_path / "none", installed)
        assert len(catalog.rows("openai")) == 4
        assert catalog.problems() == []
        assert catalog.rows("groq") == []
        assert [text.partition(": ")[0] for text in catalog.problems()] == [str(installed / "groq.json")]

    def test_a_model_is_made_once(self, tmp_path: Path, installed: Path) -> None:
        catalog = Catalog(tmp_path / "none", installed)
        assert catalog.model("openai", "m1") is catalog.model("openai", "m1")
        assert catalog.model("openai", "zzz") is None
        assert catalog.model("zzz", "m1") is None

    def test_rows_come_by_provider_and_id(self, tmp_path: Path, installed: Path) -> None:
        rows = Catalog(tmp_path / "none", installed).rows()
        names = [(found["provider"], found["id"]) for found in rows]
        assert names == sorted(names)
        assert len(names) == 4 * len(PROVIDERS)

    def test_newer_data_wins_and_what_it_lacks_comes_from_what_ships(self, tmp_path: Path, installed: Path) -> None:
        folder = refreshed(tmp_path / "catalog", groq=["new"])
        catalog = Catalog(tmp_path / "catalog", installed)
        assert [found["id"] for found in catalog.rows("groq")] == ["new"]
        assert catalog.origin("groq") == folder / "groq.json"
        assert catalog.origin("openai") == installed / "openai.json"
        assert catalog.origin("zzz") is None
        assert catalog.providers() == sorted(PROVIDERS)
        assert catalog.problems() == []

    def test_older_data_does_not_win(self, tmp_path: Path, installed: Path) -> None:
        refreshed(tmp_path / "catalog", "2019-01-01T00:00:00+00:00", groq=["old"])
        catalog = Catalog(tmp_path / "catalog", installed)
        assert [found["id"] for found in catalog.rows("groq")] == ["m0", "m1", "m2", "m3"]
        assert catalog.problems() == []

    @pytest.mark.parametrize("damage", ["changed", "missing"])
    def test_a_damaged_file_is_named_and_replaced_by_what_ships(
        self, tmp_path: Path, installed: Path, damage: str
    ) -> None:
        folder = refreshed(tmp_path / "catalog", groq=["new"], openai=["new"])
        file = folder / "groq.json"
        if damage == "changed":
            file.write_bytes(file.read_bytes().replace(b'"new"', b'"nex"'))
        else:
            file.unlink()
        catalog = Catalog(tmp_path / "catalog", installed)
        assert catalog.row("groq", "m1") is not None
        assert catalog.row("openai", "new") is not None
        (problem,) = catalog.problems()
        assert problem.startswith(f"{file}: {'damaged' if damage == 'changed' else 'missing'}")
        assert problem.endswith("Using the data that ships with the package. To fetch it anew: pi models refresh")
        assert catalog.origin("groq") == installed / "groq.json"

    @pytest.mark.parametrize(
        ("manifest", "fault"),
        [
            (None, "missing"),
            ("{", "not JSON"),
            ("[]", "expected an object, got list"),
            ({"schemaVersion": 99}, "expected schemaVersion 1, got 99"),
            ({"schemaVersion": 1, "files": []}, "'files' must be an object of file names and their SHA-256"),
            ({"schemaVersion": 1, "files": {}, "generatedAt": "soon"}, "'generatedAt' must be a time with a time zone"),
            ({"schemaVersion": 1, "files": {}, "generatedAt": "2026-01-01"}, "'generatedAt' must be a time with"),
            (
                {"schemaVersion": 1, "files": {}, "generatedAt": LONG_AGO, "times": {"groq": 1}},
                "'times.groq' must be a time with a time zone, got 1",
            ),
            ({"schemaVersion": 1, "files": {}, "generatedAt": LONG_AGO, "times": []}, "'times' must be an object"),
        ],
    )
    def test_a_damaged_manifest(self, tmp_path: Path, installed: Path, manifest: object, fault: str) -> None:
        file = refreshed(tmp_path / "catalog", groq=["new"]) / "manifest.json"
        if manifest is None:
            file.unlink()
        else:
            file.write_text(manifest if isinstance(manifest, str) else json.dumps(manifest))
        catalog = Catalog(tmp_path / "catalog", installed)
        assert catalog.row("groq", "m1") is not None
        (problem,) = catalog.problems()
        assert fault in problem
        assert problem.startswith(str(file.parent))

    @pytest.mark.parametrize("name", ["", "../../somewhere", "000001", "\xff"])
    def test_a_damaged_pointer(self, tmp_path: Path, installed: Path, name: str) -> None:
        refreshed(tmp_path / "catalog", groq=["new"])
        (tmp_path / "catalog" / "current").write_bytes(name.encode("latin-1"))
        catalog = Catalog(tmp_path / "catalog", installed)
        assert catalog.row("groq", "m1") is not None
        (problem,) = catalog.problems()
        assert problem.startswith(f"{tmp_path / 'catalog' / 'current'}: damaged")

    def test_nothing_that_ships(self, tmp_path: Path) -> None:
        catalog = Catalog(tmp_path / "none", tmp_path / "nothing")
        assert (catalog.providers(), catalog.rows()) == ([], [])
        (problem,) = catalog.problems()
        assert "ships with the package is missing. Install the package again" in problem

    def test_a_folder_that_cannot_be_read_is_named(self, tmp_path: Path, installed: Path) -> None:
        (tmp_path / "catalog").touch()
        catalog = Catalog(tmp_path / "catalog", installed)
        assert catalog.row("groq", "m1") is not None
        (problem,) = catalog.problems()
        assert problem.startswith(f"{tmp_path / 'catalog' / 'current'}: Not a directory. Using the data that ships")
        (fault,) = check(tmp_path / "catalog", installed).faults
        assert fault == f"{tmp_path / 'catalog' / 'current'}: Not a directory. Run: pi models refresh"

    def test_a_reader_who_began_goes_on_when_its_set_is_taken_away(self, tmp_path: Path, installed: Path) -> None:
        refreshed(tmp_path / "catalog", groq=["one"], openai=["one"])
        catalog = Catalog(tmp_path / "catalog", installed)
        assert catalog.row("groq", "one") is not None
        for number in range(3):
            refreshed(tmp_path / "catalog", groq=[f"new{number}"], openai=[f"new{number}"])
        assert catalog.row("openai", "new2") is not None
        assert catalog.row("groq", "new2") is not None
        assert catalog.problems() == []

    def test_the_agents_folder_is_where_refreshed_data_is(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path))
        refreshed(tmp_path / "catalog", "2999-01-01T00:00:00+00:00", groq=["new"])
        assert Catalog().row("groq", "new") is not None


class TestFaultsOfASet:
    def test_each_fault_is_named(self, tmp_path: Path) -> None:
        folder = tmp_path / "set"
        rows = {
            "a": {
                "ok": row("a", "ok"),
                "id": row("a", "other"),
                "address": row("a", "address", baseUrl=" "),
                "reasoning": row("a", "reasoning", reasoning="yes"),
                "input": row("a", "input", input=["image"]),
                "context": row("a", "context", contextWindow=-1),
                "tokens": row("a", "tokens", maxTokens=1.5),
                "price": row("a", "price", cost={"input": -1, "output": 1, "cacheRead": 0, "cacheWrite": 0}),
                "infinite": row("a", "infinite", cost={"input": 1e999, "output": 1, "cacheRead": 0, "cacheWrite": 0}),
                "level": row("a", "level", thinkingLevelMap={"extreme": "x", "high": 3}),
                "escape": row("a", "escape", name="\x1b[31mred"),
                "extra": row("a", "extra", colour="red"),
                "api": row("a", "api", api="morse"),
                "limits": row("a", "limits", inputLimits=3),
            },
            "b": {"ok": row("a", "ok")},
            "c": {},
        }
        write_set(folder, rows, generated_at=LONG_AGO, sources={})
        (folder / "c.json").unlink()
        (folder / "more.json").write_text("{}")
        faults = "\n".join(CatalogSet(folder).faults())
        for expected in (
            "more.json: not part of the set",
            "c.json: missing",
            "a/id: 'id' is 'other', but it is listed under 'id'",
            "a/address: 'baseUrl' must be a text",
            "a/reasoning: 'reasoning' must be true or false, got 'yes'",
            "a/input: 'input' must be text, or text and image",
            "a/context: 'contextWindow' must be a whole number of tokens up to a billion, or 0 for unknown, got -1",
            "a/tokens: 'maxTokens' must be",
            "a/price: 'cost.input' must be a price from 0 to 100000, got -1",
            "a/infinite: 'cost.input' must be a price from 0 to 100000, got inf",
            "a/level: 'thinkingLevelMap.extreme' is no thinking level",
            "a/level: 'thinkingLevelMap.high' must be a text or null, got 3",
            "a/escape: 'name' must be a text without control characters",
            "a/extra: 'colour' is no field of a model",
            "a/api: 'api' must be one of anthropic-messages, ",
            "a/limits: 'inputLimits' must be an object, got 3",
            "b/ok: 'provider' is 'a', but it is listed under 'b'",
        ):
            assert expected in faults
        assert "a/ok" not in faults
