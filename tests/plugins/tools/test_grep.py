"""``grep``: the same with ripgrep and without it."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import time
from contextlib import aclosing
from typing import Any

import pytest

from pi_core import AbortController
from pi_plugins.tools import _search
from pi_plugins.tools._batches import LARGE_BYTES, Batch
from pi_plugins.tools._regex import line_pattern
from pi_plugins.tools._search import Query, Search, find_ripgrep

PROGRAMS = ["own", *(["ripgrep"] if find_ripgrep() else [])]


@pytest.fixture(params=PROGRAMS)
def grep(request: pytest.FixtureRequest, work: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "own":
        monkeypatch.setattr(_search, "find_ripgrep", lambda: None)
    return work


def test_lines_and_their_files_in_order(grep: Any) -> None:
    for name in ("b/z.txt", "b.txt", "a-b/x.txt", "a/y.txt", "a.txt", ".dot/w.txt", "B.txt"):
        grep.write(name, "nothing\nfound\n")

    assert grep.text("grep", pattern="found").split("\n") == [
        f"{name}:2: found" for name in (".dot/w.txt", "B.txt", "a/y.txt", "a-b/x.txt", "a.txt", "b/z.txt", "b.txt")
    ]


@pytest.mark.parametrize(
    ("arguments", "numbers"),
    [
        ({"pattern": "foo"}, [1, 2]),
        ({"pattern": "FOO", "ignoreCase": True}, [1, 2, 3]),
        ({"pattern": "f.o", "literal": True}, []),
        ({"pattern": "a.b(", "literal": True}, [4]),
        ({"pattern": "^foo$"}, [1, 2]),
        ({"pattern": r"\bbar\b"}, [5]),
        ({"pattern": r"b\w+r"}, [5, 6]),
        ({"pattern": "(foo|bar)"}, [1, 2, 5, 6]),
        ({"pattern": "[[:digit:]]+"}, [7]),
        ({"pattern": r"\d{3}"}, [7]),
        ({"pattern": "é"}, [8]),
        ({"pattern": "É", "ignoreCase": True}, [8]),
        ({"pattern": "caf.$"}, [8]),
        ({"pattern": "^$"}, [9]),
        ({"pattern": "-x"}, [10]),
        ({"pattern": "(?i)LAST"}, [11]),
        ({"pattern": r"\Alast\z"}, [11]),
        ({"pattern": "oo|xb|[1-2]3"}, [1, 2, 6, 7]),
        ({"pattern": r"a\.b\(?$"}, [4]),
        ({"pattern": "ba{2}r"}, [6]),
        ({"pattern": "ba{,1}r"}, [5, 6]),
        ({"pattern": r"[^\W\d]+ [^a]"}, [6, 10]),
        ({"pattern": r"[\Sx] "}, [6, 10]),
        ({"pattern": r"\x66\u006f\u{6F}"}, [1, 2]),
        ({"pattern": "f(?i)O(?-i:o)"}, [1, 2]),
        ({"pattern": "(?P<name>ba+r)|(?<other>last)"}, [5, 6, 11]),
        ({"pattern": "[^[:alpha:]]{3}"}, [7]),
        ({"pattern": "^(?:)*$"}, [9]),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_patterns(grep: Any, arguments: dict[str, Any], numbers: list[int], ending: str) -> None:
    lines = ["foo", "foo", "FOO", "a.b(", "bar", "baar xbarx", "123", "café", "", "a -x", "last"]
    grep.write("f.txt", ending.join(lines).encode())

    text = grep.text("grep", **arguments)

    wanted = [f"f.txt:{number}: {lines[number - 1]}" for number in numbers]
    assert text == ("\n".join(wanted) or "No matches found")


def test_context_is_not_repeated(grep: Any) -> None:
    grep.write("f.txt", "1\n2\nhit\n4\nhit\n6\n7\n8\n9\nhit\n")

    assert grep.text("grep", pattern="hit", context=2).split("\n") == [
        "f.txt-1- 1", "f.txt-2- 2", "f.txt:3: hit", "f.txt-4- 4", "f.txt:5: hit", "f.txt-6- 6", "f.txt-7- 7",
        "f.txt-8- 8", "f.txt-9- 9", "f.txt:10: hit",
    ]  # fmt: skip


def test_the_limit_with_context(grep: Any) -> None:
    grep.write("a.txt", "1\nhit\n3\n4\nhit\n6\n")
    grep.write("b.txt", "1\nhit\n")

    assert grep.text("grep", pattern="hit", context=1, limit=1) == (
        "a.txt-1- 1\na.txt:2: hit\na.txt-3- 3\n\n[1 matches limit reached. Use limit=2 for more, or refine pattern]"
    )
    assert grep.text("grep", pattern="hit", limit=2).startswith("a.txt:2: hit\na.txt:5: hit\n\n[2 matches")
    assert "limit" not in grep.text("grep", pattern="hit", limit=3)
    assert grep.text("grep", pattern="hit", limit=0).startswith("a.txt:2: hit\n\n[1 matches limit")


def test_globs(grep: Any) -> None:
    for name in ("a.py", "src/b.py", "src/deep/c.py", "src/d.pyi", "e.txt"):
        grep.write(name, "hit\n")

    def files(glob: str, **more: Any) -> list[str]:
        return [line.split(":")[0] for line in grep.text("grep", pattern="hit", glob=glob, **more).split("\n")]

    assert files("*.py") == ["a.py", "src/b.py", "src/deep/c.py"]
    assert files("src/*.py") == ["src/b.py"]
    assert files("src/**/*.py") == ["src/b.py", "src/deep/c.py"]
    assert files("*.{pyi,txt}") == ["e.txt", "src/d.pyi"]
    assert files("deep/*.py", path="src") == ["deep/c.py"]
    assert grep.error("grep", pattern="hit", glob="[") == "Invalid glob pattern '[': '[' without ']'"


def test_a_glob_does_not_bring_back_what_is_ignored(grep: Any) -> None:
    grep.write(".gitignore", "*.log\n!keep.log\n")
    for name in ("a.log", "keep.log", "a.txt"):
        grep.write(name, "hit\n")

    assert grep.text("grep", pattern="hit", glob="*.log") == "keep.log:1: hit"
    assert grep.text("grep", pattern="hit", path="a.log") == "a.log:1: hit"


def test_encodings(grep: Any) -> None:
    grep.write("bom.txt", "\ufeffhit at the start\n")
    grep.write("latin.txt", b"hit caf\xe9, in a text that is long enough to be one\n")
    grep.write("wide.txt", "\ufeffone\r\nhit größe\r\n".encode("utf-16-le"))

    assert grep.text("grep", pattern="^hit").split("\n") == [
        "bom.txt:1: hit at the start",
        "latin.txt:1: hit caf\ufffd, in a text that is long enough to be one",
        "wide.txt:2: hit größe",
    ]


def test_binary_files_are_named_and_not_shown(grep: Any) -> None:
    grep.write("a.bin", b"hit\n\0\n" + b"hit\n" * 500)
    grep.write("b.txt", "hit\n")

    assert grep.text("grep", pattern="hit") == "b.txt:1: hit\n\n[1 binary file matches]"
    assert grep.text("grep", pattern="hit", path="a.bin") == "No matches found\n\n[1 binary file matches]"


def test_long_lines_are_cut(grep: Any) -> None:
    grep.write("a.txt", "é" * 499 + "hit\n")
    grep.write("b.txt", "\U0001f648" * 300_000 + "hit\n")

    text = grep.text("grep", pattern="hit")

    assert text == (
        "a.txt:1: " + "é" * 499 + "h... [truncated]\n"
        "b.txt:1: " + "\U0001f648" * 500 + "... [truncated]\n\n"
        "[Some lines truncated to 500 chars. Use read tool to see full lines]"
    )


def test_output_is_bounded(grep: Any) -> None:
    for number in range(5):
        grep.write(f"{number}.txt", ("hit " + "x" * 300 + "\n") * 5000)

    outcome = grep.call("grep", pattern="hit", limit=1_000_000_000)

    text = outcome.result.content[0].text
    assert text.endswith("\n\n[50.0KB limit reached]")
    assert len(text) < 51_300
    assert outcome.result.details["truncation"]["outputBytes"] <= 51_200


def test_many_files_are_searched_in_order(grep: Any) -> None:
    for number in range(900):
        grep.write(f"{number % 10}/{'long' * 50}-{number:05}.txt", "hit\n" if number % 60 == 7 else "miss\n")

    lines = grep.text("grep", pattern="hit").split("\n")

    assert len(lines) == 15
    assert lines == sorted(lines)


@pytest.mark.parametrize("pattern", ["(", "[a", "a{2,1}", "*"])
def test_a_pattern_that_is_none_is_an_error(grep: Any, pattern: str) -> None:
    assert "regex parse error" in grep.error("grep", pattern=pattern)
    grep.write("a.txt", "x\n")
    assert "regex parse error" in grep.error("grep", pattern=pattern)


@pytest.mark.parametrize("pattern", ["a\nb", "a\0b"])
def test_a_pattern_of_several_lines_is_an_error(grep: Any, pattern: str) -> None:
    assert "one line" in grep.error("grep", pattern=pattern)


def test_an_empty_directory(grep: Any) -> None:
    assert grep.text("grep", pattern="") == "No matches found"
    (grep.root.parent / "outside.txt").write_text("hit\n")
    assert grep.text("grep", pattern="hit") == "No matches found"


def test_a_missing_path_is_named(grep: Any) -> None:
    assert grep.error("grep", pattern="x", path="nope") == f"Path not found: {grep.root}/nope"


def test_odd_file_names(grep: Any) -> None:
    grep.write("-rf.txt", "hit\n")
    grep.write("with space:1: x.txt", "hit\n")
    (grep.root / os.fsdecode(b"caf\xe9.txt")).write_text("hit\n")

    assert grep.text("grep", pattern="hit").split("\n") == [
        "-rf.txt:1: hit", "caf\ufffd.txt:1: hit", "with space:1: x.txt:1: hit"
    ]  # fmt: skip


def test_links_are_not_followed(grep: Any) -> None:
    grep.write("real/a.txt", "hit\n")
    (grep.root / "loop").symlink_to(".")
    (grep.root / "link.txt").symlink_to("real/a.txt")

    assert grep.text("grep", pattern="hit") == "real/a.txt:1: hit"
    assert grep.text("grep", pattern="hit", path="link.txt") == "link.txt:1: hit"
    assert grep.text("grep", pattern="hit", path="loop/real") == "a.txt:1: hit"


def test_files_that_cannot_be_read_are_counted(grep: Any) -> None:
    grep.write("b.txt", "hit\n")

    async def run() -> tuple[list[str], int]:
        search = Search(Query(line_pattern("hit"), ignore_case=False, context=0, limit=10), str(grep.root))
        await search.start(Batch(["a.txt", "b.txt", "c.txt"]))
        async with aclosing(search.lines()) as lines:
            return [line.path async for line in lines], search.unreadable

    assert asyncio.run(run()) == (["b.txt"], 2)


def test_a_user_configuration_of_ripgrep_changes_nothing(grep: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    grep.write("a.txt", "Hit\n")
    grep.write("rc", "--ignore-case\n--files\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(grep.root / "rc"))

    assert grep.text("grep", pattern="hit") == "No matches found"


@pytest.mark.parametrize(
    ("answer", "suits"),
    [
        ("ripgrep 14.1.0", True),
        ("ripgrep 15.2.0 (rev 1)", True),
        ("ripgrep 13.0.0", False),
        ("rg for Ruby 20.1", False),
    ],
)
def test_only_a_ripgrep_that_finds_the_same_is_used(
    work: Any, monkeypatch: pytest.MonkeyPatch, answer: str, suits: bool
) -> None:
    program = work.write("bin/rg", f"#!/bin/sh\necho '{answer}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setattr(sys, "executable", "/no/such/python")

    assert find_ripgrep() == (str(program) if suits else None)


def test_a_program_that_cannot_be_run_is_no_ripgrep(work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    program = work.write("bin/rg", "#!/no/such/program\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))

    assert find_ripgrep() != str(program)


CATASTROPHE = "(a|a|aa)+$"


@pytest.mark.parametrize("how", ["abort", "timeout"])
def test_a_pattern_that_takes_for_ever_can_be_stopped(work: Any, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(_search, "find_ripgrep", lambda: None)
    work.write("a.txt", "a" * 200 + "c\n")
    if how == "timeout":
        work.configure(search_timeout=1)
    controller = AbortController()

    async def run() -> tuple[Any, float]:
        loop = asyncio.get_running_loop()
        if how == "abort":
            loop.call_later(1, controller.abort)
        began = time.monotonic()
        outcome = await work.run("grep", {"pattern": CATASTROPHE}, signal=controller.signal)
        return outcome, time.monotonic() - began

    outcome, seconds = asyncio.run(run())

    assert outcome.is_error
    assert outcome.result.content[0].text == (
        "Operation aborted" if how == "abort" else "Tool grep timed out after 1 seconds"
    )
    assert 0.9 < seconds < 8


def test_large_files_are_searched_in_their_turn(grep: Any) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        grep.write(name, "hit\n")
    with (grep.root / "b.txt").open("ab") as file:
        line = b"x" * 999 + b"\n"
        for _ in range(LARGE_BYTES // 1_000_000 + 1):
            file.write(line * 1000)
        file.write(b"hit again\n")

    assert grep.text("grep", pattern="hi[t]", context=1).split("\n") == [
        "a.txt:1: hit", "b.txt:1: hit", f"b.txt-2- {'x' * 500}... [truncated]",
        f"b.txt-68001- {'x' * 500}... [truncated]", "b.txt:68002: hit again", "c.txt:1: hit", "",
        "[Some lines truncated to 500 chars. Use read tool to see full lines]",
    ]  # fmt: skip


def test_a_huge_file_without_lines_takes_no_memory(grep: Any) -> None:
    for name, content in (("image.bin", b"\0"), ("dump.json", b"{")):
        os.truncate(grep.write(name, content * 9000), 2 * 1024**3)
    grep.write("z.txt", "hit\n")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss

    text = grep.text("grep", pattern="hit")

    assert text == "z.txt:1: hit\n\n[1 large binary file was not searched. 1 file could not be read]"
    after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # in KiB, on macOS in bytes
    assert after < max(before, 800_000 if sys.platform == "linux" else 800_000_000)


def test_a_file_whose_name_means_the_standard_input(grep: Any) -> None:
    grep.write("-", "hit\n")

    assert grep.text("grep", pattern="hit") == "-:1: hit"
    assert grep.text("grep", pattern="hit", path="-") == "-:1: hit"
