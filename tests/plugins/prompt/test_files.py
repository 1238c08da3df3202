"""The text files of prompts: encodings, sizes, and what is no text file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pi_core import ConfigError
from pi_plugins.prompt import text_or_file
from pi_plugins.prompt.files import MAX_BYTES, read_file, read_file_or_warn

from .conftest import Home


@pytest.mark.parametrize(
    "data",
    ["Grüße 🙂\n".encode(), "Grüße 🙂\n".encode("utf-8-sig"), "Grüße 🙂\n".encode("utf-16"), "Grüße 🙂\r\n".encode()],
)
def test_utf_8_and_utf_16_are_read_with_any_line_ends(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.md").write_bytes(data)
    assert read_file(tmp_path / "a.md").text == "Grüße 🙂\n"


def test_another_encoding_is_refused_with_the_place(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes("abc Grüße".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"a\.md is not UTF-8 text \(byte 6\); save it as UTF-8"):
        read_file(tmp_path / "a.md")


def test_a_huge_file_is_cut_at_a_line_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("zeile ä\n" * 10_000, encoding="utf-8")
    warnings: list[str] = []
    file = read_file_or_warn(path, warnings)
    assert file is not None
    kept, _, notice = file.text.rpartition("\n\n")
    assert notice == f"[Only the beginning of this file is shown. All 90000 bytes: {path}]"
    assert set(kept.splitlines()) == {"zeile ä"}
    assert MAX_BYTES - 9 <= len(kept.encode()) <= MAX_BYTES
    assert warnings == [f"{path} has 90000 bytes, of which a model is told the first {MAX_BYTES}"]


def test_a_file_of_just_the_most_bytes_is_whole(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("x" * MAX_BYTES)
    file = read_file(tmp_path / "a.md")
    assert (file.text, file.cut) == ("x" * MAX_BYTES, False)


def test_one_endless_line_is_cut_between_characters(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("x" + "🙂" * MAX_BYTES, encoding="utf-8")
    text = read_file(tmp_path / "a.md").text
    assert set(text.partition("\n")[0]) == {"x", "🙂"}


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.md")
    with pytest.raises(ConfigError, match="is not a regular file"):
        read_file(tmp_path / "a.md")


def test_a_link_to_itself_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.md").symlink_to("a.md")
    with pytest.raises(ConfigError, match=r"a\.md cannot be read: Too many levels of symbolic links"):
        read_file(tmp_path / "a.md")


def test_what_no_file_can_be_called() -> None:
    with pytest.raises(ConfigError, match="cannot be the path of a file"):
        read_file(Path("a\0b"))


class TestTextOrFile:
    def test_a_file_of_that_name_is_read(self, home: Home) -> None:
        path = home.write("prompt.txt", "Be kind.\n")
        assert text_or_file(str(path), "--system-prompt") == "Be kind.\n"

    @pytest.mark.parametrize("words", ["Be kind.", "", "x" * 5000, "a\0b", "/"])
    def test_anything_else_is_the_text(self, words: str) -> None:
        assert text_or_file(words, "--system-prompt") == words

    def test_a_file_that_cannot_be_read_is_an_error_of_the_option(self, tmp_path: Path) -> None:
        (tmp_path / "p").write_bytes(b"\xff")
        with pytest.raises(ConfigError, match=r"^--system-prompt: .*p is not UTF-8 text"):
            text_or_file(str(tmp_path / "p"), "--system-prompt")
