"""Every request of the messages API is one that the vendor's own schema accepts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pi_plugins.providers.anthropic_messages import AnthropicMessagesProvider

from .test_anthropic_wire import DONE
from .vendor_schema import problems
from .wire_cases import WireRunner

PROVIDER = AnthropicMessagesProvider


def as_of_the_schema(body: dict[str, Any]) -> dict[str, Any]:
    """A body without what models newer than the schema understand: threads, fallbacks, efforts between messages."""
    body = {name: value for name, value in body.items() if name not in ("thread", "fallbacks")}
    body["messages"] = [message for message in body["messages"] if "output_config" not in message]
    if "thinking" in body:
        body["thinking"] = {name: value for name, value in body["thinking"].items() if name != "block_binding"}
    return body


def test_requests(wire_case: Path, wire: WireRunner) -> None:
    case = json.loads(wire_case.read_text("utf-8"))
    bodies = wire.sent(case, DONE)
    assert bodies or case.get("no_request")
    for body in bodies:
        assert problems("anthropic-messages", as_of_the_schema(body)) == []
