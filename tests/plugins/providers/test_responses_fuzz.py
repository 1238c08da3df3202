"""Whatever a server of the responses API sends: no exception, one final event, the same events however it is cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from pi_plugins.providers import _http
from pi_plugins.providers.openai_responses import OpenAIResponsesProvider

from .fuzz import check_streams, lines, often, record, values

PROVIDER = OpenAIResponsesProvider
WIRE = Path(__file__).parent / "wire" / "openai-responses"

text = st.text(max_size=5)
index = often(st.integers(0, 2))
item_id = often(st.sampled_from(["i0", "i1", ""]))
arguments = st.sampled_from(["", '{"a":', "1}", '{"a":1}'])
part = record(type=often(st.sampled_from(["output_text", "refusal"])), text=often(text), refusal=often(text))
item = record(
    type=often(
        st.sampled_from(["message", "message", "reasoning", "function_call", "custom_tool_call", "web_search_call"])
    ),
    id=item_id,
    call_id=often(st.sampled_from(["c1", "c2", ""])),
    name=often(st.sampled_from(["read", ""])),
    namespace=values,
    arguments=often(arguments),
    input=often(text),
    content=often(st.lists(often(part), max_size=2)),
    summary=often(st.lists(often(part), max_size=2)),
    encrypted_content=often(st.sampled_from([None, "E"])),
    phase=often(st.just("commentary")),
)
usage = record(
    input_tokens=often(st.integers(0, 9)),
    output_tokens=often(st.integers(0, 9)),
    total_tokens=values,
    input_tokens_details=often(record(cached_tokens=values, cache_write_tokens=values)),
    output_tokens_details=often(record(reasoning_tokens=values)),
)
response = record(
    id=often(st.sampled_from(["r1", "r2"])),
    model=often(st.just("other")),
    status=often(st.sampled_from(["completed", "incomplete", "failed", "in_progress", "new"])),
    error=often(st.none() | record(code=often(st.just("server_error")), message=often(text))),
    incomplete_details=often(record(reason=often(st.sampled_from(["max_output_tokens", "content_filter"])))),
    output=often(st.lists(often(item), max_size=2)),
    usage=often(usage),
    service_tier=often(st.just("flex")),
)


def event(*kinds: str, **fields: Any) -> Any:
    return st.fixed_dictionaries({"type": often(st.sampled_from(kinds))}, optional=fields)


added = event("response.output_item.added", output_index=index, item=often(item))
done = event("response.output_item.done", output_index=index, item=often(item))
deltas = (
    "response.output_text.delta",
    "response.refusal.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.function_call_arguments.delta",
    "response.custom_tool_call_input.delta",
)
grown = event(*deltas, output_index=index, item_id=item_id, delta=often(text | arguments))
given = event(
    *(kind.replace(".delta", ".done") for kind in deltas),
    "response.reasoning_summary_part.done",
    output_index=index,
    item_id=item_id,
    text=often(text),
    refusal=often(text),
    arguments=often(arguments),
    input=often(text),
)
last = event(
    "response.completed", "response.incomplete", "response.failed", "response.created", response=often(response)
)
opened = st.just({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "i0"}})
said = text.map(lambda said: {"type": "response.output_text.delta", "output_index": 0, "delta": said})
completed = st.just({"type": "response.completed", "response": {"status": "completed"}})
other = st.sampled_from(
    [
        {"type": "keepalive"},
        {"type": "error", "code": "x", "message": "no"},
        {"error": "no"},
        {"choices": [{"delta": {"content": "x"}}]},
    ]
)


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
    bodies = lines(*[added] * 4, *[grown] * 4, opened, *[said] * 3, *[done] * 2, given, last, completed, other, values)
    check_streams(bodies, lambda pieces, then: played(reply(pieces, then=then))[0], model())
