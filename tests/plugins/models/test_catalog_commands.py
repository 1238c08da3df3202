"""``pi models``."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pi_plugins.models._catalog_set import CatalogSet
from pi_plugins.models._health import check
from pi_plugins.models._listing import nearest, price, search, table, tokens
from pi_plugins.models.catalog import SHIPPED, Catalog
from pi_plugins.models.catalog_commands import list_models, models
from pi_plugins.models.runtime import ModelRuntime

from .sources import SourceServer, entry, models_dev, openrouter


@dataclass(frozen=True)
class Done:
    """What a command printed and returned."""

    exit_code: int
    stdout: str
    stderr: str


class Home:
    """The agent's folder of a user, and what ``pi models`` does there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, data: object) -> Path:
        path = self.folder / name
        path.write_text(data if isinstance(data, str) else json.dumps(data))
        return path

    def run(self, *arguments: str) -> Done:
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            code = models.main(arguments, standalone_mode=False)
        return Done(code if isinstance(code, int) else 0, out.getvalue(), err.getvalue())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A user without keys, in a folder without a project."""
    for name in list(os.environ):
        if name.startswith("PI_") or name.endswith(("_API_KEY", "_TOKEN")):
            monkeypatch.delenv(name)
    folder, project = tmp_path / "agent", tmp_path / "project"
    folder.mkdir()
    project.mkdir()
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(folder))
    monkeypatch.chdir(project)
    return Home(folder)


@pytest.fixture
def source() -> Iterator[SourceServer]:
    made = SourceServer()
    yield made
    made.close()


LOCAL = {
    "providers": {
        "local": {
            "baseUrl": "http://127.0.0.1:9/v1",
            "api": "openai-completions",
            "apiKey": "k",
            "models": [{"id": "m1", "reasoning": True, "contextWindow": 32000, "maxTokens": 4000}],
        }
    }
}


class TestList:
    def test_with_a_key_only_what_it_opens_is_listed(self, home: Home) -> None:
        home.write("models.json", LOCAL)
        done = home.run("list")
        assert done.stdout.splitlines() == [
            "provider  model  context  max-out  thinking  images  $ in/out",
            "local     m1     32K      4K       yes       no      free    ",
        ]
        assert done.stderr == ""

    def test_without_any_key_all_are_listed_and_it_is_said(self, home: Home) -> None:
        done = home.run("list")
        assert len(done.stdout.splitlines()) == len(Catalog().rows()) + 1
        assert done.stderr == (
            "pi: No provider has a key, so all models are listed. Store one: pi auth login PROVIDER\n"
        )

    def test_all_and_available(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        assert home.run("list", "--available").exit_code == 1
        monkeypatch.setenv("GROQ_API_KEY", "k")
        groq = home.run("list", "--available")
        assert {line.split()[0] for line in groq.stdout.splitlines()[1:]} == {"groq"}
        assert home.run("list").stdout == groq.stdout
        assert len(home.run("list", "--all").stdout.splitlines()) == len(Catalog().rows()) + 1

    def test_one_provider(self, home: Home) -> None:
        done = home.run("list", "--provider", "groq")
        assert {line.split()[0] for line in done.stdout.splitlines()[1:]} == {"groq"}
        unknown = home.run("list", "--provider", "grok")
        assert (unknown.exit_code, unknown.stdout) == (1, "")
        assert unknown.stderr == "pi: There is no provider 'grok', did you mean 'groq'?\n"

    def test_json_has_every_field(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
        done = home.run("list", "--json", "--all", "gpt-5-mini")
        rows = json.loads(done.stdout)
        assert {row["provider"]: row["available"] for row in rows} == {
            "openai": True,
            "openrouter": False,
            "vercel-ai-gateway": False,
        }
        assert {**rows[0], "available": None} == {**(Catalog().row("openai", "gpt-5-mini") or {}), "available": None}
        assert "secret-key" not in done.stdout + done.stderr

    def test_a_text_that_means_nothing_suggests_the_nearest(self, home: Home) -> None:
        done = home.run("list", "clade-sonet-4-6-x")
        assert done.exit_code == 1
        assert "pi: No model matches 'clade-sonet-4-6-x', did you mean 'anthropic/claude-sonnet-4-6'?" in done.stderr

    def test_a_model_without_a_key_is_found_with_all(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GROQ_API_KEY", "k")
        done = home.run("list", "claude")
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr == "pi: No model whose provider has a key matches 'claude', but others do: --all\n"

    def test_problems_of_the_files_are_said(self, home: Home) -> None:
        path = home.write("models.json", '{"providers": {"x": {"models": [{"id": 3}]}}}')
        done = home.run("list", "gpt-5-mini")
        assert done.exit_code == 0
        assert f"pi: {path}:1" in done.stderr

    def test_models_of_a_project_count_when_it_is_trusted(self, home: Home) -> None:
        project = Path.cwd() / ".pi"
        project.mkdir()
        (project / "models.json").write_text(json.dumps(LOCAL))
        assert "local" not in home.run("list").stdout
        home.write("trust.json", {str(Path.cwd().resolve()): True})
        assert "local     m1" in home.run("list").stdout

    def test_other_commands_print_the_same_list(self, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
        runtime = ModelRuntime(agent_dir=home.folder, environ={"GROQ_API_KEY": "k"})
        assert list_models("gpt-oss-20b", runtime=runtime) == 0
        assert capsys.readouterr().out.splitlines()[1].startswith("groq      openai/gpt-oss-20b ")

    def test_it_starts_without_providers_and_without_building_models(self, home: Home) -> None:
        code = (
            "import sys\nsys.argv = ['pi', 'models', 'list', '--json']\nfrom pi_core.__main__ import main\n"
            "try: main()\nfinally: print(*sorted(sys.modules), file=sys.stderr)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert len(json.loads(done.stdout)) > 100
        loaded = set(done.stderr.split())
        assert "pi_plugins.models.catalog_commands" in loaded
        assert loaded.isdisjoint({"pydantic", "httpx", "asyncio", "pi_core.providers", "pi_core.build"})
        assert not [name for name in loaded if name.startswith("pi_plugins.providers")]


class TestSearch:
    ROWS = (
        {"provider": "openai", "id": "gpt-5-mini", "name": "GPT-5 Mini"},
        {"provider": "openai", "id": "gpt-5", "name": "GPT-5"},
        {"provider": "anthropic", "id": "claude-opus-4-7", "name": "Claude Opus 4.7"},
        {"provider": "zai", "id": "glm-5", "name": "GLM 5"},
    )

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("gpt-5", "gpt-5-mini gpt-5"),
            ("GPT mini", "gpt-5-mini"),
            ("openai/gpt-5-m", "gpt-5-mini"),
            ("opus 4.7", "claude-opus-4-7"),
            ("5", "gpt-5-mini gpt-5 glm-5"),
            ("gpt5", "gpt-5-mini gpt-5"),
            ("copus", "claude-opus-4-7"),
            ("gm5", "glm-5"),
            ("xyz", ""),
            ("oaiopus", ""),
        ],
    )
    def test_words_then_letters(self, text: str, found: str) -> None:
        assert [row["id"] for row in search(self.ROWS, text)] == found.split()

    def test_the_nearest(self) -> None:
        assert nearest(self.ROWS, "gtp-5-mini") == "openai/gpt-5-mini"
        assert nearest(self.ROWS, "OPENAI/GPT-5-MIN") == "openai/gpt-5-mini"
        assert nearest(self.ROWS, "qqqqqqqqqq") is None

    def test_the_table(self) -> None:
        assert table([]) == ["provider  model  context  max-out  thinking  images  $ in/out"]

    @pytest.mark.parametrize(
        ("count", "shown"),
        [
            (0, "?"),
            (-1, "?"),
            (999, "999"),
            (4096, "4.1K"),
            (32_000, "32K"),
            (131_072, "131K"),
            (999_999, "999K"),
            (1_000_000, "1M"),
            (1_048_576, "1.05M"),
            (10_000_000, "10M"),
        ],
    )
    def test_tokens(self, count: int, shown: str) -> None:
        assert tokens(count) == shown

    @pytest.mark.parametrize(
        ("cost", "shown"),
        [
            (None, "?"),
            ({"input": 0, "output": 0}, "free"),
            ({"input": 0.25, "output": 2}, "0.25/2"),
            ({"input": 0.000004, "output": 10.0}, "0/10"),
            ({"input": 1.25, "output": 10, "tiers": [{}]}, "1.25/10+"),
        ],
    )
    def test_prices(self, cost: dict[str, object] | None, shown: str) -> None:
        assert price(cost) == shown


class TestShow:
    def test_every_field_and_where_it_is_from(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
        path = home.write(
            "models.json",
            {"providers": {"openai": {"modelOverrides": {"gpt-5-mini": {"maxTokens": 5, "compat": {"x": 1}}}}}},
        )
        done = home.run("show", "openai/gpt-5-mini")
        lines = done.stdout.splitlines()
        assert lines[0] == f"# {SHIPPED / 'openai.json'}"
        assert "id                gpt-5-mini" in lines
        assert "levels            minimal, low, medium, high" in lines
        assert "key               OPENAI_API_KEY" in lines
        place = lines.index("maxTokens         5")
        assert lines[place - 1] == f"# {path}:1"
        assert f"# {path}:1, over {SHIPPED / 'openai.json'}" in lines
        assert "secret-key" not in done.stdout + done.stderr

    def test_json(self, home: Home) -> None:
        path = home.write("models.json", LOCAL)
        shown = json.loads(home.run("show", "local/m1", "--json").stdout)
        assert shown["model"]["contextWindow"] == 32000
        assert shown["levels"] == ["off", "minimal", "low", "medium", "high"]
        assert shown["key"] == f"{path}:1"
        assert shown["origins"]["contextWindow"] == f"{path}:1"
        assert shown["origins"]["cost"] == "default"
        assert shown["origins"].keys() == shown["model"].keys()

    def test_what_a_model_takes_over_is_from_the_model_it_extends(self, home: Home) -> None:
        entry = {"models": [{"id": "gpt-5-eu", "extends": "gpt-5", "maxTokens": 9, "baseUrl": "https://eu.example"}]}
        path = home.write("models.json", {"providers": {"openai": entry}})
        origins = json.loads(home.run("show", "openai/gpt-5-eu", "--json").stdout)["origins"]
        assert {key: origins[key] for key in ("cost", "api", "maxTokens", "name")} == {
            "cost": f"{path}:1 (extends gpt-5)",
            "api": f"{path}:1 (extends gpt-5)",
            "maxTokens": f"{path}:1",
            "name": "default",
        }

    def test_ids_with_slashes(self, home: Home) -> None:
        assert '"openrouter"' in home.run("show", "openrouter/openai/gpt-5-mini", "--json").stdout

    @pytest.mark.parametrize("name", ["openai/gpt-5-minni", "opnai/gpt-5-mini"])
    def test_an_unknown_one_suggests_the_nearest(self, home: Home, name: str) -> None:
        with pytest.raises(Exception, match=f"There is no model '{name}', did you mean 'openai/gpt-5-mini'"):
            home.run("show", name)


class TestRefresh:
    def settings(self, home: Home, **sources: str | None) -> None:
        home.write("settings.json", {"modelSources": {"modelsDev": None, "openrouter": None, **sources}})

    def test_what_came_is_said_on_stderr(self, home: Home, source: SourceServer) -> None:
        self.settings(home, modelsDev=source.address)
        source.body = models_dev(count=100)
        source.body["openai"]["models"]["bad"] = entry(limit=None)
        done = home.run("refresh", "--allow-drop")
        assert (done.exit_code, done.stdout) == (0, "")
        asking, fault, report = done.stderr.splitlines()
        assert asking == f"models.dev: asking {source.address}"
        assert fault == "models.dev: not used: openai/bad: expected an object as 'limit', got NoneType"
        assert report.startswith(f"models.dev: {len(json.dumps(source.body)):,} bytes, 2700 models: 2700 new, 906 gone")
        assert len(Catalog().rows("groq")) == 100

    def test_nothing_new(self, home: Home, source: SourceServer) -> None:
        self.settings(home, modelsDev=source.address)
        source.body, source.etag = models_dev(), '"one"'
        home.run("refresh", "--allow-drop")
        assert "models.dev: nothing new, 108 models" in home.run("refresh").stderr

    @pytest.mark.parametrize(("arguments", "code"), [((), 0), (("--strict",), 1)])
    def test_a_source_that_fails(self, home: Home, source: SourceServer, arguments: tuple[str, ...], code: int) -> None:
        self.settings(home, modelsDev="http://127.0.0.1:1/", openrouter=source.address)
        source.body = openrouter(*({"id": f"m/{number}"} for number in range(200)))
        done = home.run("refresh", *arguments)
        assert done.exit_code == code
        assert "models.dev: failed, its data of before stays: http://127.0.0.1:1/: ConnectError" in done.stderr
        assert len(Catalog().rows("openrouter")) == 200
        assert len(Catalog().rows("openai")) > 10

    def test_no_source_at_all_could_be_asked(self, home: Home) -> None:
        self.settings(home, modelsDev="http://127.0.0.1:1/")
        assert home.run("refresh").exit_code == 1

    def test_the_time_of_an_answer(self, home: Home, source: SourceServer) -> None:
        self.settings(home, modelsDev=source.address)
        released = threading.Event()
        source.before = released.wait
        try:
            done = home.run("refresh", "--timeout", "0.2")
        finally:
            released.set()
        assert done.exit_code == 1
        assert "no complete answer within 0.2 s" in done.stderr

    @pytest.mark.parametrize(("arguments", "code"), [((), 0), (("--strict",), 1)])
    def test_offline_nothing_is_asked(
        self,
        home: Home,
        source: SourceServer,
        monkeypatch: pytest.MonkeyPatch,
        arguments: tuple[str, ...],
        code: int,
    ) -> None:
        self.settings(home, modelsDev=source.address)
        monkeypatch.setenv("PI_OFFLINE", "1")
        done = home.run("refresh", *arguments)
        assert (done.exit_code, source.asked) == (code, [])
        assert done.stderr == "pi: Nothing was fetched: requests are switched off (offline)\n"

    def test_no_source_is_named(self, home: Home) -> None:
        self.settings(home)
        with pytest.raises(Exception, match="the setting modelSources names no source"):
            home.run("refresh")

    def test_what_ships_is_never_written(self, home: Home, source: SourceServer) -> None:
        before = {path: path.stat().st_mtime_ns for path in SHIPPED.iterdir()}
        self.settings(home, modelsDev=source.address)
        source.body = models_dev()
        home.run("refresh", "--allow-drop")
        assert {path: path.stat().st_mtime_ns for path in SHIPPED.iterdir()} == before


class TestCheck:
    def refreshed(self, home: Home, source: SourceServer) -> Path:
        TestRefresh().settings(home, modelsDev=source.address)
        source.body = models_dev()
        home.run("refresh", "--allow-drop")
        (folder,) = (home.folder / "catalog" / "sets").iterdir()
        return folder

    def test_what_is_in_order_is_said(self, home: Home, source: SourceServer) -> None:
        folder = self.refreshed(home, source)
        done = home.run("check")
        assert done.exit_code == 0
        shipped, refreshed = done.stdout.splitlines()
        assert shipped.startswith("shipped: 27 providers, 906 models of ")
        assert refreshed.startswith("refreshed: 27 providers, 108 models of ")
        assert refreshed.endswith(f", in {folder}")

    def test_a_damaged_file_is_named(self, home: Home, source: SourceServer) -> None:
        folder = self.refreshed(home, source)
        (folder / "groq.json").write_text("{}")
        (folder / "zai.json").unlink()
        done = home.run("check")
        assert done.exit_code == 1
        assert f"{folder / 'groq.json'}: damaged: its SHA-256 is not the one in manifest.json" in done.stdout
        assert f"{folder / 'zai.json'}: missing. Run: pi models refresh" in done.stdout

    @pytest.mark.parametrize("damage", ["pointer", "manifest", "folder"])
    def test_a_set_that_cannot_be_opened(self, home: Home, source: SourceServer, damage: str) -> None:
        folder = self.refreshed(home, source)
        if damage == "pointer":
            (home.folder / "catalog" / "current").write_text("?")
        elif damage == "manifest":
            (folder / "manifest.json").write_text("{")
        else:
            folder.rename(folder.with_name("elsewhere"))
        done = home.run("check")
        assert done.exit_code == 1
        assert "Run: pi models refresh" in done.stdout

    def test_data_that_is_old(self, home: Home, source: SourceServer) -> None:
        self.refreshed(home, source)
        made = Catalog().directory
        now = check(made).lines
        assert len(now) == 2
        later = check(made, now=datetime.now(UTC) + timedelta(days=31, hours=1))
        assert later.faults == []
        assert later.notes == ["The data of all providers is 31 days old. Run: pi models refresh"]

    def test_data_of_one_source_that_is_old(self, home: Home, source: SourceServer) -> None:
        TestRefresh().settings(home, modelsDev="http://127.0.0.1:1/", openrouter=source.address)
        source.body = openrouter(*({"id": f"m/{number}"} for number in range(200)))
        home.run("refresh")
        shipped = CatalogSet(SHIPPED).generated_at
        (note,) = check(Catalog().directory, now=shipped + timedelta(days=40)).notes
        assert "openrouter" not in note
        assert "groq" in note
        assert note.endswith("is 40 days old. Run: pi models refresh")

    def test_refreshed_data_of_another_version(self, home: Home, source: SourceServer) -> None:
        folder = self.refreshed(home, source)
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["sources"]["models.dev"]["rules"] = "other"
        (folder / "manifest.json").write_text(json.dumps(manifest))
        assert check(Catalog().directory).notes == [
            "The refreshed data was made by another version of the package. Run: pi models refresh"
        ]

    def test_refreshed_data_that_is_older_than_what_ships(self, home: Home, source: SourceServer) -> None:
        folder = self.refreshed(home, source)
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["generatedAt"] = "2020-01-01T00:00:00+00:00"
        (folder / "manifest.json").write_text(json.dumps(manifest))
        done = home.run("check")
        assert done.exit_code == 1
        assert "The refreshed data is older than what ships, and not used" in done.stdout
        (home.folder / "catalog" / "current").unlink()
        assert home.run("check", "--ignore-age").exit_code == 0

    def test_what_ships_is_missing(self, home: Home, tmp_path: Path) -> None:
        health = check(home.folder / "catalog", tmp_path / "nothing")
        assert health.faults == [f"{tmp_path / 'nothing' / 'manifest.json'}: missing. Install the package again"]
