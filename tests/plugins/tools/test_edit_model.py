"""``edit`` against a simple model, and every tool that reads text against random bytes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pi_core import PiError, ToolContext, ToolResult
from pi_plugins.tools import ToolsOptions, ToolsPlugin


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("model")


def call(root: Path, name: str, **arguments: Any) -> ToolResult | str:
    """Call a tool and return its result, or the text of its error."""
    tool = next(tool for tool in ToolsPlugin(ToolsOptions(cwd=str(root))).register_tools() if tool.name == name)
    try:
        return asyncio.run(tool.run(arguments, ToolContext("1")))
    except PiError as error:
        return str(error)


def unix(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n")


def occurrences(text: bytes, wanted: bytes) -> int:
    return sum(text.startswith(wanted, start) for start in range(len(text)))


LINES = st.lists(st.tuples(st.text("abc\u00e9", max_size=3), st.sampled_from(["\n", "\r\n"])), min_size=1, max_size=12)
NEW_TEXTS = st.text("abcX\n", max_size=5)


@settings(deadline=None)
@given(LINES, st.data())
def test_an_edit_changes_what_it_names_and_no_other_byte(
    root: Path, lines: list[tuple[str, str]], data: st.DataObject
) -> None:
    mark = data.draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    before = "".join(map("".join, lines)).encode()
    path = root / "file.txt"
    path.write_bytes(mark + before)
    text = unix(before).decode()
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    old, new = text[start:end], data.draw(NEW_TEXTS)

    result = call(root, "edit", path="file.txt", edits=[{"oldText": old, "newText": new}])

    after = path.read_bytes()
    assert after.startswith(mark)
    after = after[len(mark) :]
    if isinstance(result, str):
        assert after == before
        assert occurrences(unix(before), old.encode()) > 1 or old == new
        return
    assert occurrences(unix(before), old.encode()) == 1
    assert unix(after).decode() == text[:start] + new + text[end:]
    kept_before, kept_after = text[:start].count("\n"), text[end:].count("\n")
    old_lines, new_lines = before.split(b"\n"), after.split(b"\n")
    assert new_lines[:kept_before] == old_lines[:kept_before]
    assert new_lines[len(new_lines) - kept_after :] == old_lines[len(old_lines) - kept_after :]
    if all(ending == lines[0][1] for _, ending in lines):
        assert after == (unix(after).replace(b"\n", lines[0][1].encode()))


@settings(deadline=None)
@given(st.lists(st.text("ab", min_size=1, max_size=4), min_size=2, max_size=8), st.data())
def test_several_edits_are_made_at_once(root: Path, words: list[str], data: st.DataObject) -> None:
    path = root / "file.txt"
    pieces = [f"{number}{word}." for number, word in enumerate(words)]  # each of them is there once
    path.write_text("".join(pieces))
    chosen = data.draw(st.sets(st.integers(0, len(pieces) - 1), min_size=1))
    order = data.draw(st.permutations(sorted(chosen)))
    new = {number: data.draw(st.text("xy\n", max_size=3)) for number in order}

    result = call(
        root, "edit", path="file.txt", edits=[{"oldText": pieces[number], "newText": new[number]} for number in order]
    )

    assert isinstance(result, ToolResult)
    assert path.read_text() == "".join(new.get(number, piece) for number, piece in enumerate(pieces))


@settings(deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=30).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_no_bytes_break_a_tool(root: Path, content: bytes) -> None:
    path = root / "folder" / "file.bin"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)

    results = [
        call(root, "read", path="folder/file.bin"),
        call(root, "edit", path="folder/file.bin", edits=[{"oldText": "a", "newText": "b"}]),
        call(root, "write", path="folder/file.bin", content="new\n"),
        call(root, "ls", path="folder"),
        call(root, "find", pattern="*.bin"),
    ]

    for result in results:
        text = result if isinstance(result, str) else result.content[0].text
        assert isinstance(text.encode(), bytes)  # it has no lone surrogates


@settings(deadline=None, max_examples=20)
@example(b"\x80", "a")
@given(st.binary(max_size=60), st.sampled_from(["a", ".", "^", "\\w+$", "\u00e9"]))
def test_no_bytes_break_a_command_or_a_search(root: Path, content: bytes, pattern: str) -> None:
    (root / "printed").write_bytes(content)

    shown = call(root, "bash", command="cat printed")
    lines = call(root, "grep", pattern=pattern, path="printed")

    assert isinstance(shown, ToolResult)
    assert isinstance(lines, ToolResult)
    assert shown.content[0].text == (content.decode("utf-8", "replace") or "(no output)")
    assert isinstance(lines.content[0].text.encode(), bytes)


TEXTS = st.text(st.characters() | st.sampled_from("\ud800\udcff\0\n\r*?[]{}!/\\~@.-ab"), max_size=8)


@settings(deadline=None, max_examples=60)
@example("\udc80", "", "")
@given(TEXTS, TEXTS, TEXTS)
def test_no_arguments_break_a_tool(root: Path, path: str, text: str, other: str) -> None:
    folder = root / "arguments"
    folder.mkdir(exist_ok=True)
    (folder / "a").write_text("ab\n")
    inside = f"{folder}/{path.lstrip('/')}".replace("..", "")

    results = [
        call(root, "read", path=inside),
        call(root, "ls", path=inside),
        call(root, "write", path=f"{folder}/b", content=text),
        call(root, "edit", path=f"{folder}/a", edits=[{"oldText": text, "newText": other}]),
        call(root, "grep", pattern=text, glob=other, path=str(folder)),
        call(root, "grep", pattern=text, literal=True, path=str(folder)),
        call(root, "find", pattern=text, path=str(folder)),
    ]

    for result in results:
        shown = result if isinstance(result, str) else result.content[0].text
        assert isinstance(shown.encode(), bytes)  # it has no lone surrogates
