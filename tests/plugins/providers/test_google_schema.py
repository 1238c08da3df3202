"""Every request of the Gemini API is one that the vendor's own schema accepts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pi_plugins.providers.google_generative_ai import GoogleGenerativeAIProvider

from .test_google_wire import DONE
from .vendor_schema import problems
from .wire_cases import WireRunner

PROVIDER = GoogleGenerativeAIProvider


def test_requests(wire_case: Path, wire: WireRunner) -> None:
    case = json.loads(wire_case.read_text("utf-8"))
    bodies = wire.sent(case, DONE)
    assert bodies or case.get("no_request")
    for body in bodies:
        assert problems("google-generative-ai", body) == []


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"contents": [{"parts": [{"text": 1}]}]}, "contents/0/parts/0/text"),
        ({"contents": [{"parts": [{"txt": "x"}]}]}, "contents/0/parts/0"),
        ({"contents": [{"parts": [{"text": "x", "thoughtSignature": "not base64!"}]}]}, "contents/0/parts/0"),
        ({"toolConfig": {"functionCallingConfig": {"mode": "SOMETIMES"}}}, "toolConfig/functionCallingConfig/mode"),
        ({"messages": []}, "."),
    ],
)
def test_the_schema_sees_faults(body: object, place: str) -> None:
    assert [problem for problem in problems("google-generative-ai", body) if problem.startswith(place)]
