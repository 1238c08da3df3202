"""What the tools share with other plugins: cutting texts, sizes, and one change of a file at a time."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_plugins.tools import format_size, truncate_head, truncate_line, truncate_tail, with_file_mutation_queue

TEXTS = st.text("ab\n\u00e9\U0001f648", max_size=40)


def lines_of(text: str) -> list[str]:
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def fits(lines: list[str], max_lines: int, max_bytes: int) -> bool:
    return len(lines) <= max_lines and len("\n".join(lines).encode()) <= max_bytes


@given(TEXTS, st.integers(1, 6), st.integers(1, 20))
def test_the_head_is_the_most_whole_lines_that_fit(text: str, max_lines: int, max_bytes: int) -> None:
    lines = lines_of(text)
    shown = truncate_head(text, max_lines=max_lines, max_bytes=max_bytes)

    assert (shown.total_lines, shown.total_bytes) == (len(lines), len(text.encode()))
    if fits(lines, max_lines, max_bytes):
        assert (shown.content, shown.truncated) == (text, False)
        return
    most = max(number for number in range(len(lines) + 1) if fits(lines[:number], max_lines, max_bytes))
    assert shown.content == "\n".join(lines[:most])
    assert shown.truncated_by == ("lines" if most == max_lines else "bytes")
    assert shown.output_lines == most
    assert shown.first_line_exceeds_limit == (most == 0)


@given(TEXTS, st.integers(1, 6), st.integers(4, 20))
def test_the_tail_is_the_most_whole_lines_that_fit(text: str, max_lines: int, max_bytes: int) -> None:
    lines = lines_of(text)
    shown = truncate_tail(text, max_lines=max_lines, max_bytes=max_bytes)

    assert (shown.total_lines, shown.total_bytes) == (len(lines), len(text.encode()))
    if fits(lines, max_lines, max_bytes):
        assert (shown.content, shown.truncated) == (text, False)
        return
    most = max(number for number in range(len(lines) + 1) if fits(lines[len(lines) - number :], max_lines, max_bytes))
    assert shown.last_line_partial == (most == 0)
    if most:
        assert shown.content == "\n".join(lines[-most:])
        assert shown.truncated_by == ("lines" if most == max_lines else "bytes")
    else:
        assert lines[-1].endswith(shown.content)
        assert max_bytes - 4 < len(shown.content.encode()) <= max_bytes


def test_surrogates_are_cut_as_text() -> None:
    assert truncate_head("\ud800").content == "\ufffd"
    assert truncate_tail("\ud83d\ude48").content == "\U0001f648"


def test_lines_and_sizes() -> None:
    assert truncate_line("a" * 500) == ("a" * 500, False)
    assert truncate_line("a" * 501) == ("a" * 500 + "... [truncated]", True)
    assert [format_size(size) for size in (0, 1023, 1024, 1536, 2 * 1024 * 1024)] == [
        "0B", "1023B", "1.0KB", "1.5KB", "2.0MB"
    ]  # fmt: skip


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_one_change_of_a_file_at_a_time_under_all_its_names(work: Any, link: Any) -> None:
    path = work.write("a.txt", "one\n")
    link(path, work.root / "b.txt")
    order: list[str] = []

    async def run() -> None:
        inside, go_on = asyncio.Event(), asyncio.Event()

        async def hold() -> str:
            inside.set()
            await go_on.wait()
            order.append("held")
            return "result"

        held = asyncio.create_task(with_file_mutation_queue(Path(path), hold))
        await inside.wait()
        edit = asyncio.create_task(work.run("edit", {"path": "b.txt", "edits": [{"oldText": "one", "newText": "two"}]}))
        edit.add_done_callback(lambda _: order.append("edited"))
        other = await work.run("write", {"path": "c.txt", "content": "another file does not wait"})
        assert not other.is_error
        go_on.set()
        assert await held == "result"
        assert not (await edit).is_error

    asyncio.run(run())

    assert order == ["held", "edited"]
    assert path.read_text() == "two\n"


def test_a_change_that_fails_lets_the_next_one_in(work: Any) -> None:
    async def fail() -> None:
        raise ValueError("no")

    async def run() -> None:
        with pytest.raises(ValueError, match="no"):
            await with_file_mutation_queue(work.root / "new.txt", fail)
        assert not (await work.run("write", {"path": "new.txt", "content": "x"})).is_error

    asyncio.run(run())
