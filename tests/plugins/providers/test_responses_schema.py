"""Every request of the responses API is one that the vendor's own schema accepts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pi_plugins.providers.openai_responses import OpenAIResponsesProvider

from .test_responses_wire import DONE, KEY, adapt
from .vendor_schema import problems, unknown_fields
from .wire_cases import WireRunner

PROVIDER = OpenAIResponsesProvider


def as_of_the_schema(body: dict[str, Any]) -> dict[str, Any]:
    """A body without what newer models understand, and with what the schema asks for and the server does not."""
    body = json.loads(json.dumps(body))
    body["input"] = [item for item in body["input"] if item.get("type") != "configuration_update"]
    for item in body["input"]:
        for part in item["content"] if item.get("type") == "message" else ():
            part.setdefault("logprobs", [])
    for tool in body.get("tools", ()):
        if tool["type"] == "function":
            tool.setdefault("strict", False)
    return {name: value for name, value in body.items() if name != "prompt_cache_options"}


def check_body(body: dict[str, Any], *, allow: tuple[str, ...] = ()) -> None:
    body = as_of_the_schema(body)
    assert problems("openai-responses", body) == []
    assert [name for name in unknown_fields("openai-responses", body) if name not in allow] == []


def test_requests(wire_case: Path, wire: WireRunner) -> None:
    case = json.loads(wire_case.read_text("utf-8"))
    adapt(case)
    bodies = wire.sent(case, DONE, KEY)
    assert bodies or case.get("no_request")
    for body in bodies:
        check_body(body, allow=tuple(case["options"].get("samplingParams") or ()))
