"""Recorded cases of the Gemini API: the request a context becomes, and the events an answer becomes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pi_plugins.providers.google_generative_ai import GoogleGenerativeAIProvider

from .wire_cases import COMMON, SAME, Deviation, WireRunner

PROVIDER = GoogleGenerativeAIProvider
DONE = b'data: {"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}]}\r\n\r\n'


def _without_sdk(case: dict[str, Any]) -> None:
    """No library of the vendor makes the requests, so none is announced."""
    (case.get("request_headers") or {}).pop("x-goog-api-client", None)


def _without_lonely_result(case: dict[str, Any]) -> None:
    _without_sdk(case)
    contents = case["request_body"]["contents"]
    assert "functionResponse" in contents.pop(1)["parts"][0]


# Where this framework does something else on purpose. All other cases match exactly.
DEVIATIONS = {
    **COMMON,
    "null-content": Deviation(
        "a message refuses a null content; callers pass an empty list and it is left out; the original fails",
        contents=[[{"text": "x"}], [{"text": "y"}], [{"text": "z"}]],
    ),
    "null-content-stream": Deviation(
        "options have one form, the simple one, and that always names the most tokens of the answer",
        body={"generationConfig": {"maxOutputTokens": 32000}},
    ),
    "errored-assistant-with-result": Deviation(
        "the result of a call that is not sent is not sent either; servers refuse one without the other",
        adapt=_without_lonely_result,
    ),
    "sse-prompt-blocked": Deviation(
        "the text tells why the prompt was blocked", text_begins="Google blocked the prompt: SAFETY"
    ),
}


def test_wire(wire_case: Path, wire: WireRunner) -> None:
    deviation = DEVIATIONS.get(wire_case.stem, SAME)
    wire.check(wire_case, DONE, replace(deviation, adapt=deviation.adapt or _without_sdk))
