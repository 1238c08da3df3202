"""What was typed in earlier sessions."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from pi_plugins.modes.interactive import history
from pi_plugins.modes.interactive.history import InputHistory, holds_secret


def loaded(path: Path) -> list[str]:
    """What a new session finds, the newest first."""

    async def read() -> list[str]:
        return [text async for text in InputHistory(path).load()]

    return asyncio.run(read())


def test_the_newest_input_comes_first_in_the_next_session(tmp_path: Path) -> None:
    path = tmp_path / "agent" / "history.jsonl"
    first = InputHistory(path)
    for text in ("one", "two\nlines", "ünï"):
        first.append_string(text)
    assert loaded(path) == ["ünï", "two\nlines", "one"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_same_input_is_there_once(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    typed = InputHistory(path)
    for text in ("one", "two", "two", "one"):
        typed.append_string(text)
    assert loaded(path) == ["one", "two"]
    assert len(path.read_text().splitlines()) == 3


@pytest.mark.parametrize(
    "text",
    [
        "/login groq",
        "/login sk-0123456789abcdef",
        "my key is sk-ant-api03-0123456789abcdefghij, use it",
        "!export GROQ_API_KEY=gsk_0123456789abcdefghij gsk_0123456789abcdefghij",
        "curl -H 'Authorization: Bearer abcdefghijklmnop'",
    ],
)
def test_secrets_are_kept_nowhere(tmp_path: Path, text: str) -> None:
    path = tmp_path / "history.jsonl"
    typed = InputHistory(path)
    typed.append_string(text)
    assert holds_secret(text)
    assert typed.get_strings() == []
    assert not path.exists()


@pytest.mark.parametrize("text", ["/model gpt", "what is a task-list", "say login", "git log -p sk"])
def test_other_inputs_hold_no_secret(text: str) -> None:
    assert not holds_secret(text)


def test_a_very_long_input_is_kept_in_this_session_only(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    typed = InputHistory(path)
    typed.append_string("x" * 50_000)
    assert typed.get_strings() == ["x" * 50_000]
    assert loaded(path) == []


def test_blank_inputs_are_not_kept(tmp_path: Path) -> None:
    typed = InputHistory(tmp_path / "history.jsonl")
    typed.append_string("  \n")
    assert typed.get_strings() == []


def test_damaged_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(b'"one"\n{"a": 1}\n"tw\n\xff\n\n"three"\n')
    assert loaded(path) == ["three", "one"]


def test_the_file_is_bounded_and_keeps_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_MOST_BYTES", 1000)
    path = tmp_path / "history.jsonl"
    typed = InputHistory(path)
    for number in range(300):
        typed.append_string(f"input {number}")
        assert path.stat().st_size <= 1000
    found = loaded(path)
    assert found[:3] == ["input 299", "input 298", "input 297"]
    assert len(found) >= 30


def test_several_processes_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    program = (
        "import sys; from pathlib import Path; from pi_plugins.modes.interactive.history import InputHistory\n"
        "typed = InputHistory(Path(sys.argv[1]))\n"
        "for number in range(50): typed.append_string(f'{sys.argv[2]} {number}')"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, str(path), name]) for name in ("a", "b", "c")]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(lines) == sorted(f"{name} {number}" for name in "abc" for number in range(50))


def test_a_file_that_cannot_be_used_leaves_the_history_to_the_session(tmp_path: Path) -> None:
    folder = tmp_path / "history.jsonl"
    folder.mkdir()
    told: list[str] = []
    typed = InputHistory(folder, told.append)
    typed.append_string("one")
    typed.append_string("two")
    assert typed.get_strings() == ["one", "two"]
    assert len(told) == 1
    assert f"{folder} cannot be written" in told[0]
    assert loaded(folder) == []
