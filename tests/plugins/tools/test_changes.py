"""``write`` and ``edit``: whole or not at all, one after the other, and every untouched byte as it was."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_core import AbortController
from pi_core.testing import Call, Reply, scripted_agent
from pi_plugins.tools import ToolsPlugin, _files
from pi_plugins.tools._diff import EditDiff
from pi_plugins.tools._errors import ToolError
from pi_plugins.tools._files import replace_file
from pi_plugins.tools._locks import _queues, change_file
from pi_plugins.tools._match import FuzzyText, find_exact
from pi_plugins.tools._threads import Stop
from pi_plugins.tools.edit import _apply


def replace(old: str, new: str) -> list[dict[str, str]]:
    return [{"oldText": old, "newText": new}]


def test_two_hundred_parallel_edits_of_one_file(work: Any) -> None:
    work.write("file.txt", "".join(f"line {number};\n" for number in range(200)))
    (work.root / "link.txt").symlink_to("file.txt")

    async def run() -> list[Any]:
        names = ("file.txt", "link.txt", f"{work.root}/./file.txt")
        calls = [
            work.run("edit", {"path": names[number % 3], "edits": replace(f"line {number};", f"LINE {number};")})
            for number in range(200)
        ]
        return await asyncio.gather(*calls)

    outcomes = asyncio.run(run())

    assert not any(outcome.is_error for outcome in outcomes)
    assert (work.root / "file.txt").read_text() == "".join(f"LINE {number};\n" for number in range(200))
    assert _queues == {}


def test_edits_of_one_message_are_made_in_call_order(work: Any) -> None:
    work.write("file.txt", "0\n")
    calls = [Call("edit", {"path": "file.txt", "edits": replace(f"{n}\n", f"{n + 1}\n")}) for n in range(30)]
    agent, _, _ = scripted_agent(Reply(*calls), "done", tools=ToolsPlugin(work.options).register_tools())

    asyncio.run(agent.prompt("count"))

    assert (work.root / "file.txt").read_text() == "30\n"


def test_changes_from_two_event_loops_do_not_meet(work: Any) -> None:
    work.write("file.txt", "".join(f"{number};\n" for number in range(100)))

    def edit_some(first: int) -> None:
        async def run() -> None:
            for number in range(first, 100, 2):
                edits = replace(f"\n{number};" if number else f"{number};\n1", f"\n#{number};" if number else "#0;\n1")
                outcome = await work.run("edit", {"path": "file.txt", "edits": edits})
                assert not outcome.is_error, outcome

        asyncio.run(run())

    threads = [threading.Thread(target=edit_some, args=(first,)) for first in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (work.root / "file.txt").read_text() == "0;\n" + "".join(f"#{number};\n" for number in range(1, 100))


def test_a_cancelled_change_lets_the_next_one_in_only_when_it_has_ended(work: Any) -> None:
    path = str(work.write("file.txt", "old"))
    working, go_on, order = threading.Event(), threading.Event(), []

    def slow(stop: Stop) -> None:
        working.set()
        go_on.wait(10)
        order.append("slow")
        replace_file(path, b"slow", stop)

    def quick() -> None:
        order.append("quick")
        replace_file(path, b"quick", Stop(None))

    async def run() -> None:
        stop = Stop(None)
        first = asyncio.create_task(change_file(path, lambda: slow(stop), stop))
        second = asyncio.create_task(change_file(path, quick, Stop(None)))
        third = asyncio.create_task(change_file(path, quick, Stop(None)))
        await asyncio.to_thread(working.wait, 10)
        first.cancel()
        third.cancel()
        await asyncio.wait({third})
        assert not first.done()
        assert order == []
        go_on.set()
        await asyncio.wait({first})
        assert first.cancelled()
        await second

    asyncio.run(run())

    assert order == ["slow", "quick"]
    assert (work.root / "file.txt").read_text() == "quick"
    assert _queues == {}


def test_links_stay_and_their_target_is_replaced(work: Any) -> None:
    work.write("real/target.txt", "old\n")
    (work.root / "link.txt").symlink_to("real/target.txt")
    (work.root / "second.txt").symlink_to("link.txt")
    (work.root / "new.txt").symlink_to("real/made.txt")

    work.text("write", path="second.txt", content="one\n")
    work.text("edit", path="link.txt", edits=replace("one", "two"))
    work.text("write", path="new.txt", content="made\n")

    assert all((work.root / name).is_symlink() for name in ("link.txt", "second.txt", "new.txt"))
    assert (work.root / "real/target.txt").read_text() == "two\n"
    assert (work.root / "real/made.txt").read_text() == "made\n"


def test_a_loop_of_links_is_an_error(work: Any) -> None:
    (work.root / "a").symlink_to("b")
    (work.root / "b").symlink_to("a")

    assert work.error("read", path="a").startswith("ELOOP")
    assert work.error("write", path="a", content="x").startswith("ELOOP")
    assert (work.root / "a").is_symlink()


@pytest.mark.parametrize("mode", [0o755, 0o640, 0o600, 0o4711])
def test_the_mode_is_kept(work: Any, mode: int) -> None:
    path = work.write("script.sh", "echo one\n")
    path.chmod(mode)

    work.text("edit", path="script.sh", edits=replace("one", "two"))
    assert stat.S_IMODE(path.stat().st_mode) == mode
    work.text("write", path="script.sh", content="echo three\n")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_mode_of_the_umask(work: Any) -> None:
    before = os.umask(0o027)
    try:
        work.text("write", path="new.txt", content="x")
    finally:
        os.umask(before)

    assert stat.S_IMODE((work.root / "new.txt").stat().st_mode) == 0o640


def test_no_temporary_file_is_left(work: Any) -> None:
    work.text("write", path="a.txt", content="x")
    work.text("edit", path="a.txt", edits=replace("x", "y"))
    work.error("write", path="a.txt/b.txt", content="x")

    assert os.listdir(work.root) == ["a.txt"]


def test_a_reader_never_sees_a_part(work: Any) -> None:
    path = work.write("file.txt", "a" * 100_000)
    seen, done = set(), threading.Event()

    def look() -> None:
        while not done.is_set():
            seen.add(path.read_text())

    looker = threading.Thread(target=look)
    looker.start()
    for letter in "bcdefgh":
        work.text("write", path="file.txt", content=letter * 100_000)
    done.set()
    looker.join()

    assert seen <= {letter * 100_000 for letter in "abcdefgh"}


def test_an_abort_before_the_replacement_leaves_the_file(work: Any) -> None:
    path = work.write("file.txt", "old")
    controller = AbortController()
    stop = Stop(controller.signal)
    real = os.fsync

    def abort_then_sync(descriptor: int) -> None:
        controller.abort()
        real(descriptor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_files.os, "fsync", abort_then_sync)
        with pytest.raises(ToolError, match="Operation aborted"):
            replace_file(str(path), b"new", stop)

    assert path.read_text() == "old"
    assert os.listdir(work.root) == ["file.txt"]


def test_where_no_file_can_be_made_the_file_is_written_in_place(work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = work.write("mounted.txt", "a longer old content\n")
    inode = path.stat().st_ino

    def refuse(*_: Any) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(_files.os, "replace", refuse)
    work.text("edit", path="mounted.txt", edits=replace("a longer old", "new"))

    assert path.read_text() == "new content\n"
    assert path.stat().st_ino == inode
    assert os.listdir(work.root) == ["mounted.txt"]


def test_a_write_in_place_that_fails_is_put_back(work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = work.write("mounted.txt", "old content\n")
    real, calls = _files._write_all, []

    def fail_once(file: Any, data: bytes) -> None:
        calls.append(data)
        if len(calls) == 1:
            raise PermissionError(13, "Permission denied")
        if len(calls) == 2:
            file.write(data[:3])
            raise OSError(28, "No space left on device")
        real(file, data)

    monkeypatch.setattr(_files, "_write_all", fail_once)

    assert work.error("write", path="mounted.txt", content="NEW CONTENT\n").startswith("ENOSPC")
    assert path.read_text() == "old content\n"


def test_a_file_that_changes_during_an_edit_is_left_alone(work: Any) -> None:
    path = work.write("file.txt", "old")
    before = path.stat()
    path.write_text("other")

    with pytest.raises(ToolError, match="changed by something else"):
        replace_file(str(path), b"new", Stop(None), expected=before)
    assert path.read_text() == "other"


def test_surrogates_are_written_as_text(work: Any) -> None:
    work.text("write", path="a.txt", content="\ud83d\ude48 \ud800")

    assert (work.root / "a.txt").read_text(encoding="utf-8") == "\U0001f648 \ufffd"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"alpha\r\nbeta\r\ngamma", "alpha\nbeta", "A\nB", b"A\r\nB\r\ngamma"),
        (b"alpha\r\nbeta\r\n", "alpha\r\nbeta", "A", b"A\r\n"),
        (b"a\nb\r\nc\nd\n", "b\nc", "B\nC", b"a\nB\r\nC\nd\n"),
        (b"a\r\nb\nc\r\n", "c", "c\nd", b"a\r\nb\nc\r\nd\r\n"),
        (b"a\r\nb\r\n", "\nb", "\nB", b"a\r\nB\r\n"),
        (b"one line", "one", "1\n2", b"1\n2 line"),
        (b"\xef\xbb\xbfa\r\nb\r\n", "\ufeffa\nb", "A\nB", b"\xef\xbb\xbfA\r\nB\r\n"),
        (b"mac\rstyle\rtext", "style", "STYLE", b"mac\rSTYLE\rtext"),
        ("\ufeff\u00fce\r\n".encode("utf-16-le"), "\u00fc", "\u00dc", "\ufeff\u00dce\r\n".encode("utf-16-le")),
        ("\ufeffx\ny\n".encode("utf-16-be"), "x\ny", "X\nY", "\ufeffX\nY\n".encode("utf-16-be")),
        ("\ufeffx\ny\n".encode("utf-32-le"), "x", "X", "\ufeffX\ny\n".encode("utf-32-le")),
        (b"caf\xe9 au lait, quite enough to be a text\n", "au lait", "cr", b"caf\xe9 cr, quite enough to be a text\n"),
    ],
)  # fmt: skip
def test_line_endings_marks_and_encodings_are_kept(work: Any, before: bytes, old: str, new: str, after: bytes) -> None:
    path = work.write("file.txt", before)

    work.text("edit", path="file.txt", edits=replace(old, new))

    assert path.read_bytes() == after


def test_a_file_in_an_unknown_encoding_gets_only_ascii(work: Any) -> None:
    path = work.write("latin.txt", b"caf\xe9 au lait, a text that is long enough\n")

    assert "is not in UTF-8" in work.error("edit", path="latin.txt", edits=replace("lait", "l\u00e4it"))
    assert path.read_bytes().startswith(b"caf\xe9 au lait")


def test_binary_and_large_files_are_not_edited(work: Any) -> None:
    work.configure(max_edit_bytes=10)
    work.write("bin.dat", b"a\0b")
    work.write("large.txt", "a" * 11)

    assert "binary file" in work.error("edit", path="bin.dat", edits=replace("a", "b"))
    assert "over the limit of 10B for edits" in work.error("edit", path="large.txt", edits=replace("a", "b"))
    assert work.error("edit", path=".", edits=replace("a", "b")) == "Could not edit file: .. Error code: EISDIR."


@pytest.mark.parametrize(
    ("text", "old", "after"),
    [
        ("x = \u201cquoted\u201d  \ny\n", 'x = "quoted"\ny', "NEW\n"),
        ("a \u2013 b\u00a0c\n", "a - b c", "NEW\n"),
        ("keep\u2019s  trailing  \n\u2018next\u2019\n", "'next'", "keep\u2019s  trailing  \nNEW\n"),
        ("before  \r\nmid\u2026dle\r\nafter\t\r\n", "mid...dle", "before  \r\nNEW\r\nafter\t\r\n"),
        ("one  \ntwo\t\nthree\n", "one\ntwo\nthree", "NEW\n"),
        ("a  \r\n\u201cb\u201d\r\n", '\n"b"', "a  NEW\r\n"),
        ("cafe\u0301 noir\n", "caf\u00e9", "NEW noir\n"),
        ("\u1112\u1161\u11ab\n", "\ud55c", "NEW\n"),
    ],
)
def test_typography_is_forgiven_and_only_the_match_is_rewritten(work: Any, text: str, old: str, after: str) -> None:
    path = work.write("file.txt", text)

    work.text("edit", path="file.txt", edits=replace(old, "NEW"))

    assert path.read_bytes().decode() == after


def test_typography_does_not_hide_that_there_are_two(work: Any) -> None:
    work.write("file.txt", "\u201cx\u201d\n\u201dx\u201c\n")

    assert work.error("edit", path="file.txt", edits=replace('"x"', "y")).startswith("Found 2 occurrences of the text")
    assert work.error("edit", path="file.txt", edits=replace("   ", "y")).startswith("Could not find the exact text")


def test_overlapping_occurrences_are_not_unique(work: Any) -> None:
    work.write("file.txt", "aaa\n")

    assert work.error("edit", path="file.txt", edits=replace("aa", "b")).startswith("Found 2 occurrences")


def test_errors_of_several_edits_name_the_edit(work: Any) -> None:
    work.write("file.txt", "a\na\nb\nc\n")
    good = {"oldText": "b", "newText": "B"}

    def failing(old: str) -> str:
        return work.error("edit", path="file.txt", edits=[good, {"oldText": old, "newText": "x"}])

    assert failing("a") == (
        "Found 2 occurrences of edits[1] in file.txt. Each oldText must be unique. Please provide more context to "
        "make it unique."
    )
    assert failing("") == "edits[1].oldText must not be empty in file.txt."
    assert failing("b") == (
        "edits[0] and edits[1] overlap in file.txt. Merge them into one edit or target disjoint regions."
    )
    assert (work.root / "file.txt").read_text() == "a\na\nb\nc\n"


@pytest.mark.parametrize(
    "arguments",
    [
        {"edits": '[{"oldText": "a", "newText": "A"}]'},
        {"edits": {"oldText": "a", "newText": "A"}},
        {"edits": [], "oldText": "a", "newText": "A"},
        {"oldText": "a", "newText": "A"},
    ],
)
def test_forms_of_the_arguments(work: Any, arguments: dict[str, Any]) -> None:
    path = work.write("file.txt", "a\n")

    work.text("edit", path="file.txt", **arguments)

    assert path.read_text() == "A\n"


@pytest.mark.parametrize("edits", ["[{", "text", 3, None])
def test_forms_that_mean_nothing_are_refused(work: Any, edits: Any) -> None:
    work.write("file.txt", "a\n")

    assert "edits" in work.error("edit", path="file.txt", edits=edits)


def test_a_missing_content_leaves_the_file(work: Any) -> None:
    path = work.write("keep.txt", "x" * 16_000)

    assert "content" in work.error("write", path="keep.txt")
    assert path.read_text() == "x" * 16_000


def test_distant_changes_are_shown_with_gaps(work: Any) -> None:
    work.write("file.txt", "".join(f"{number}\n" for number in range(1, 41)))
    edits = [*replace("\n10\n", "\nten\n"), *replace("\n30\n", "\n30\n30b\n")]

    details = work.call("edit", path="file.txt", edits=edits).result.details

    assert details["firstChangedLine"] == 10
    assert details["diff"].split("\n") == [
        "    ...", *(f"  {n:>2} {n}" [1:] for n in range(6, 10)), "-10 10", "+10 ten",
        *(f" {n} {n}" for n in range(11, 15)), "    ...", *(f" {n} {n}" for n in range(27, 31)), "+31 30b",
        *(f" {n} {n}" for n in range(31, 35)), "    ...",
    ]  # fmt: skip
    assert "@@ -27,8 +27,9 @@" in details["patch"]


TEXTS = st.text(alphabet="ab\n", max_size=60)


@given(text=TEXTS, cuts=st.lists(st.integers(0, 60), min_size=2, max_size=8, unique=True), new=st.lists(TEXTS))
def test_a_patch_describes_the_change(text: str, cuts: list[int], new: list[str]) -> None:
    places = sorted(cut for cut in cuts if cut <= len(text))
    spans = zip(places[::2], places[1::2], strict=False)
    replacements = list(zip(spans, new, strict=False))
    after = _apply(text, replacements)
    if after == text:
        return

    patch = EditDiff(text, replacements).unified("file").split("\n")

    assert patched(text, patch) == after


def patched(text: str, patch: list[str]) -> str:
    """Apply a unified patch, checking every line it names."""
    old = text.splitlines(keepends=True)
    new: list[str] = []
    position = 0
    for line, following in pairwise(patch[2:]):
        content = line[1:] + ("" if following.startswith("\\") else "\n")
        if line.startswith("@@"):
            start, length = (int(part) for part in line.split()[1][1:].split(","))
            begin = start - 1 if length else start
            new += old[position:begin]
            position = begin
        elif line.startswith(("-", " ")):
            assert old[position] == content
            position += 1
        if line.startswith(("+", " ")):
            new.append(content)
    return "".join(new + old[position:])


@given(text=st.text(alphabet="a\r\n", max_size=20), wanted=st.text(alphabet="a\n", min_size=1, max_size=4))
def test_exact_places_do_not_depend_on_line_endings(text: str, wanted: str) -> None:
    text = text.replace("\r\n", "\n").replace("\r", "")
    windows = text.replace("\n", "\r\n")

    assert len(find_exact(text, wanted)) == len(find_exact(windows, wanted))
    for start, end in find_exact(windows, wanted):
        assert windows[start:end].replace("\r\n", "\n") == wanted


@given(text=st.text(alphabet="a\u00e9e\u0301\u201c\ufb01 \u00a0\n", max_size=20), data=st.data())
def test_fuzzy_places_are_places_of_the_text(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    wanted = text[start : data.draw(st.integers(start, len(text)))]

    for begin, end in FuzzyText(text).find(wanted):
        assert 0 <= begin <= end <= len(text)
        assert FuzzyText(text[begin:end]).find(wanted)
