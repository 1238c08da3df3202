"""What ``.gitignore`` files leave out, compared with git itself on generated trees."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_plugins.tools._threads import Stop
from pi_plugins.tools._walk import Walk

NAMES = ["a", "b", "ab", "a.log", "b.txt", ".x", "build", "a b", "[x]", "#h", "!n", "A", "x y ", "foo.c"]
LINES = [
    "a", "b", "*.log", "*", "**", "a*", "*b", "?", "[ab]", "[!a]", "[^a]", "[a-c]", "build", "**/a", "a/**", "a/**/b",
    "**/b/**", "/a", "/*", "a/", "*/", "!a", "!*.log", "!/a", "!b/", "#h", "\\#h", "\\!n", "a\\ b", "a b", "x y\\ ",
    "[[]x]", "\\[x\\]", "[]a]", "[[:alpha:]]", "a/b", "a/*", "!a/b", "*/b", "**/", "a**b", "f*.?", "[a", "\\a", "a\\",
    "*\\", "!", "!!a", "", "  ", "# c", "/**", "***", "[a/]b", "[!/]", "[z-a]", "[\\]]x", "{a,b}", "a//b", "./a",
    "[!]a]",
]  # fmt: skip
FILES = st.lists(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(tuple), min_size=1, max_size=12, unique=True
)
IGNORE = st.tuples(
    st.sampled_from(["", "\ufeff"]), st.lists(st.sampled_from(LINES), max_size=5), st.sampled_from(["\n", "\r\n"])
).map(lambda parts: parts[0] + "".join(line + parts[2] for line in parts[1]))


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    return (tmp_path_factory.mktemp("tree") for _ in iter(int, 1))


@settings(max_examples=40, deadline=None)
@given(FILES, st.lists(IGNORE, min_size=1, max_size=4))
def test_the_same_files_as_git(roots: Iterator[Path], files: list[tuple[str, ...]], ignores: list[str]) -> None:
    root = next(roots)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    folders = [root]
    for parts in files:
        path = root.joinpath(*parts)
        if not any(parent.is_file() for parent in path.parents) and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            folders.append(path.parent)
    for number, ignore in enumerate(ignores):
        (folders[number * len(folders) // len(ignores)] / ".gitignore").write_bytes(ignore.encode())

    listed = subprocess.run(
        ["git", "-C", str(root), "-c", "core.excludesFile=/dev/null", "ls-files", "-o", "-z", "--exclude-standard"],
        check=True, capture_output=True,
    )  # fmt: skip

    walked = sorted(found.path for found in Walk(str(root), str(root), Stop(None)) if found.is_file)
    assert walked == sorted(os.fsdecode(name) for name in listed.stdout.split(b"\0") if name)
