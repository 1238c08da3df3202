"""The script that makes the data that ships."""

from __future__ import annotations

from pathlib import Path

from pi_plugins.models._catalog_set import CatalogSet
from pi_plugins.models.bundle import bundle, installed_source, newest_change
from pi_plugins.models.catalog import SHIPPED, Catalog

from .sources import entry, models_dev


def test_what_ships_is_what_the_script_makes(tmp_path: Path) -> None:
    raw, version = installed_source()
    assert version == CatalogSet(SHIPPED).sources["models.dev"]["version"], "the extra dev names another models-dev"
    assert bundle(tmp_path / "made", raw, version) == []
    made = {path.name: path.read_bytes() for path in (tmp_path / "made").iterdir()}
    assert made == {path.name: path.read_bytes() for path in SHIPPED.iterdir()}


def test_it_replaces_what_is_there_and_says_what_it_left_out(tmp_path: Path) -> None:
    raw = models_dev()
    for provider in raw.values():
        for model in provider["models"].values():
            model["last_updated"] = "2026-01-02"
    raw["xai"]["models"]["m1"] = entry(last_updated="2026-02")
    raw["groq"]["models"]["bad"] = entry(limit={"context": -1}, last_updated="2026-01-05")
    (tmp_path / "made.new").mkdir()
    for _ in range(2):
        (fault,) = bundle(tmp_path / "made", raw, "1.2")
        assert fault.startswith("groq/bad: 'contextWindow' must be")
    made = CatalogSet(tmp_path / "made")
    assert made.faults() == []
    assert made.generated_at.isoformat() == newest_change(raw) == "2026-01-05T00:00:00+00:00"
    assert made.sources == {"models.dev": {"package": "models-dev", "version": "1.2"}}
    assert len(Catalog(tmp_path / "none", tmp_path / "made").rows("groq")) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
