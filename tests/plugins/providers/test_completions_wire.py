"""Recorded cases of the API: the request a context becomes, and the events an answer becomes."""

from __future__ import annotations

from pathlib import Path

from .wire_cases import Deviation, WireRunner

DONE = b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

# Beside what holds for every API.
DEVIATIONS = {
    "null-content": Deviation(
        "a message refuses a null content; callers pass an empty list and it is left out; the original fails",
        contents=["x", "y", "z"],
    ),
    "null-content-stream": Deviation(
        "options have one form, the simple one, and that always names the most tokens of the answer",
        body={"max_completion_tokens": 32000},
    ),
}


def test_wire(wire_case: Path, wire: WireRunner) -> None:
    wire.check(wire_case, DONE, DEVIATIONS.get(wire_case.stem))
