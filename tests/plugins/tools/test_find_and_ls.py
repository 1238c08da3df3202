"""``find`` and ``ls``: order, limits, and what ``.gitignore`` files leave out."""

from __future__ import annotations

import os
import subprocess
import time
from typing import Any

import pytest

from pi_plugins.tools._glob import path_test
from pi_plugins.tools._ignore import _Patterns
from pi_plugins.tools._threads import Stop
from pi_plugins.tools._walk import Walk


def found(work: Any, **arguments: Any) -> list[str]:
    return work.text("find", **{"pattern": "*", **arguments}).split("\n")


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.ts", "a/b.ts", True),
        ("*", ".hidden", True),
        ("?.ts", "ab.ts", False),
        ("src/*.ts", "src/a.ts", True),
        ("src/*.ts", "x/src/a.ts", False),
        ("src/*.ts", "src/x/a.ts", False),
        ("/src/a", "src/a", True),
        ("/a", "src/a", False),
        ("src/**", "src/x/y", True),
        ("src/**", "src", False),
        ("**/a/**/z", "x/a/z", True),
        ("**/a/**/z", "a/b/c/z", True),
        ("**/a/**/z", "b/z", False),
        ("**", "a/b", True),
        ("a**b", "axxb", True),
        ("*.{ts,tsx}", "a.tsx", True),
        ("{a,b{c,d}}.x", "bd.x", True),
        ("{a,b}/{c,d}", "b/c", True),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False),
        ("[^a]x", "bx", True),
        ("[]a]x", "]x", True),
        ("[[:digit:]]x", "7x", True),
        ("a[/]b", "a/b", False),
        (r"\*.x", "*.x", True),
        (r"\*.x", "a.x", False),
        (r"[\]]x", "]x", True),
        ("a.b", "aXb", False),
        ("*a*b*c", "xaxbxc", True),
        ("*a*b*c", "xaxcxb", False),
    ],
)
def test_globs(pattern: str, path: str, matches: bool) -> None:
    assert path_test(pattern)(path, path.rsplit("/", 1)[-1]) is matches


@pytest.mark.parametrize(
    ("pattern", "words"),
    [("[a", "'[' without ']'"), ("{a,b", "'{' without '}'"), ("[z-a]", "bad character range"), ("{a,b}" * 11, "1000")],
)
def test_malformed_globs_are_errors(work: Any, pattern: str, words: str) -> None:
    assert words in work.error("find", pattern=pattern)


def test_no_pattern_takes_for_ever() -> None:
    began = time.monotonic()

    assert not path_test("*a" * 30 + "b")("a" * 250, "a" * 250)
    assert not path_test("**/a/" * 20 + "b")("a/" * 120 + "c", "c")
    assert _Patterns(["*a" * 30 + "b", "**/a/" * 20 + "b"]).verdict("a" * 250, "a" * 250) is None
    assert time.monotonic() - began < 2


def test_order_is_that_of_names_in_each_directory(work: Any) -> None:
    for name in ("b/2", "b/10", "a", "b.c", "B", ".d", "a-b/x"):
        work.write(name, "")

    assert found(work) == [".d", "B", "a", "a-b/", "a-b/x", "b/", "b/10", "b/2", "b.c"]
    assert found(work, limit=3)[:3] == [".d", "B", "a"]


def test_a_limit_that_is_just_enough_is_no_limit(work: Any) -> None:
    for name in "abc":
        work.write(name, "")

    assert found(work, limit=3) == ["a", "b", "c"]
    assert found(work, limit=2)[-1] == "[2 results limit reached. Use limit=4 for more, or refine pattern]"


def test_a_trailing_slash_means_directories(work: Any) -> None:
    work.write("build/out", "")
    work.write("sub/build", "")

    assert found(work, pattern="build/") == ["build/"]


def test_links_are_listed_and_not_followed(work: Any) -> None:
    work.write("real/a", "")
    (work.root / "loop").symlink_to(".")
    (work.root / "broken").symlink_to("nowhere")

    assert found(work) == ["broken", "loop", "real/", "real/a"]


def test_what_cannot_be_searched_is_named(work: Any) -> None:
    work.write("file", "")

    assert work.error("find", pattern="*", path="file") == f"Not a directory: {work.root}/file"
    assert work.error("find", pattern="*", path="nope") == f"Path not found: {work.root}/nope"


IGNORED = {
    ".gitignore": (
        "# comment\n\n*.log\n!keep.log\n/top\nbuild/\ndoc/*.txt\na/**/z\n\\#sharp\n\\!bang\ntrail \nspace\\ \nbad[\n"
    ),
    "sub/.gitignore": "!x.log\ninner\n",
    "sub/deep/.gitignore": "*\n!kept\n",
}
FILES = [
    "x.log", "keep.log", "top", "sub/top", "build/x", "sub/build", "doc/a.txt", "doc/b/c.txt", "a/z", "a/b/c/z",
    "b/a/z", "#sharp", "!bang", "trail", "sub/x.log", "sub/inner", "sub/deep/kept", "sub/deep/gone", "inner", "bad[",
    "sub/deep/x.log", "build2/x",
]  # fmt: skip
KEPT = [
    ".gitignore", "b/a/z", "bad[", "build2/x", "doc/b/c.txt", "inner", "keep.log", "sub/.gitignore", "sub/build",
    "sub/deep/kept", "sub/top", "sub/x.log",
]  # fmt: skip


@pytest.mark.parametrize("repository", [False, True])
def test_gitignore_files_with_and_without_a_repository(work: Any, repository: bool) -> None:
    for name in FILES:
        work.write(name, "")
    for name, text in IGNORED.items():
        work.write(name, text)
    work.write("space ", "")
    if repository:
        subprocess.run(["git", "init", "-q", str(work.root)], check=True)
        listed = subprocess.run(
            ["git", "-C", str(work.root), "-c", "core.excludesFile=/dev/null", "ls-files", "-o", "--exclude-standard"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        assert sorted(listed.stdout.split("\n")[:-1]) == KEPT

    walk = Walk(str(work.root), str(work.root), Stop(None))

    assert sorted(item.path for item in walk if item.is_file) == KEPT


def test_the_excludes_of_a_repository_count_and_its_own_directory_is_left_out(work: Any) -> None:
    subprocess.run(["git", "init", "-q", str(work.root)], check=True)
    work.write(".git/info/exclude", "*.tmp\n")
    work.write("a.tmp", "")
    work.write("b.txt", "")

    assert found(work) == ["b.txt"]


def test_a_directory_below_honours_the_rules_above_it(work: Any) -> None:
    work.write(".gitignore", "*.log\nout/\nsub/deep/x\n")
    work.write("sub/a.log", "")
    work.write("sub/b.txt", "")
    work.write("sub/deep/x", "")
    work.write("out/c.log", "")
    work.write("out/d.txt", "")

    assert found(work, path="sub") == ["b.txt", "deep/"]
    assert found(work, path="sub/deep") == ["No files found matching pattern"]
    assert found(work, path="out") == ["c.log", "d.txt"]


def test_rules_above_the_working_directory_count_only_in_a_repository(work: Any) -> None:
    (work.root.parent / ".gitignore").write_text("*\n")
    work.write("a.txt", "")

    assert found(work) == ["a.txt"]
    subprocess.run(["git", "init", "-q", str(work.root.parent)], check=True)
    (work.root.parent / ".gitignore").write_text("*.txt\n")
    assert found(work) == ["No files found matching pattern"]


def test_a_repository_in_a_repository_has_its_own_rules(work: Any) -> None:
    work.write(".gitignore", "*.txt\n")
    work.write("inner/a.txt", "")
    work.write("inner/.gitignore", "*.md\n")
    work.write("inner/b.md", "")
    subprocess.run(["git", "init", "-q", str(work.root / "inner")], check=True)

    assert found(work) == [".gitignore", "inner/", "inner/.gitignore", "inner/a.txt"]


def test_ls_sorts_without_regard_to_case(work: Any) -> None:
    for name in ("b", "A", "a", "C/x", ".d"):
        work.write(name, "")
    (work.root / "link").symlink_to("C")
    (work.root / "broken").symlink_to("nowhere")

    assert work.text("ls") == ".d\nA\na\nb\nbroken\nC/\nlink/"
    assert work.text("ls", limit=7) == work.text("ls")
    assert work.text("ls", path="C") == "x"


def test_ls_of_nothing_and_of_no_directory(work: Any) -> None:
    work.write("file", "")
    (work.root / "empty").mkdir()

    assert work.text("ls", path="empty") == "(empty directory)"
    assert work.error("ls", path="file") == f"Not a directory: {work.root}/file"


def test_lists_are_bounded(work: Any) -> None:
    for number in range(300):
        work.write(f"{'n' * 200}{number:03}", "")

    for tool, arguments in (("ls", {}), ("find", {"pattern": "*"})):
        outcome = work.call(tool, **arguments)
        text = outcome.result.content[0].text
        assert text.endswith("\n\n[50.0KB limit reached]")
        assert outcome.result.details["truncation"]["totalLines"] == 300
        assert len(text) < 51_300


def test_names_that_are_no_utf8_and_names_of_two_lines(work: Any) -> None:
    (work.root / os.fsdecode(b"caf\xe9")).touch()
    (work.root / "two\nlines").touch()

    assert work.text("ls") == "caf\ufffd\ntwo\\nlines"
    assert found(work) == ["caf\ufffd", "two\\nlines"]


def test_ignore_files_that_are_none_do_not_hang(work: Any) -> None:
    os.mkfifo(work.root / ".gitignore")
    work.write("sub/.gitignore/x", "")

    assert found(work) == [".gitignore", "sub/", "sub/.gitignore/", "sub/.gitignore/x"]
