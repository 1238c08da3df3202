"""``read``: lines, limits, encodings, and everything that is no text."""

from __future__ import annotations

import asyncio
import gzip
import os
import socket
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_core import AbortController, ToolContext
from pi_plugins.tools import ToolsPlugin
from pi_plugins.tools._lines import select_lines


def test_last_line_with_and_without_newline(work: Any) -> None:
    work.write("with.txt", "a\nb\n")
    work.write("without.txt", "a\nb")

    assert work.text("read", path="with.txt", offset=2) == "b\n"
    assert work.text("read", path="without.txt", offset=2) == "b"
    assert work.text("read", path="with.txt", offset=1, limit=2) == "a\nb\n"
    assert work.error("read", path="with.txt", offset=3) == "Offset 3 is beyond end of file (2 lines total)"


def test_exactly_the_most_lines_is_not_truncated(work: Any) -> None:
    work.configure(max_lines=3, max_bytes=6)
    work.write("three.txt", "a\nb\nc\n")
    work.write("four.txt", "a\nb\nc\nd")
    work.write("wide.txt", "aaa\nbb\nc\n")

    assert work.text("read", path="three.txt") == "a\nb\nc\n"
    assert work.text("read", path="four.txt") == "a\nb\nc\n\n[Showing lines 1-3 of 4. Use offset=4 to continue.]"
    assert work.text("read", path="wide.txt") == (
        "aaa\nbb\n\n[Showing lines 1-2 of 3 (6B limit). Use offset=3 to continue.]"
    )


def test_reading_on_gives_the_whole_file(work: Any) -> None:
    work.configure(max_lines=7, max_bytes=100)
    lines = [f"{number} " + "x" * (number * 13 % 90) for number in range(50)]
    work.write("file.txt", "\n".join(lines))
    offset, seen = 1, []
    while offset <= len(lines):
        text = work.text("read", path="file.txt", offset=offset).split("\n\n[")[0]
        seen += text.split("\n")
        offset += len(text.split("\n"))

    assert seen == lines


def test_a_long_line_in_the_middle_stops_before_it(work: Any) -> None:
    work.write("my file.txt", "short\n" + "é" * 40_000 + "\nlast\n")

    assert work.text("read", path="my file.txt") == (
        "short\n\n[Showing lines 1-1 of 3 (50.0KB limit). Use offset=2 to continue.]"
    )
    assert work.text("read", path="my file.txt", offset=2) == (
        "[Line 2 is 78.1KB, exceeds 50.0KB limit. Use bash: sed -n '2p' 'my file.txt' | head -c 51200]"
    )
    assert work.text("read", path="my file.txt", offset=3) == "last\n"


def test_a_huge_file_is_streamed(work: Any) -> None:
    path = work.root / "huge.txt"
    with path.open("w") as file:
        for _ in range(64):
            file.write("some line of text\n" * 60_000)
    tool = next(tool for tool in ToolsPlugin(work.options).register_tools() if tool.name == "read")

    async def measure() -> tuple[str, int]:
        tracemalloc.start()
        result = await tool.run({"path": "huge.txt", "offset": 3_000_000}, ToolContext("1"))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return result.content[0].text, peak

    text, peak = asyncio.run(measure())

    assert path.stat().st_size > 65_000_000
    assert text.endswith("[Showing lines 3000000-3001999 of 3840000. Use offset=3002000 to continue.]")
    assert peak < 8_000_000


def test_a_huge_line_is_measured_and_not_kept(work: Any) -> None:
    with (work.root / "line.txt").open("w") as file:
        for _ in range(40):
            file.write("y" * 1_000_000)
    tracemalloc.start()
    text = work.text("read", path="line.txt")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert text.startswith("[Line 1 is 38.1MB, exceeds 50.0KB limit.")
    assert peak < 8_000_000


@given(
    text=st.text(alphabet="ab\n\ré\U0001f648", max_size=40),
    offset=st.integers(1, 8),
    limit=st.none() | st.integers(1, 5),
    max_lines=st.integers(1, 6),
    max_bytes=st.integers(1, 20),
    size=st.integers(1, 7),
)
def test_selection_does_not_depend_on_the_pieces(
    text: str, offset: int, limit: int | None, max_lines: int, max_bytes: int, size: int
) -> None:
    data = text.encode()
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    wanted: list[str] = []
    for line in lines[offset - 1 :]:
        fits = len("\n".join([*wanted, line]).encode()) <= max_bytes
        if len(wanted) == min(max_lines, limit or max_lines) or not fits:
            break
        wanted.append(line)

    chunks = (data[begin : begin + size] for begin in range(0, len(data), size))
    selection = select_lines(chunks, offset=offset, limit=limit, max_lines=max_lines, max_bytes=max_bytes)

    assert selection.total_lines == len(lines)
    assert selection.lines == len(wanted)
    complete = offset - 1 + len(wanted) >= len(lines)
    assert (selection.stopped_by is None) == complete
    assert selection.text == "\n".join(wanted) + ("\n" if complete and wanted and text.endswith("\n") else "")
    if selection.long_line is not None:
        assert selection.long_line == len(lines[offset - 1].encode())


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_marked_encodings_are_text(work: Any, encoding: str) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    work.write("wide.txt", (mark + "grüße\nwelt\n").encode(encoding))

    assert work.text("read", path="wide.txt").removeprefix("\ufeff") == "grüße\nwelt\n"


def test_bytes_that_are_no_utf8_are_replaced(work: Any) -> None:
    work.write("latin.txt", b"caf\xe9 au lait, a text that is long enough to be one\r\n")
    work.write("surrogate.txt", b"Hello \xed\xa0\x80 World, and so on and so on\n")

    assert work.text("read", path="latin.txt").startswith("caf\ufffd au lait")
    assert work.text("read", path="surrogate.txt").encode()


@pytest.mark.parametrize(
    ("content", "mime"),
    [
        (gzip.compress(b"text"), "application/gzip"),
        (b"PK\x03\x04rest", "application/zip"),
        (b"%PDF-1.7\nrest", "application/pdf"),
        (b"\x7fELF\x02\x01\x01\x00", "application/x-elf"),
        (b"SQLite format 3\x00", "application/vnd.sqlite3"),
        (b"\xff\xfe" + b"\x00\xd8" * 4, "application/octet-stream"),
        ("no mark".encode("utf-16-le"), "application/octet-stream"),
        (b"\x01\x02\x03\x04", "application/octet-stream"),
    ],
)
def test_binary_files_are_refused_with_their_type(work: Any, content: bytes, mime: str) -> None:
    work.write("file.txt", content)

    assert f"binary file ({mime}, {len(content)}B)" in work.error("read", path="file.txt")


def test_what_only_looks_like_a_binary_file_is_text(work: Any) -> None:
    for number, start in enumerate(("GIF89a", "BM", "MZ", "ID3", "BZh", "RIFF1234WEBP")):
        work.write(f"{number}.txt", f"{start} is how this text begins\n")

        assert work.text("read", path=f"{number}.txt").startswith(start)


def test_pipes_devices_and_sockets_do_not_hang(work: Any) -> None:
    os.mkfifo(work.root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(work.root / "socket"))

        assert "is a named pipe, not a regular file" in work.error("read", path="pipe")
        assert "is a socket, not a regular file" in work.error("read", path="socket")
        assert "is a character device, not a regular file" in work.error("read", path="/dev/zero")
        for tool, arguments in (("write", {"content": "x"}), ("edit", {"edits": [{"oldText": "a", "newText": "b"}]})):
            assert "not a regular file" in work.error(tool, path="pipe", **arguments)
        assert "is a named pipe" in work.error("grep", path="pipe", pattern="x")


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="a file of a size of 0 that has content is /proc's")
def test_a_file_that_has_no_size_is_read(work: Any) -> None:
    assert "VmRSS" in work.text("read", path="/proc/self/status")


def test_spellings_of_a_path(work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    work.write("a.txt", "a\n")
    work.write("@scope/b.txt", "b\n")
    work.write("Screenshot 1.02\u202fPM.txt", "c\n")
    work.write("cafe\u0301.txt", "d\n")
    work.write("it\u2019s.txt", "e\n")
    monkeypatch.setenv("HOME", str(work.root))

    assert work.text("read", path="@a.txt") == "a\n"
    assert work.text("read", path="@scope/b.txt") == "b\n"
    assert work.text("read", path="~/a.txt") == "a\n"
    assert work.text("read", path=f"{work.root}/sub/../a.txt") == "a\n"
    assert work.text("read", path="Screenshot 1.02 PM.txt") == "c\n"
    assert work.text("read", path="caf\u00e9.txt") == "d\n"
    assert work.text("read", path="it's.txt") == "e\n"


@pytest.mark.parametrize("path", ["a\0b", "\ud800"])
def test_a_path_that_cannot_be(work: Any, path: str) -> None:
    assert "path" in work.error("read", path=path)


def test_odd_numbers(work: Any) -> None:
    work.write("a.txt", "one\ntwo\nthree\n")

    assert work.text("read", path="a.txt", offset=-5, limit=1.9).startswith("one\n\n[2 more")
    assert "offset must be a number" in work.error("read", path="a.txt", offset=float("inf"))


def test_an_aborted_read_stops(work: Any) -> None:
    work.write("a.txt", "one\n")
    controller = AbortController()
    tool = next(tool for tool in ToolsPlugin(work.options).register_tools() if tool.name == "read")
    controller.abort()

    with pytest.raises(Exception, match="Operation aborted"):
        asyncio.run(tool.run({"path": "a.txt"}, ToolContext("1", signal=controller.signal)))


def test_an_unreadable_file_names_the_reason(closed_work: Any) -> None:
    work = closed_work

    assert work.error("read", path="secret.txt") == f"EACCES: permission denied, open '{work.root}/secret.txt'"
    assert work.error("edit", path="secret.txt", edits=[{"oldText": "a", "newText": "b"}]) == (
        "Could not edit file: secret.txt. Error code: EACCES."
    )
    assert work.error("write", path="secret.txt", content="x").startswith("EACCES: permission denied")
    assert work.text("find", pattern="*") == "closed/\nsecret.txt\n\n[1 directory could not be read]"
