"""Whatever a server sends: no exception, one final event, and the same events however the bytes are cut."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pi_core import Context, StreamOptions, ThinkingContent, user_message
from pi_plugins.providers import _http

CONTEXT = Context(messages=[user_message("x")])

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("\ud83d")
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def often(usual: Any, odd: Any = values) -> Any:
    return st.one_of(usual, usual, usual, odd)


def record(**fields: Any) -> Any:
    return st.fixed_dictionaries({}, optional=fields)


function = record(
    name=often(st.sampled_from(["read", ""])), arguments=often(st.sampled_from(["", '{"a":', "1}", "{}"]))
)
call = record(
    index=often(st.integers(0, 2)),
    id=often(st.sampled_from(["c1", "c2", ""])),
    function=often(function),
    custom=record(name=values, input=often(st.text(max_size=3))),
)
delta = record(
    content=often(st.text(max_size=5)),
    refusal=often(st.text(max_size=3)),
    reasoning_content=often(st.text(max_size=5)),
    reasoning=often(st.text(max_size=5)),
    reasoning_details=often(
        st.lists(record(type=st.just("reasoning.text"), text=often(st.text(max_size=3)), index=values))
    ),
    tool_calls=often(st.lists(often(call), max_size=2)),
)
choice = record(
    index=st.just(0),
    delta=often(delta),
    finish_reason=often(st.sampled_from([None, "stop", "tool_calls"])),
    usage=values,
)
chunk = record(
    id=often(st.just("c")),
    model=often(st.just("m")),
    choices=often(st.lists(often(choice), min_size=1, max_size=1)),
    usage=often(record(prompt_tokens=often(st.integers(0, 9)), completion_tokens=often(st.integers(0, 9)))),
    x_groq=values,
)
plain = st.text(max_size=6).map(lambda text: {"id": "c", "choices": [{"delta": {"content": text}}]})
error = st.just({"error": {"message": "no"}})
line = st.one_of(
    *[chunk] * 4, *[plain] * 4, st.just({"choices": [{"delta": {}, "finish_reason": "stop"}]}), error, values
).map(lambda value: b"data: " + json.dumps(value).encode("utf-8", "surrogatepass"))
bodies = st.lists(
    st.one_of(*[line] * 9, st.sampled_from([b": c", b"event: error", b"data: [DONE]", b"nonsense"])), max_size=10
)
damage = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 3), st.binary(max_size=3)), max_size=2)


def damaged(body: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    for at, remove, put in changes:
        at %= len(body) + 1
        body = body[:at] + put + body[at + remove :]
    return body


def test_streams(played: Any, reply: Any, calls: Any, model: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(_http, "_FIRST_DELAY_MS", 0)

    def play(pieces: list[bytes], then: str) -> list[Any]:
        provider, _ = played(reply(pieces, then=then))
        stream = provider.stream(model(), CONTEXT, StreamOptions())
        return asyncio.run(calls.collect(stream))

    @settings(deadline=None)
    @given(
        bodies,
        st.sampled_from([b"\n\n", b"\r\n\r\n", b"\r\r"]),
        damage,
        st.lists(st.integers(1, 50), max_size=20),
        st.booleans(),
    )
    def check(lines: list[bytes], end: bytes, changes: Any, sizes: list[int], drop: bool) -> None:
        body = damaged(b"".join(line + end for line in lines), changes)
        then = "drop" if drop else "end"
        pieces, position = [], 0
        for size in sizes:
            pieces.append(body[position : position + size])
            position += size
        ways = [[body], [*pieces, body[position:]], [body[at : at + 1] for at in range(len(body))]]
        traces = [play([piece for piece in way if piece], then) for way in ways]
        for events in traces:
            assert [event.type for event in events if event.type in ("done", "error")] == [events[-1].type]
            message = events[-1].message
            json.dumps(message.to_json(), ensure_ascii=False).encode()
            assert (message.stop_reason == "error") == (message.error_message is not None)
            shown: dict[int, str] = {}
            for event in events[:-1]:
                if event.type in ("text_delta", "thinking_delta"):
                    shown[event.content_index] = shown.get(event.content_index, "") + event.delta
            for index, text in shown.items():
                block = message.content[index]
                assert text == (block.thinking if isinstance(block, ThinkingContent) else block.text)
        whole = _comparable(traces[0])
        assert _comparable(traces[1]) == whole
        assert _comparable(traces[2]) == whole

    check()


def _comparable(events: list[Any]) -> str:
    """The events without what is made up: times, and ids the server did not send."""
    made_up: dict[str, str] = {}

    def plain_json(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain_json(item) for key, item in value.items() if key != "timestamp"}
        if isinstance(value, list):
            return [plain_json(item) for item in value]
        if isinstance(value, str) and value.startswith("call_"):
            return made_up.setdefault(value, f"made up {len(made_up)}")
        return value

    return repr([plain_json(event.to_json()) for event in events])
