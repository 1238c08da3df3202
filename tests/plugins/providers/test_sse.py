"""Server-sent events from bytes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_plugins.providers import _sse
from pi_plugins.providers._errors import ResponseError
from pi_plugins.providers._sse import SseParser


def parse(*pieces: bytes) -> list[tuple[bytes, bytes]]:
    parser = SseParser()
    return [event for piece in pieces for event in parser.feed(piece)] + parser.finish()


def reference(body: bytes) -> list[tuple[bytes, bytes]]:
    """The event stream format read slowly, a whole body at once."""
    events: list[tuple[bytes, bytes]] = []
    name, data = b"", list[bytes]()
    lines = re.split(rb"\r\n|\n|\r", body.removeprefix(b"\xef\xbb\xbf"))
    for line in [*lines, b""]:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            if b"\n".join(data):
                events.append((name, b"\n".join(data)))
            name, data = b"", []
        elif field == b"data" and b":" in line:
            data.append(value)
        elif field == b"event" and b":" in line:
            name = value.strip()
    return events


lines = st.sampled_from(
    [
        b"data: a",
        b"data:b",
        b"data:  c",
        b"data:",
        b"data: \xc3\xa9\xe2\x80\xa8x",
        b"event: error",
        b": comment",
        b"id: 1",
    ]
)
ends = st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\n", b"\r\n\r\n", b"\r\r"])


@given(st.lists(st.tuples(lines, ends), max_size=12), st.booleans(), st.lists(st.integers(1, 9), max_size=40))
def test_any_cut_gives_the_same_events(parts: list[tuple[bytes, bytes]], bom: bool, sizes: list[int]) -> None:
    body = (b"\xef\xbb\xbf" if bom else b"") + b"".join(line + end for line, end in parts)
    wanted = reference(body)
    pieces, position = [], 0
    for size in sizes:
        pieces.append(body[position : position + size])
        position += size
    assert parse(body) == wanted
    assert parse(*pieces, body[position:]) == wanted
    assert parse(*(body[at : at + 1] for at in range(len(body)))) == wanted


@pytest.mark.parametrize(
    ("body", "events"),
    [
        (b"data: x\n\n", [(b"", b"x")]),
        (b"data: x", [(b"", b"x")]),
        (b"data: x\r\n\r\ndata: y\r\r", [(b"", b"x"), (b"", b"y")]),
        (b"data: one\ndata: two\n\n", [(b"", b"one\ntwo")]),
        (b"event: error\ndata: x\n\ndata: y\n\n", [(b"error", b"x"), (b"", b"y")]),
        (b": OPENROUTER PROCESSING\n\ndata: x\n\n", [(b"", b"x")]),
        ("data: a\u2028b\u0085c\x0bd\n\n".encode(), [(b"", "a\u2028b\u0085c\x0bd".encode())]),
        (b"\xef\xbb\xbfdata: x\n\n", [(b"", b"x")]),
        (b"data:\n\ndata\n\n\n\n", []),
        (b"", []),
    ],
)
def test_framing(body: bytes, events: list[tuple[bytes, bytes]]) -> None:
    assert parse(body) == events
    assert parse(*(body[at : at + 1] for at in range(len(body)))) == events


def test_what_came_instead_of_events_is_kept() -> None:
    parser = SseParser()
    parser.feed(b"upstream ")
    parser.feed(b"error\n")
    assert bytes(parser.head) == b"upstream error\n"
    assert parser.count == 0
    parser.feed(b"data: x\n\n")
    assert parser.count == 1
    assert not parser.head
    for _ in range(100):
        parser.feed(b"y" * 1000)
    assert not parser.head


def test_an_endless_event_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sse, "EVENT_LIMIT", 1 << 20)
    parser = SseParser()
    parser.feed(b"data: ")
    for _ in range(15):
        parser.feed(b"x" * 65536)
    with pytest.raises(ResponseError, match="longer than 1 MiB"):
        parser.feed(b"x" * 65536)
    parser = SseParser()
    for _ in range(40):
        parser.feed(b"data: " + b"x" * 65536 + b"\n\n")
    assert parser.count == 40
