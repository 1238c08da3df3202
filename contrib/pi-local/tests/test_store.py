from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pi_local.store import Store, open_store, shipped_templates, write_atomically

from pi_core import ConfigError


def test_a_file_stays_where_it_is(store: Store, gguf: Path) -> None:
    model = store.add(gguf)
    assert (model.name, model.path, model.owned, model.template) == ("some-model.q4", gguf, False, None)
    assert model.size == gguf.stat().st_size
    assert store.get("some-model.q4") == model
    assert store.template_path(model) is None
    assert not store.weights.exists()

    assert store.remove("some-model.q4") == model
    assert gguf.exists()
    assert store.models() == []


def test_a_copy_goes_with_its_record(store: Store, gguf: Path) -> None:
    model = store.add(gguf, name="mine", copy=True)
    assert model.path == store.weights / "mine.gguf"
    assert model.path.read_bytes() == gguf.read_bytes()
    store.remove("mine")
    assert list(store.weights.iterdir()) == []
    assert gguf.exists()


def test_a_relative_path_is_made_absolute(store: Store, gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(gguf.parent)
    assert store.add(Path(gguf.name)).path == gguf


def test_templates_are_copied_or_shipped(store: Store, gguf: Path, tmp_path: Path) -> None:
    given = tmp_path / "mine.jinja"
    given.write_text("{{ messages }}", encoding="utf-8")
    own = store.add(gguf, name="chatml-fence", template=given)
    given.unlink()
    path = store.template_path(own)
    assert path is not None
    assert path.read_text(encoding="utf-8") == "{{ messages }}"

    shipped = store.template_path(store.add(gguf, name="other", template="chatml-fence"))
    assert shipped is not None
    assert "im_start" in shipped.read_text(encoding="utf-8")

    store.remove("chatml-fence")
    assert not path.exists()
    store.remove("other")
    assert shipped.exists()
    assert shipped_templates() == ["chatml-fence"]


def test_a_missing_template_adds_nothing(store: Store, gguf: Path) -> None:
    with pytest.raises(ConfigError, match=r"Cannot read the template nope.jinja.*shipped one: chatml-fence"):
        store.add(gguf, template="nope.jinja")
    assert store.models() == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../up", "cannot be a model name"),
        ("Big", "cannot be a model name"),
        ("", "cannot be a model name"),
        ("a" * 65, "cannot be a model name"),
        ("qwen2.5-coder-1.5b", "is what 'pi local pull' fetches"),
        ("taken", "There is a model 'taken' already"),
    ],
)
def test_names_that_are_refused(store: Store, gguf: Path, name: str, reason: str) -> None:
    store.add(gguf, name="taken")
    with pytest.raises(ConfigError, match=reason):
        store.add(gguf, name=name)
    assert [model.name for model in store.models()] == ["taken"]


def test_files_that_are_refused(store: Store, tmp_path: Path) -> None:
    other = tmp_path / "model.bin"
    other.write_bytes(b"PK\x03\x04")
    with pytest.raises(ConfigError, match="is no GGUF file"):
        store.add(other)
    with pytest.raises(ConfigError, match=r"Cannot read .*missing.gguf: No such file"):
        store.add(tmp_path / "missing.gguf")
    nameless = tmp_path / "___.gguf"
    nameless.write_bytes(b"GGUF")
    with pytest.raises(ConfigError, match="give one with --name"):
        store.add(nameless)


def test_the_first_model_is_the_default_until_another_is_chosen(store: Store, gguf: Path) -> None:
    assert store.default() is None
    for name in ("one", "two", "three"):
        store.add(gguf, name=name)
    assert [model.name for model in store.models() if model.default] == ["one"]
    store.set_default("two")
    assert [model.name for model in store.models() if model.default] == ["two"]
    store.remove("two")
    chosen = store.default()
    assert chosen is not None
    assert chosen.name == "one"
    with pytest.raises(ConfigError, match=r"There is no model 'nope'\. Models: one, three"):
        store.set_default("nope")
    gguf.unlink()
    assert store.default() is None


def test_removing_an_unfinished_fetch(store: Store) -> None:
    unfinished = store.pull_dir("qwen2.5-coder-1.5b")
    unfinished.mkdir(parents=True)
    assert store.remove("qwen2.5-coder-1.5b") is None
    assert not unfinished.exists()
    with pytest.raises(ConfigError, match=r"There is no model 'qwen2\.5-coder-1\.5b'\. No model is stored"):
        store.remove("qwen2.5-coder-1.5b")


def test_a_name_never_leads_out_of_the_cache(store: Store, tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    with pytest.raises(ConfigError, match="There is no model"):
        store.remove("../../beside")
    assert beside.is_dir()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"models": [{}]}', '{"models": [{"name": "x", "path": 3}]}'])
def test_a_damaged_index_is_named(store: Store, text: str) -> None:
    store.root.mkdir()
    (store.root / "models.json").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"models.json is damaged .* delete it, then add or pull again"):
        store.models()


def test_processes_that_add_at_the_same_time_lose_nothing(store: Store, gguf: Path) -> None:
    code = """
import sys
from pathlib import Path
from pi_local.store import open_store
for number in range(5):
    open_store().add(Path(sys.argv[1]), name=f"{sys.argv[2]}{number}")
"""
    running = [subprocess.Popen([sys.executable, "-c", code, str(gguf), letter]) for letter in "abc"]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert sorted(model.name for model in store.models()) == sorted(
        f"{letter}{n}" for letter in "abc" for n in range(5)
    )
    assert sum(model.default for model in store.models()) == 1


def test_where_the_store_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PI_LOCAL_DIR", str(tmp_path / "here"))
    assert open_store().root == tmp_path / "here"
    monkeypatch.delenv("PI_LOCAL_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_store().root.name == "pi-local"
    assert open_store().root.is_relative_to(tmp_path)


def test_a_write_that_fails_leaves_the_old_text(tmp_path: Path) -> None:
    path = tmp_path / "index.json"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "\ud800")
    assert path.read_text(encoding="utf-8") == "old"
    assert os.listdir(tmp_path) == ["index.json"]
