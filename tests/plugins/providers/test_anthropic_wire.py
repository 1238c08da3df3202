"""Recorded cases of the messages API: the request a context becomes, and the events an answer becomes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pi_plugins.providers.anthropic_messages import AnthropicMessagesProvider

from .wire_cases import COMMON, Deviation, WireRunner

PROVIDER = AnthropicMessagesProvider
DONE = b"".join(
    b"data: %s\n\n" % event
    for event in (
        b'{"type":"message_start","message":{"id":"msg_A","model":"test-model","usage":{"input_tokens":1}}}',
        b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}',
        b'{"type":"content_block_stop","index":0}',
        b'{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}',
        b'{"type":"message_stop"}',
    )
)
UNHANDLED = "Unhandled stop reason: "
MARK = {"cache_control": {"type": "ephemeral"}}


def _answered_all_the_same(case: dict[str, Any]) -> None:
    final = case["final"]
    stop = final.pop("errorMessage").removeprefix(UNHANDLED)
    reason = "length" if stop == "model_context_window_exceeded" else "stop"
    final.update(stopReason=reason, rawStopReason=stop)
    case["events"][-1] = {"type": "done", "reason": reason}


# Where this framework does something else on purpose. All other cases match exactly.
DEVIATIONS = {
    **COMMON,
    "null-content": Deviation(
        "a message refuses a null content; callers pass an empty list and it is left out; the original fails",
        contents=["x", [{"type": "text", "text": "y"}], [{"type": "text", "text": "z", **MARK}]],
    ),
    "errored-assistant-with-result": Deviation(
        "the result of a call that is not sent is not sent either; servers refuse one without the other",
        contents=["one", [{"type": "text", "text": "two", **MARK}]],
    ),
}
UNKNOWN_STOP = Deviation(
    "an answer that ended for a reason unknown here is an answer; one that filled the window was cut",
    adapt=_answered_all_the_same,
)


def test_wire(wire_case: Path, wire: WireRunner) -> None:
    case = json.loads(wire_case.read_text("utf-8"))
    deviation = DEVIATIONS.get(wire_case.stem)
    if case.get("final", {}).get("errorMessage", "").startswith(UNHANDLED):
        deviation = UNKNOWN_STOP
    wire.check(wire_case, DONE, deviation)
