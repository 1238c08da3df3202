from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_plugins.modes.interactive._growing import GrowingMarkdown
from pi_plugins.modes.interactive._markdown import Answer
from pi_plugins.modes.interactive.paper import Paper

PAPER = Paper(color=False, styles=False)

PARTS = (
    "# title\n", "some words of a paragraph\n", "\n", "- item\n", "- other\n", "  - nested\n", "1. one\n", "7. seven\n",
    "```python\n", "```\n", "x = 'a'\n", "    indented\n", "> quoted\n", "| a | b |\n|---|---|\n| 1 | 2 |\n", "---\n",
    "~~~\n", "long " * 20 + "\n", "<div>\n", "===\n", "*soft* **bold\n", "word", "  ```js\n", "* star\n", "10. ten\n",
)  # fmt: skip


def whole(text: str) -> list[str]:
    return [line for line in PAPER.lines(Answer.parse(text), 60) if line]


def in_pieces(text: str, cuts: random.Random) -> list[str]:
    growing, lines, at = GrowingMarkdown(), list[str](), 0
    while at < len(text):
        size = cuts.randint(1, 40)
        growing.feed(text[at : at + size])
        at += size
        for piece in growing.take():
            lines += PAPER.lines(piece.content, 60)
        draft = growing.draft(10)
        if draft is not None:
            PAPER.lines(draft, 60)
    for piece in growing.take(final=True):
        lines += PAPER.lines(piece.content, 60)
    return [line for line in lines if line]


@settings(max_examples=200, deadline=None)
@given(parts=st.lists(st.sampled_from(PARTS), max_size=25), seed=st.integers(0, 1000))
def test_the_pieces_are_what_the_whole_is(parts: list[str], seed: int) -> None:
    text = "".join(parts)
    assert in_pieces(text, random.Random(seed)) == whole(text)


def test_a_paragraph_is_given_away_when_the_next_block_begins() -> None:
    growing = GrowingMarkdown()
    growing.feed("First words.\n\n")
    assert growing.take() == []
    growing.feed("Second words.\n")
    assert [PAPER.lines(piece.content, 60) for piece in growing.take()] == [["  First words."]]


def test_items_of_a_list_are_given_away_one_by_one_with_their_numbers() -> None:
    growing = GrowingMarkdown()
    shown: list[str] = []
    for _ in range(4):
        growing.feed("1. item\n")
        for piece in growing.take():
            shown += PAPER.lines(piece.content, 60)
    assert shown == ["   1. item", "   2. item", "   3. item"]


def test_lines_of_an_open_fence_are_given_away() -> None:
    growing = GrowingMarkdown()
    growing.feed("```python\n" + "".join(f"line_{number} = 1\n" for number in range(20)) + "unfin")
    (piece,) = growing.take()
    assert len(PAPER.lines(piece.content, 60)) == 20
    draft = growing.draft(5)
    assert draft is not None
    assert PAPER.lines(draft, 60) == ["    unfin"]


@pytest.mark.parametrize("unit", ["word ", "word\n", "- item\n", "```\ncode\n```\n", "# title\n"])
def test_the_tail_stays_short_however_long_the_text_gets(unit: str) -> None:
    growing = GrowingMarkdown()
    longest = 0
    for _ in range(3000):
        growing.feed(unit)
        growing.take()
        longest = max(longest, len(growing._tail))
    assert longest <= 6000
