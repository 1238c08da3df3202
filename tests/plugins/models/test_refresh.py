"""``refresh``: what it takes over, what it refuses, and what readers see while it goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pi_core import ConfigError
from pi_plugins.models import _fetch
from pi_plugins.models._catalog_set import CatalogError
from pi_plugins.models.catalog import Catalog
from pi_plugins.models.refresh import SourceReport, refresh

from .sources import MODELS, SourceServer, entry, models_dev, openrouter, shipped


@pytest.fixture
def source() -> Iterator[SourceServer]:
    made = SourceServer()
    made.body = models_dev(context=2000)
    yield made
    made.close()


@pytest.fixture
def router() -> Iterator[SourceServer]:
    made = SourceServer()
    made.body = openrouter({"id": "a/one"}, {"id": "a/two"})
    yield made
    made.close()


class Place:
    """A folder of refreshed data, and what ships."""

    def __init__(self, folder: Path) -> None:
        self.directory = folder / "catalog"
        self.installed = shipped(folder / "installed")

    def refresh(self, source: SourceServer, router: SourceServer | None = None, **options: Any) -> list[SourceReport]:
        addresses = {"models.dev": source.address} | ({} if router is None else {"openrouter": router.address})
        return refresh(self.directory, addresses, installed=self.installed, **{"seconds": 30, **options})

    def contexts(self) -> set[int]:
        return {row["contextWindow"] for row in Catalog(self.directory, self.installed).rows()}

    def left_over(self) -> list[str]:
        """What is there beside the lock, the pointer, and at most two sets."""
        sets = sorted(path.name for path in (self.directory / "sets").iterdir())
        return [
            *(path.name for path in self.directory.iterdir() if path.name not in (".lock", "current", "sets")),
            *sets[:-2],
        ]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


class TestWhatIsTakenOver:
    def test_new_data_replaces_the_old(self, place: Place, source: SourceServer) -> None:
        (report,) = place.refresh(source)
        assert place.contexts() == {2000}
        assert (report.failed, report.unchanged, report.added, report.removed) == (False, False, [], [])
        assert len(report.changed) == report.models == MODELS * len(models_dev())
        assert report.size == len(json.dumps(source.body))

    def test_what_is_new_gone_and_changed_is_said(self, place: Place, source: SourceServer) -> None:
        source.body = models_dev()
        models = source.body["groq"]["models"]
        models["m4"] = models.pop("m0")
        models["m1"] = entry(reasoning=True)
        (report,) = place.refresh(source)
        assert (report.added, report.removed, report.changed) == (["groq/m4"], ["groq/m0"], ["groq/m1"])

    def test_openrouter_tells_of_its_own_models(self, place: Place, source: SourceServer, router: SourceServer) -> None:
        place.refresh(source, router, allow_drop=True)
        rows = Catalog(place.directory, place.installed).rows("openrouter")
        assert [row["id"] for row in rows] == ["a/one", "a/two"]
        assert rows[0] == {
            "id": "a/one",
            "name": "Maker: Model",
            "api": "openai-completions",
            "provider": "openrouter",
            "baseUrl": "https://openrouter.ai/api/v1",
            "reasoning": True,
            "input": ["text", "image"],
            "cost": {"input": 0.25, "output": 2.0, "cacheRead": 0.025, "cacheWrite": 0.25},
            "contextWindow": 200_000,
            "maxTokens": 64_000,
            "compat": {"supportsStore": False},
        }

    @pytest.mark.parametrize(
        "change",
        [
            {"supported_parameters": ["temperature"]},
            {"architecture": {"input_modalities": ["text"], "output_modalities": ["text", "image"]}},
            {"pricing": {"prompt": "much"}},
            {"id": "a/\x1b[2J"},
            {"id": None},
            {"context_length": -1},
        ],
    )
    def test_models_of_openrouter_that_cannot_be_used_are_left_out(
        self, place: Place, source: SourceServer, router: SourceServer, change: dict[str, Any]
    ) -> None:
        router.body["data"] += openrouter({"id": "a/bad", **change})["data"]
        place.refresh(source, router)
        rows = Catalog(place.directory, place.installed).rows("openrouter")
        assert [row["id"] for row in rows] == ["a/one", "a/two"]

    def test_a_router_without_a_price_of_its_own_has_none(
        self, place: Place, source: SourceServer, router: SourceServer
    ) -> None:
        router.body = openrouter(
            {"id": "openrouter/auto", "pricing": {"prompt": "-1", "completion": "-1"}}, {"id": "b"}
        )
        place.refresh(source, router)
        row = Catalog(place.directory, place.installed).row("openrouter", "openrouter/auto")
        assert row is not None
        assert "cost" not in row

    @pytest.mark.parametrize(
        "change",
        [
            {"tool_call": False},
            {"status": "deprecated"},
            {"modalities": {"input": ["text"], "output": ["text", "audio"]}},
            {"modalities": {"input": ["text"], "output": ["image"]}},
        ],
    )
    def test_models_that_an_agent_cannot_use_are_left_out_without_a_word(
        self, place: Place, source: SourceServer, change: dict[str, Any]
    ) -> None:
        source.body["groq"]["models"]["bad"] = entry(**change)
        (report,) = place.refresh(source)
        assert Catalog(place.directory, place.installed).row("groq", "bad") is None
        assert not report.failed

    @pytest.mark.parametrize(
        ("bad", "fault"),
        [
            ([], "groq/bad: expected an object as the entry, got list"),
            (entry(limit=None), "groq/bad: expected an object as 'limit', got NoneType"),
            (entry(limit={"context": "big"}), "groq/bad: 'contextWindow' must be a whole number of tokens"),
            (entry(cost={"input": -2, "output": 1}), "groq/bad: 'cost.input' must be a price from 0 to 100000, got -2"),
            (entry(cost={"input": 1, "output": 2e6}), "groq/bad: 'cost.output' must be a price from 0 to 100000"),
            (entry(limit={"context": 10**12}), "groq/bad: 'contextWindow' must be a whole number of tokens up to"),
            (entry(cost={"tiers": [{"tier": {"type": "hour"}}]}), "groq/bad: a price depends on 'hour'"),
            (entry(reasoning="maybe"), "groq/bad: 'reasoning' must be true or false, got 'maybe'"),
        ],
    )
    def test_a_broken_entry_costs_only_itself_and_is_reported(
        self, place: Place, source: SourceServer, bad: object, fault: str
    ) -> None:
        source.body["groq"]["models"]["bad"] = bad
        (report,) = place.refresh(source)
        catalog = Catalog(place.directory, place.installed)
        assert catalog.row("groq", "bad") is None
        assert len(catalog.rows("groq")) == MODELS
        assert report.faults[0].startswith(fault)
        assert {text.partition(":")[0] for text in report.faults} == {"groq/bad"}

    def test_prices_in_tiers_and_of_cached_tokens(self, place: Place, source: SourceServer) -> None:
        tier = {"input": 3, "output": 9, "tier": {"type": "context", "size": 200_000}}
        source.body["groq"]["models"]["m0"] = entry(cost={"input": 1, "output": 4, "cache_read": 0.5, "tiers": [tier]})
        place.refresh(source)
        row = Catalog(place.directory, place.installed).row("groq", "m0")
        assert row is not None
        assert row["cost"] == {
            "input": 1,
            "output": 4,
            "cacheRead": 0.5,
            "cacheWrite": 1,
            "tiers": [{"inputTokensAbove": 200_000, "input": 3, "output": 9, "cacheRead": 3, "cacheWrite": 3}],
        }


class TestASourceThatFails:
    def kept(self, place: Place, source: SourceServer, **options: Any) -> str:
        """Refresh from a good state, see that it stays, and return the error."""
        good, source.body = source.body, models_dev(context=1500)
        place.refresh(source)
        source.body, source.status = good, 200
        reports = self._failing(place, source, options)
        assert place.contexts() == {1500}
        assert place.left_over() == []
        return reports[0].error

    def _failing(self, place: Place, source: SourceServer, options: dict[str, Any]) -> list[SourceReport]:
        for name, value in options.items():
            setattr(source, name, value)
        return place.refresh(source, seconds=5)

    @pytest.mark.parametrize("status", [204, 301, 403, 404, 500, 503])
    def test_another_status(self, place: Place, source: SourceServer, status: int) -> None:
        error = self.kept(place, source, status=status, body=b"")
        assert source.address in error

    @pytest.mark.parametrize(
        ("body", "fault"),
        [
            (b"<html>", "not JSON"),
            (b"", "not JSON"),
            (b"[" * 100_000, "not JSON"),
            (b"\xff\xfe", "not JSON"),
            (b"null", "expected an object as the catalog, got NoneType"),
            (b"[]", "expected an object as the catalog, got list"),
            (b'{"openai": []}', "expected an object as 'openai', got list"),
            (b"{}", "no model in it can be used"),
        ],
    )
    def test_garbage(self, place: Place, source: SourceServer, body: bytes, fault: str) -> None:
        assert fault in self.kept(place, source, body=body)

    def test_an_answer_without_end(self, place: Place, source: SourceServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_fetch, "SIZE_LIMIT", 1024 * 1024)
        assert self.kept(place, source, body=b" " * (1024 * 1024 + 1)).endswith("more than 1 MB")

    def test_a_server_that_is_not_there(self, place: Place, source: SourceServer) -> None:
        place.refresh(source)
        reports = refresh(
            place.directory, {"models.dev": "http://127.0.0.1:1/", "openrouter": "nonsense"}, installed=place.installed
        )
        assert place.contexts() == {2000}
        assert [report.failed for report in reports] == [True, True]
        assert "http://127.0.0.1:1/: ConnectError" in reports[0].error
        assert "nonsense" in reports[1].error

    def test_no_password_is_said_or_kept(self, place: Place, source: SourceServer) -> None:
        address = source.address.replace("http://", "http://me:secret@")
        (report,) = refresh(place.directory, {"models.dev": address}, installed=place.installed)
        assert source.asked[0]["authorization"].startswith("Basic ")
        assert "***@127.0.0.1" in report.address
        source.status = 500
        (failed,) = refresh(place.directory, {"models.dev": address}, installed=place.installed)
        kept = [path.read_text() for path in place.directory.rglob("*.json")]
        assert not [text for text in (*kept, str(report), str(failed)) if "secret" in text]

    def test_a_proxy_that_is_none(self, place: Place, source: SourceServer) -> None:
        with pytest.raises(ConfigError, match=r"^The proxy cannot be used: expected an address"):
            place.refresh(source, proxy="me:secret@nowhere")

    def test_a_slow_answer(self, place: Place, source: SourceServer) -> None:
        released = threading.Event()
        source.before = released.wait
        try:
            (report,) = place.refresh(source, seconds=0.2)
        finally:
            released.set()
        assert report.error == f"{source.address}: no complete answer within 0.2 s"
        assert place.contexts() == {1000}

    def test_the_other_source_is_taken_over(self, place: Place, source: SourceServer, router: SourceServer) -> None:
        source.status = 500
        reports = place.refresh(source, router)
        assert [(report.name, report.failed) for report in reports] == [("models.dev", True), ("openrouter", False)]
        catalog = Catalog(place.directory, place.installed)
        assert [row["id"] for row in catalog.rows("openrouter")] == ["a/one", "a/two"]
        assert len(catalog.rows("groq")) == MODELS

    def test_a_provider_that_loses_most_of_its_models_keeps_them(self, place: Place, source: SourceServer) -> None:
        source.body["groq"]["models"] = {"m0": entry()}
        del source.body["openai"]
        (report,) = place.refresh(source)
        catalog = Catalog(place.directory, place.installed)
        assert len(catalog.rows("groq")) == MODELS
        assert len(catalog.rows("openai")) == MODELS
        assert catalog.rows("xai")[0]["contextWindow"] == 2000
        assert sorted(text.partition(":")[0] for text in report.faults) == ["groq", "openai"]
        assert any("1 models instead of 4, so the old ones stay" in text for text in report.faults)

    def test_what_stays_as_it_is_does_not_become_newer(self, place: Place, source: SourceServer) -> None:
        source.body["groq"]["models"] = {"m0": entry()}
        place.refresh(source)
        shipped(place.installed.with_name("newer"), models_dev(context=7), "2025-01-01T00:00:00+00:00")
        catalog = Catalog(place.directory, place.installed.with_name("newer"))
        assert {row["contextWindow"] for row in catalog.rows("groq")} == {7}
        assert {row["contextWindow"] for row in catalog.rows("openai")} == {2000}

    def test_a_loss_can_be_accepted(self, place: Place, source: SourceServer) -> None:
        source.body["groq"]["models"] = {"m0": entry()}
        (report,) = place.refresh(source, allow_drop=True)
        assert len(Catalog(place.directory, place.installed).rows("groq")) == 1
        assert report.removed == ["groq/m1", "groq/m2", "groq/m3"]

    def test_a_folder_that_cannot_be_written(self, place: Place, source: SourceServer) -> None:
        place.directory.write_text("a file")
        with pytest.raises(ConfigError, match="File exists"):
            place.refresh(source)
        assert source.asked == []


class TestAskingAgain:
    def test_a_source_with_nothing_new_keeps_its_models_and_counts_as_fresh(
        self, place: Place, source: SourceServer
    ) -> None:
        source.etag = '"one"'
        place.refresh(source)
        (report,) = place.refresh(source)
        assert [asked.get("if-none-match") for asked in source.asked] == [None, '"one"']
        assert (report.unchanged, report.failed, report.size) == (True, False, 0)
        assert place.contexts() == {2000}

    def test_it_is_asked_for_all_when_its_data_is_not_in_use(self, place: Place, source: SourceServer) -> None:
        source.etag = '"one"'
        place.refresh(source)
        (file,) = place.directory.glob("sets/*/groq.json")
        file.write_text("damaged")
        (report,) = place.refresh(source)
        assert "if-none-match" not in source.asked[1]
        assert not report.unchanged
        assert Catalog(place.directory, place.installed).problems() == []

    def test_it_is_asked_for_all_after_something_of_it_was_refused(self, place: Place, source: SourceServer) -> None:
        source.etag = '"one"'
        source.body["groq"]["models"]["bad"] = []
        place.refresh(source)
        place.refresh(source)
        assert "if-none-match" not in source.asked[1]

    def test_another_address_is_asked_for_all(self, place: Place, source: SourceServer) -> None:
        source.etag = '"one"'
        place.refresh(source)
        refresh(place.directory, {"models.dev": f"{source.address}?other"}, installed=place.installed)
        assert "if-none-match" not in source.asked[1]


CHILD = textwrap.dedent(
    """
    import os, pathlib, signal, sys
    from pi_plugins.models.refresh import refresh

    address, directory, installed, where = sys.argv[1:]

    def step(name):
        if name == where:
            os.kill(os.getpid(), signal.SIGKILL)

    refresh(pathlib.Path(directory), {"models.dev": address}, installed=pathlib.Path(installed), step=step)
    """
)
STEPS = [
    "locked",
    "cleaned",
    "fetched",
    "wrote alibaba.json",
    "wrote openai.json",
    "wrote manifest.json",
    "checked before",
    "named",
    "current",
    "checked after",
    "removed",
]


class TestInterruptions:
    def test_the_steps_are_all_there_are(self, place: Place, source: SourceServer) -> None:
        steps: list[str] = []
        place.refresh(source, step=steps.append)
        assert [step for step in STEPS if step in steps] == STEPS
        assert {step for step in steps if not step.startswith("wrote")} <= set(STEPS)

    @pytest.mark.skipif(os.name == "nt", reason="no SIGKILL")
    @pytest.mark.parametrize("step", STEPS)
    def test_killed_at_any_step_readers_find_one_whole_set(self, place: Place, source: SourceServer, step: str) -> None:
        for context in (1500, 1600, 1700):
            source.body = models_dev(context)
            place.refresh(source)
        source.body = models_dev(context=2000)
        killed = subprocess.run(
            [sys.executable, "-c", CHILD, source.address, place.directory, place.installed, step],
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        new = STEPS.index(step) >= STEPS.index("current")
        assert place.contexts() == ({2000} if new else {1700})
        assert Catalog(place.directory, place.installed).problems() == []
        source.body = models_dev(context=3000)
        place.refresh(source)
        assert place.contexts() == {3000}
        assert place.left_over() == []

    @pytest.mark.parametrize("first", [True, False])
    def test_a_set_that_is_damaged_on_its_way_is_taken_back(
        self, place: Place, source: SourceServer, first: bool
    ) -> None:
        if not first:
            source.body = models_dev(context=1500)
            place.refresh(source)
            source.body = models_dev(context=2000)

        def damage(step: str) -> None:
            if step == "current":
                newest = sorted((place.directory / "sets").iterdir())[-1]
                (newest / "groq.json").write_text("{}")

        with pytest.raises(CatalogError, match=r"groq\.json: damaged"):
            place.refresh(source, step=damage)
        assert place.contexts() == ({1000} if first else {1500})
        assert Catalog(place.directory, place.installed).problems() == []
        assert place.left_over() == []

    def test_a_set_that_is_damaged_before_the_swap_is_not_used(self, place: Place, source: SourceServer) -> None:
        def damage(step: str) -> None:
            if step == "wrote manifest.json":
                (staged,) = place.directory.glob(".staging-*")
                (staged / "groq.json").unlink()

        with pytest.raises(CatalogError, match=r"groq\.json: missing"):
            place.refresh(source, step=damage)
        assert place.contexts() == {1000}
        assert [path.name for path in place.directory.iterdir()] == [".lock"]

    def test_damaged_data_is_replaced(self, place: Place, source: SourceServer) -> None:
        place.refresh(source)
        (place.directory / "current").write_text("nonsense")
        place.refresh(source)
        assert Catalog(place.directory, place.installed).problems() == []
        assert place.contexts() == {2000}


class TestAtOnce:
    def test_two_refreshes_do_not_meet(self, place: Place, source: SourceServer) -> None:
        entered, released = threading.Event(), threading.Event()

        def hold() -> None:
            entered.set()
            released.wait()

        source.before = hold
        first = threading.Thread(target=place.refresh, args=(source,))
        first.start()
        try:
            assert entered.wait(30)
            with pytest.raises(ConfigError, match=r"another refresh is going on, and did not end within 0\.1 s"):
                place.refresh(source, seconds=0.1)
            assert len(source.asked) == 1
        finally:
            released.set()
            first.join()
        assert place.contexts() == {2000}

    def test_many_processes_at_once_leave_one_whole_set(self, place: Place, source: SourceServer) -> None:
        arguments = [source.address, str(place.directory), str(place.installed), ""]
        running = [
            subprocess.Popen([sys.executable, "-c", CHILD, *arguments], stderr=subprocess.PIPE) for _ in range(3)
        ]
        outcomes = [(process.communicate(timeout=60)[1], process.returncode) for process in running]
        assert outcomes == [(b"", 0)] * 3
        assert place.contexts() == {2000}
        assert place.left_over() == []

    def test_readers_see_only_whole_sets_during_fifty_refreshes(self, place: Place, source: SourceServer) -> None:
        done, seen, torn = threading.Event(), set(), []

        def read() -> None:
            while not done.is_set():
                catalog = Catalog(place.directory, place.installed)
                contexts = {row["contextWindow"] for row in catalog.rows()}
                seen.update(contexts)
                if len(contexts) != 1 or catalog.problems():
                    torn.append((contexts, catalog.problems()))

        reader = threading.Thread(target=read)
        reader.start()
        try:
            for number in range(50):
                source.body = models_dev(context=5000 + number)
                place.refresh(source)
        finally:
            done.set()
            reader.join()
        assert torn == []
        assert len(seen) > 2
        assert place.contexts() == {5049}
