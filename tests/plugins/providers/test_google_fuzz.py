"""Whatever a server of the Gemini API sends: no exception, one final event, the same events however it is cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from pi_plugins.providers import _http
from pi_plugins.providers.google_generative_ai import GoogleGenerativeAIProvider

from .fuzz import check_streams, lines, often, record, values

PROVIDER = GoogleGenerativeAIProvider
WIRE = Path(__file__).parent / "wire" / "google-generative-ai"

text = st.text(max_size=5)
signature = often(st.sampled_from(["", "AAAA"]))
path = often(st.sampled_from(["$.a", "$.a.b", "$.a[0]", "$.a[1].b", "$['a']", "$", "$.a["]))
piece = record(
    jsonPath=path, stringValue=often(text), numberValue=values, boolValue=values, nullValue=values, willContinue=values
)
call = record(
    name=often(st.sampled_from(["read", ""])),
    id=often(st.sampled_from(["c1", "c2", ""])),
    args=often(record(path=values)),
    partialArgs=often(st.lists(often(piece), max_size=2)),
    willContinue=often(st.booleans()),
)
part = st.one_of(
    record(text=often(text), thought=often(st.booleans()), thoughtSignature=signature),
    record(functionCall=often(call), thoughtSignature=signature),
    record(text=often(text), functionCall=often(call), inlineData=values),
)
finish = often(st.sampled_from([None, "STOP", "MAX_TOKENS", "SAFETY", "NEW"]))
candidate = record(
    content=often(record(parts=often(st.lists(often(part), max_size=2)), role=values)),
    finishReason=finish,
    finishMessage=often(text),
)
usage = record(
    promptTokenCount=often(st.integers(0, 9)),
    candidatesTokenCount=often(st.integers(0, 9)),
    thoughtsTokenCount=values,
    cachedContentTokenCount=values,
    toolUsePromptTokenCount=values,
)
chunk = record(
    candidates=often(st.lists(often(candidate), min_size=1, max_size=2)),
    promptFeedback=often(record(blockReason=often(st.just("SAFETY")), blockReasonMessage=values)),
    usageMetadata=often(usage),
    responseId=often(st.sampled_from(["r1", "r2"])),
    modelVersion=often(st.just("other")),
)
said = text.map(lambda said: {"candidates": [{"content": {"parts": [{"text": said}]}}]})
called = often(call).map(lambda call: {"candidates": [{"content": {"parts": [{"functionCall": call}]}}]})
stop = st.just({"candidates": [{"finishReason": "STOP"}]})
other = st.sampled_from([{"error": {"code": 503, "message": "no"}}, [{"error": "no"}], {"choices": []}])


def recorded_bodies() -> list[list[bytes]]:
    cases = (json.loads(path.read_text("utf-8")) for path in sorted(WIRE.glob("sse-*.json")))
    bodies = (case["sse"] if isinstance(case["sse"], str) else case["sse"][-1] for case in cases)
    return [[event.encode() for event in body.split("\n\n") if event] for body in bodies]


def test_damaged_streams(played: Any, reply: Any, model: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(_http, "_FIRST_DELAY_MS", 0)
    bodies = st.sampled_from(recorded_bodies())
    check_streams(bodies, lambda pieces, then: played(reply(pieces, then=then))[0], model())


def test_streams(played: Any, reply: Any, model: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(_http, "_FIRST_DELAY_MS", 0)
    bodies = lines(*[chunk] * 4, *[said] * 4, *[called] * 2, stop, other, values)
    check_streams(bodies, lambda pieces, then: played(reply(pieces, then=then))[0], model())
