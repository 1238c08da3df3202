"""Files that several processes change."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from pi_core import ConfigError
from pi_plugins.config import LockedJson, json_file, read_json, replace_file

WRITER = """
import sys
from pathlib import Path
from pi_plugins.config import LockedJson
file, name, count = LockedJson(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
for number in range(count):
    file.update(lambda data: data.update({f"{name}{number}": number}))
"""

KILLED = """
import os, signal, sys
from pathlib import Path
from pi_plugins.config import LockedJson
step, kill = sys.argv[2], lambda *_: os.kill(os.getpid(), signal.SIGKILL)
real = getattr(os, step)
def at_step(*arguments, **named):
    if sys.argv[3] == "after":
        real(*arguments, **named)
    kill()
setattr(os, step, at_step)
LockedJson(Path(sys.argv[1])).update(lambda data: data.update(new="x" * 100_000))
"""


def put(**values: Any) -> Any:
    return lambda data: data.update(values)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_change_is_written(tmp_path: Path) -> None:
    file = LockedJson(tmp_path / "a.json")
    assert file.read() == {}
    assert file.update(lambda data: data.setdefault("a", 1)) == 1
    assert (tmp_path / "a.json").read_text() == '{\n  "a": 1\n}\n'
    assert file.read() == {"a": 1}


def test_what_was_not_changed_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a":1}')
    LockedJson(path).update(put(a=1))
    assert path.read_text() == '{"a":1}'
    LockedJson(path).update(put(a=True))
    assert read_json(path) == {"a": True}


def test_a_change_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a":1}')

    def fail(data: dict[str, Any]) -> None:
        data["a"] = 2
        raise KeyError("b")

    with pytest.raises(KeyError):
        LockedJson(path).update(fail)
    assert path.read_text() == '{"a":1}'
    LockedJson(path, wait=0).update(put(a=3))


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1, "a": 2}', ""])
def test_a_file_that_is_no_object_is_never_overwritten(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"a\.json:1.*The file is left as it is"):
        LockedJson(path).update(put(a=1))
    assert path.read_text() == text


@pytest.mark.parametrize("value", [float("inf"), {1, 2}, object()])
def test_what_is_no_json_is_not_written(tmp_path: Path, value: object) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a":1}')
    with pytest.raises(ConfigError, match="no JSON"):
        LockedJson(path).update(put(a=value))
    assert path.read_text() == '{"a":1}'


def test_half_of_a_surrogate_pair_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(r'{"a": "\ud800", "b": "é"}')
    LockedJson(path).update(put(c=1))
    assert read_json(path) == {"a": "\ud800", "b": "é", "c": 1}


def test_a_file_where_a_folder_should_be_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "agent").touch()
    with pytest.raises(ConfigError, match=r"auth\.json cannot be changed: Not a directory"):
        LockedJson(tmp_path / "agent" / "auth.json").update(put(a=1))


def test_a_private_file_and_its_folder_are_for_the_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "agent" / "auth.json"
    LockedJson(path, mode=0o600).update(put(a=1))
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)


def test_another_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    usual = tmp_path / "usual"
    usual.touch()
    LockedJson(tmp_path / "a.json").update(put(a=1))
    assert mode(tmp_path / "a.json") == mode(usual)


@pytest.mark.parametrize("before", [0o640, 0o400, 0o666])
def test_the_mode_of_a_file_is_kept(tmp_path: Path, before: int) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    path.chmod(before)
    LockedJson(path, mode=0o600).update(put(a=1))
    assert mode(path) == before


def test_a_link_stays_and_its_target_is_changed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.json").symlink_to("real/a.json")
    LockedJson(tmp_path / "link.json").update(put(a=1))
    assert (tmp_path / "link.json").is_symlink()
    assert read_json(tmp_path / "real" / "a.json") == {"a": 1}
    assert sorted(os.listdir(tmp_path)) == ["link.json", "real"]


def test_all_paths_to_a_file_share_its_lock(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    (tmp_path / "link.json").symlink_to(path)
    entered, leave = threading.Event(), threading.Event()

    def hold(data: dict[str, Any]) -> None:
        entered.set()
        leave.wait(60)

    holder = threading.Thread(target=LockedJson(path).update, args=(hold,))
    holder.start()
    try:
        assert entered.wait(60)
        with pytest.raises(ConfigError, match=r"another process has held .*a\.json\.lock for 0 s"):
            LockedJson(tmp_path / "link.json", wait=0).update(put(a=1))
    finally:
        leave.set()
        holder.join()
    LockedJson(tmp_path / "link.json", wait=0).update(put(a=1))


def test_reading_does_not_wait_for_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": 1}')
    with FileLock(f"{path}.lock"):
        assert LockedJson(path).read() == {"a": 1}


def test_a_file_that_did_not_change_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": 1}')
    os.utime(path, ns=(1, 1))
    file = LockedJson(path)
    assert file.read() is file.read()


@pytest.mark.parametrize("age", [0, 10**12])
def test_a_file_that_changed_is_read_again(tmp_path: Path, age: int) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": 1}')
    os.utime(path, ns=(age, path.stat().st_mtime_ns - age))
    file = LockedJson(path)
    assert file.read() == {"a": 1}
    path.write_text('{"a": 2}')
    assert file.read() == {"a": 2}
    path.unlink()
    assert file.read() == {}


def test_a_change_within_one_tick_of_the_clock_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": 1}')
    stamp = path.stat().st_mtime_ns
    file = LockedJson(path)
    file.read()
    path.write_text('{"a": 2}')
    os.utime(path, ns=(stamp, stamp))
    assert file.read() == {"a": 2}


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"file/a\.json cannot be changed: (Not a directory|File exists)"):
        LockedJson(tmp_path / "file" / "a.json").update(put(a=1))


def test_two_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    (tmp_path / "link.json").symlink_to(path)
    command = [sys.executable, "-c", WRITER]
    writers = [
        subprocess.Popen(
            [*command, str(tmp_path / name), name, "200"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in ("a.json", "link.json")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    seen = 0
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            now = len(json.loads(path.read_bytes()))
            assert now >= seen
            seen = now
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    assert read_json(path) == {f"{name}{number}": number for name in ("a.json", "link.json") for number in range(200)}
    assert sorted(os.listdir(tmp_path)) in (["a.json", "link.json"], ["a.json", "a.json.lock", "link.json"])


@pytest.mark.parametrize(
    ("step", "when", "new"),
    [("fsync", "before", False), ("fsync", "after", False), ("replace", "before", False), ("replace", "after", True)],
)
def test_a_killed_writer_leaves_the_old_or_the_new_file_whole(tmp_path: Path, step: str, when: str, new: bool) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"old": 1}')
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), step, when], check=False)
    assert done.returncode == -signal.SIGKILL
    assert ("new" in read_json(path)) is new
    assert read_json(path)["old"] == 1
    LockedJson(path).update(put(next=2))
    assert read_json(path)["next"] == 2
    assert [name for name in os.listdir(tmp_path) if name.endswith(".tmp")] == []


def test_the_leftovers_of_other_files_stay(tmp_path: Path) -> None:
    other = tmp_path / f".a.json.b.json.{'0' * 16}.tmp"
    other.touch()
    LockedJson(tmp_path / "a.json").update(put(a=1))
    assert other.exists()


def test_a_write_that_fails_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "a.json"
    replace_file(path, b"old")
    monkeypatch.setattr(json_file.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.json"]
