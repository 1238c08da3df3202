"""Whatever a server of the messages API sends: no exception, one final event, the same events however it is cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from pi_plugins.providers import _http
from pi_plugins.providers.anthropic_messages import AnthropicMessagesProvider

from .fuzz import check_streams, lines, often, record, values

PROVIDER = AnthropicMessagesProvider
WIRE = Path(__file__).parent / "wire" / "anthropic-messages"

text = st.text(max_size=5)
index = often(st.integers(0, 3))
usage = record(
    input_tokens=often(st.integers(0, 9)),
    output_tokens=often(st.integers(0, 9)),
    cache_read_input_tokens=values,
    cache_creation_input_tokens=values,
    cache_creation=often(record(ephemeral_1h_input_tokens=values, ephemeral_5m_input_tokens=values)),
    output_tokens_details=often(record(thinking_tokens=values)),
)
block = record(
    type=often(st.sampled_from(["text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "fallback"])),
    text=often(text),
    thinking=often(text),
    signature=often(text),
    data=often(text),
    id=often(st.sampled_from(["toolu_1", "toolu_2", ""])),
    name=often(st.sampled_from(["read", ""])),
    input=often(st.just({}) | st.just({"a": 1})),
    to=often(record(model=often(st.just("b")))),
)
delta = record(
    type=often(st.sampled_from(["text_delta", "thinking_delta", "signature_delta", "input_json_delta"])),
    text=often(text),
    thinking=often(text),
    signature=often(text),
    partial_json=often(st.sampled_from(["", '{"a":', "1}", "{}"])),
    stop_reason=often(st.sampled_from([None, "end_turn", "tool_use", "refusal", "new"])),
    stop_details=often(record(explanation=often(text))),
)
message = record(
    id=often(st.sampled_from(["m1", "m2"])),
    model=often(st.sampled_from(["test-model", "other"])),
    usage=often(usage),
    content=often(st.lists(often(block), max_size=2)),
    stop_reason=often(st.just("end_turn")),
)


def event(kind: str, **fields: Any) -> Any:
    return st.fixed_dictionaries({"type": often(st.just(kind))}, optional=fields)


start = event("message_start", message=often(message))
opened = event("content_block_start", index=index, content_block=often(block))
grown = event("content_block_delta", index=index, delta=often(delta))
closed = event("content_block_stop", index=index)
ending = event("message_delta", delta=often(delta), usage=often(usage))
said = text.map(lambda said: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": said}})
other = st.sampled_from([{"type": "ping"}, {"type": "new"}, {"type": "error", "error": {"message": "no"}}])
stop = st.just({"type": "message_stop"})


def recorded_bodies() -> list[list[bytes]]:
    cases = (json.loads(path.read_text("utf-8")) for path in sorted(WIRE.glob("sse-*.json")))
    bodies = (case["sse"] if isinstance(case["sse"], str) else case["sse"][-1] for case in cases)
    return [[part.encode() for part in body.split("\n\n") if part] for body in bodies]


def test_damaged_streams(played: Any, reply: Any, model: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(_http, "_FIRST_DELAY_MS", 0)
    bodies = st.sampled_from(recorded_bodies())
    check_streams(bodies, lambda pieces, then: played(reply(pieces, then=then))[0], model())


def test_streams(played: Any, reply: Any, model: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(_http, "_FIRST_DELAY_MS", 0)
    bodies = lines(start, *[opened] * 3, *[grown] * 4, *[said] * 3, closed, ending, stop, other, message, values)
    check_streams(bodies, lambda pieces, then: played(reply(pieces, then=then))[0], model())
