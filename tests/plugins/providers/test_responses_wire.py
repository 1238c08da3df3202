"""Recorded cases of the responses API: the request a context becomes, and the events an answer becomes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from pi_plugins.providers.openai_responses import OpenAIResponsesProvider

from .wire_cases import COMMON, SAME, Deviation, WireRunner

PROVIDER = OpenAIResponsesProvider
DONE = (
    b'data: {"type":"response.completed","response":{"id":"r","status":"completed","output":'
    b'[{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"x"}]}]}}\n\n'
)
KEY = "sk-key"


def adapt(case: dict[str, Any]) -> None:
    """Put the key in its place, and say in the one form of options that there is here what the native form says."""
    headers = case.get("request_headers") or {}
    if "authorization" in headers:
        headers["authorization"] = headers["authorization"].replace("<api-key>", KEY)
    if case["entry"] != "stream":
        return
    options, model = case["options"], case["model"]
    if "serviceTier" in options:
        options.setdefault("samplingParams", {})["service_tier"] = options.pop("serviceTier")
    if "reasoningSummary" in options:
        model.setdefault("compat", {})["reasoningSummary"] = options.pop("reasoningSummary")
        options.setdefault("reasoning", "medium")
    if "reasoningEffort" in options:
        options["reasoning"] = options.pop("reasoningEffort")
    if "maxTokens" not in options and case.get("request_body"):
        # The simple form of options always names the most tokens of the answer.
        case["request_body"]["max_output_tokens"] = model["maxTokens"]


# Where this framework does something else on purpose. All other cases match exactly.
DEVIATIONS = {
    **COMMON,
    "null-content": Deviation(
        "a message refuses a null content; callers pass an empty list and it is left out; the original fails",
        contents=[
            [{"type": "input_text", "text": "x"}],
            [{"type": "output_text", "text": "y", "annotations": []}],
            [{"type": "input_text", "text": "z"}],
        ],
    ),
}
FREE_TEXT = Deviation("a call shows no argument before the first piece of one", first_arguments={})


def deviation_of(name: str, case: dict[str, Any]) -> Deviation:
    known = DEVIATIONS.get(name, SAME)
    if known is SAME and "sse" in case and '"type": "grammar"' in json.dumps(case["context"].get("tools")):
        known = FREE_TEXT
    return replace(known, adapt=adapt)


def key_of(case: dict[str, Any]) -> str:
    """The key of a case. The form of a key says whose it is, so that a placeholder does not do."""
    key = (case.get("request_headers") or {}).get("authorization", "").removeprefix("Bearer ")
    return KEY if not key or "<api-key>" in key else key


def test_wire(wire_case: Path, wire: WireRunner) -> None:
    case = json.loads(wire_case.read_text("utf-8"))
    wire.check(wire_case, DONE, deviation_of(wire_case.stem, case), key_of(case))
