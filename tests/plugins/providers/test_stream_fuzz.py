"""Whatever a server of chat completions sends: no exception, one final event, the same events however it is cut."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from pi_plugins.providers import _http

from .fuzz import check_streams, lines, often, record, values

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
STOP = st.just({"choices": [{"delta": {}, "finish_reason": "stop"}]})


def test_streams(played: Any, reply: Any, model: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(_http, "_FIRST_DELAY_MS", 0)
    bodies = lines(*[chunk] * 4, *[plain] * 4, STOP, error, values)
    check_streams(bodies, lambda pieces, then: played(reply(pieces, then=then))[0], model())
