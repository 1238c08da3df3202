"""Streams of nonsense: what a server could send, and what has to hold of every answer to it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pi_core import Context, StreamOptions, ThinkingContent, user_message

CONTEXT = Context(messages=[user_message("x")])
MADE_UP_IDS = re.compile(r"(?:call|toolu)_|.*_\d{13}_\d+$", re.DOTALL)

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("\ud83d")
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def often(usual: Any, odd: Any = values) -> Any:
    """The usual three times of four."""
    return st.one_of(usual, usual, usual, odd)


def record(**fields: Any) -> Any:
    """An object with any of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


def lines(*events: Any) -> Any:
    """Lines of a stream: mostly data with one of the events."""
    data = st.one_of(*events).map(lambda value: b"data: " + json.dumps(value).encode("utf-8", "surrogatepass"))
    odd = st.sampled_from([b": c", b"event: error", b"data: [DONE]", b"nonsense"])
    return st.lists(st.one_of(*[data] * 9, odd), max_size=10)


damage = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 3), st.binary(max_size=3)), max_size=2)


def damaged(body: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    """A body with some bytes taken out and others put in."""
    for at, remove, put in changes:
        at %= len(body) + 1
        body = body[:at] + put + body[at + remove :]
    return body


def check_streams(bodies: Any, make: Callable[[list[bytes], str], Any], model: Any) -> None:
    """Check that a provider ends every stream well, in the same way however the bytes are cut.

    :param bodies: the lines of bodies.
    :param make: makes a provider that gets these pieces, and then an end or a broken connection.
    """

    def play(pieces: list[bytes], then: str) -> list[Any]:
        stream = make([piece for piece in pieces if piece], then).stream(model, CONTEXT, StreamOptions())

        async def collect() -> list[Any]:
            return [event async for event in stream]

        return asyncio.run(collect())

    @settings(deadline=None)
    @given(
        bodies,
        st.sampled_from([b"\n\n", b"\r\n\r\n", b"\r\r"]),
        damage,
        st.lists(st.integers(1, 50), max_size=20),
        st.booleans(),
    )
    def check(given_lines: list[bytes], end: bytes, changes: Any, sizes: list[int], drop: bool) -> None:
        body = damaged(b"".join(line + end for line in given_lines), changes)
        then = "drop" if drop else "end"
        pieces, position = [], 0
        for size in sizes:
            pieces.append(body[position : position + size])
            position += size
        ways = [[body], [*pieces, body[position:]], [body[at : at + 1] for at in range(len(body))]]
        traces = [play(way, then) for way in ways]
        for events in traces:
            _check_events(events)
        whole = _comparable(traces[0])
        assert _comparable(traces[1]) == whole
        assert _comparable(traces[2]) == whole

    check()


def _check_events(events: list[Any]) -> None:
    assert [event.type for event in events if event.type in ("done", "error")] == [events[-1].type]
    message = events[-1].message
    json.dumps(message.to_json(), ensure_ascii=False).encode()
    assert (message.stop_reason == "error") == (message.error_message is not None)
    shown: dict[int, str] = {}
    for event in events[:-1]:
        if event.type in ("text_start", "thinking_start"):
            shown[event.content_index] = event.text if event.type == "text_start" else event.thinking
        elif event.type in ("text_delta", "thinking_delta"):
            shown[event.content_index] += event.delta
        elif event.type in ("text_end", "thinking_end"):
            shown[event.content_index] = event.content
        elif event.type == "toolcall_start":
            shown.pop(event.content_index, None)
    for index, text in shown.items():
        block = message.content[index]
        assert text == (block.thinking if isinstance(block, ThinkingContent) else block.text)


def _comparable(events: list[Any]) -> str:
    """The events without what is made up: times, and ids the server did not send."""
    made_up: dict[str, str] = {}

    def plain_json(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain_json(item) for key, item in value.items() if key != "timestamp"}
        if isinstance(value, list):
            return [plain_json(item) for item in value]
        if isinstance(value, str) and MADE_UP_IDS.match(value):
            return made_up.setdefault(value, f"made up {len(made_up)}")
        return value

    return repr([plain_json(event.to_json()) for event in events])
