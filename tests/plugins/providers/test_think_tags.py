"""Thinking that a server writes into the text becomes thinking, however the text is cut into pieces."""

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_core import AssistantMessage, MessageAssembler, Model, TextContent, ThinkingContent
from pi_plugins.providers._completions_compat import compat_of
from pi_plugins.providers._completions_decode import CompletionsDecoder
from pi_plugins.providers._think_tags import ThinkTags


def split(pieces: Iterable[str]) -> tuple[str, str]:
    tags = ThinkTags()
    thinking, text = "", ""
    for piece in pieces:
        more_thinking, more_text = tags.feed(piece)
        assert not (more_thinking and text), "thinking after text"
        thinking, text = thinking + more_thinking, text + more_text
    more_thinking, more_text = tags.finish()
    return thinking + more_thinking, text + more_text


@pytest.mark.parametrize(
    ("answer", "thinking", "text"),
    [
        ("<think>\nLet me see.\n</think>\n\nYes.", "Let me see.", "Yes."),
        ("\n <think>a</think>b", "a", "b"),
        ("<think>\n\n</think>\n\nno thoughts", "", "no thoughts"),
        ("no tags", "", "no tags"),
        ("a <think> in the middle </think>", "", "a <think> in the middle </think>"),
        ("<think>a</think>b <think>c</think>", "a", "b <think>c</think>"),
        ("<thinking> is another word", "", "<thinking> is another word"),
        ("<thi", "", "<thi"),
        ("<think>cut off </thin", "cut off </thin", ""),
        ("<think>a < b </ c\n\nd</think>e", "a < b </ c\n\nd", "e"),
        ("", "", ""),
        ("  ", "", "  "),
    ],
)
def test_table(answer: str, thinking: str, text: str) -> None:
    assert split([answer]) == (thinking, text)
    assert split(answer) == (thinking, text)


@given(st.text("<think>/ab\n", max_size=40), st.lists(st.integers(1, 6), max_size=20))
def test_pieces_do_not_matter(answer: str, sizes: list[int]) -> None:
    pieces, start = [], 0
    for size in sizes:
        pieces.append(answer[start : start + size])
        start += size
    assert split([*pieces, answer[start:]]) == split([answer])


def decode(provider: str, pieces: list[str], compat: dict[str, bool] | None = None) -> AssistantMessage:
    model = Model(id="m", api="openai-completions", provider=provider, compat=compat)
    assembler = MessageAssembler(model.api, model.provider, model.id)
    decoder = CompletionsDecoder(assembler, model, compat_of(model))
    chunks = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
    chunks.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    events = [(b"", json.dumps(chunk).encode()) for chunk in chunks]
    for event in [*decoder.feed(events), *decoder.finish()]:
        assert event.partial is not None  # type: ignore[union-attr]
    return assembler.done(decoder.reason()).message


PIECES = ["<th", "ink>hm", "m\n", "</think>", "\n\nYes", ".", " Yes", "."]


@pytest.mark.parametrize(
    ("provider", "compat"), [("ollama", None), ("custom", None), ("huggingface", {"thinkingInText": True})]
)
def test_the_message_has_thinking_and_text(provider: str, compat: dict[str, bool] | None) -> None:
    message = decode(provider, PIECES, compat)
    assert message.content == [ThinkingContent(thinking="hmm"), TextContent(text="Yes. Yes.")]


@pytest.mark.parametrize(("provider", "compat"), [("huggingface", None), ("ollama", {"thinkingInText": False})])
def test_elsewhere_the_text_stays_as_it_is(provider: str, compat: dict[str, bool] | None) -> None:
    assert decode(provider, PIECES, compat).content == [TextContent(text="".join(PIECES))]
