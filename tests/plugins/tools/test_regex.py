"""The regular expressions of ``grep``: what is refused, and that both programs find the same lines."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pi_plugins.tools import ToolsOptions, ToolsPlugin, _search
from pi_plugins.tools._errors import ToolError
from pi_plugins.tools._regex import MAX_CHARACTERS, line_pattern


@pytest.mark.parametrize(
    ("pattern", "words", "column"),
    [
        ("a(b", "unclosed group", 1),
        ("a)b", "unopened group", 1),
        ("a[b", "unclosed character class", 1),
        ("[]", "unclosed character class", 0),
        ("a|*", "a repetition needs something to repeat", 2),
        ("^*", "a repetition needs something to repeat", 2),
        (r"\b+", "a repetition needs something to repeat", 3),
        ("(?i)+", "a repetition needs something to repeat", 5),
        ("{2}", "a repetition needs something to repeat", 0),
        ("a**", "a repetition of a repetition", 3),
        ("a++", "a repetition of a repetition", 3),
        ("a{2,1}", "smaller than the first", 1),
        ("a{1001}", "the most repetitions are 1000", 1),
        ("(?:a{1000}){1000}", "its repetitions make it too large", 17),
        ("(" * 200, "nested more than 100 deep", 101),
        ("x(?=y)", "look-around and conditions are not", 1),
        ("x(?!y)", "look-around and conditions are not", 1),
        ("(?<=y)x", "look-around and conditions are not", 0),
        ("(?P=name)", "this kind of group is not supported", 0),
        ("(?x)a b", "the flag x is not supported", 1),
        ("(?-u:a)", "the flag -u is not supported", 1),
        (r"(a)\1", "backreferences are not supported", 3),
        (r"\p{L}", "classes of Unicode are not supported", 0),
        (r"\<a", r"\< is not supported", 0),
        (r"\Ba", r"\B is not supported", 0),
        (r"\q", r"\q is not supported", 0),
        (r"\é", r"\é is not supported", 0),
        ("a\\", "a backslash at the end", 1),
        (r"a\n", r"\n can match nothing", 1),
        (r"\x0a", "no character of a line of text", 0),
        (r"\u{110000}", "no character of a line of text", 0),
        (r"[\n]", r"\n can match nothing", 1),
        (r"[\x0a]", "no character of a line of text", 1),
        ("[a[b]]", "a class in a class is not supported", 2),
        ("[a&&b]", "operations on classes are not supported", 2),
        ("[a--b]", "operations on classes are not supported", 2),
        ("[b-a]", "a range must go from one character to a later one", 4),
        (r"[a-\d]", "a range must go from one character to a later one", 5),
        (r"[\b]", r"\b is no character", 1),
    ],
)
def test_what_is_refused_is_named_and_shown(pattern: str, words: str, column: int) -> None:
    with pytest.raises(ToolError) as raised:
        line_pattern(pattern)

    first, shown, mark, error = str(raised.value).split("\n")
    assert (first, shown) == ("regex parse error:", f"    {pattern}")
    assert mark == f"    {' ' * column}^"
    assert error.startswith("error: ")
    assert words in error


def test_patterns_of_several_lines_and_endless_ones_are_refused() -> None:
    for pattern in ("a\nb", "a\rb", "a\0b"):
        with pytest.raises(ToolError, match="one line of text"):
            line_pattern(pattern, literal=True)
    with pytest.raises(ToolError, match="the most are 10000"):
        line_pattern("a" * (MAX_CHARACTERS + 1))


@given(st.text(alphabet="()[]{}*+?|^$\\.-,:<=!&ab1é PdDwWsSbBxuUizAn~", max_size=20))
def test_every_pattern_is_taken_or_refused(pattern: str) -> None:
    import re

    try:
        translated = line_pattern(pattern)
    except ToolError:
        return
    re.compile(translated.python)


ATOMS = [
    "a", "b", "foo", "_", "1", " ", "\t", "é", "É", "ß", "💥", "-", "{", "}", "{a", "]", r"\{", r"\.", r"\\", "/", "&",
    "~", "#", r"\x41", r"\u00e9", r"\u{1F4A5}", r"\t", ".", "^", "$", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", r"\b",
    r"\A", r"\z",
    "[ab]", "[^a]", "[a-c]", r"[^\w]", r"[\W\d]", r"[^\S]", r"[\D\s]", r"[^\Da]", "[[:alpha:]]", "[^[:space:]]",
    "[[:^digit:]]", "[]a]", "[^]a]", "[a-]", "[-a]", "[é-ü]", r"[\x01-\x20]", r"[\t-\x7f]", r"[\]\[]", "[+*.]", "[~]",
    r"[\u{d000}-\u{e000}]", r"[^\x01-\x7f]", "(?i)", "(?-i)", "|",
]  # fmt: skip
REPEATS = ["", "", "", "*", "+", "?", "{2}", "{1,2}", "{,2}", "{1,}", "*?", "+?", "{2}?", "{}"]
GROUPS = ["(", "(?:", "(?i:", "(?-i:", "(?s:", "(?P<name>"]
PIECES = [
    b"a", b"b", b"foo", b"A", b"_", b"1", b"23", b" ", b"\t", "é".encode(), "É".encode(), "ß".encode(), "💥".encode(),
    b"\xff", b"\xe9", b"\n", b"\n", b"\n", b"\r\n", b"\r\n", b"\r", b"{", b"}", b"]", b"-", b".", b"\\", b"\x0b",
    b"\x1c", b"\xc2\x85", b"\xc2\xa0", b"\xe2\x80\xa8", b"~", b"&", b"/", b"#",
]  # fmt: skip


def repeated(pattern: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(st.tuples(pattern, st.sampled_from(REPEATS)).map("".join), min_size=1, max_size=4).map("".join)


PATTERNS = st.recursive(
    repeated(st.sampled_from(ATOMS)),
    lambda inner: repeated(st.tuples(st.sampled_from(GROUPS), inner, st.just(")")).map("".join)),
    max_leaves=6,
)
CONTENTS = st.tuples(
    st.sampled_from([b"", b"\xef\xbb\xbf"]), st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join)
).map(b"".join)
TREES = st.dictionaries(
    st.sampled_from(["a.txt", "b/c.txt", "b/d.md", ".e/f", "x.log", "b/.gitignore"]), CONTENTS, min_size=1, max_size=4
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    return (tmp_path_factory.mktemp("tree") for _ in iter(int, 1))


@pytest.mark.skipif(_search.find_ripgrep() is None, reason="there is no ripgrep")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example({"a.txt": b"a\r\r\n\rb\r\n"}, "a$|^b", False, False, 1, 100)
@example({"a.txt": b"\xff\n\xe9\n"}, ".", False, False, 0, 100)
@given(TREES, PATTERNS, st.booleans(), st.booleans(), st.integers(0, 2), st.sampled_from([1, 2, 100]))
def test_both_programs_find_the_same(
    folders: Iterator[Path],
    tree: dict[str, bytes],
    pattern: str,
    literal: bool,
    ignore_case: bool,
    context: int,
    limit: int,
) -> None:
    root = next(folders)
    for name, content in tree.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(content)
    arguments = {"pattern": pattern, "literal": literal, "ignoreCase": ignore_case, "context": context, "limit": limit}

    with_ripgrep = found(root, arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_search, "find_ripgrep", lambda: None)
        without = found(root, arguments)

    assert with_ripgrep == without


def found(root: Path, arguments: dict[str, Any]) -> Any:
    from pi_core import ToolContext

    tool = next(tool for tool in ToolsPlugin(ToolsOptions(cwd=str(root))).register_tools() if tool.name == "grep")
    try:
        return asyncio.run(tool.run(arguments, ToolContext("1"))).to_json()
    except ToolError as error:
        return str(error)
