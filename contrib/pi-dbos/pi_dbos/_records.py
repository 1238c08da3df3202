"""What the engine keeps of a run, as JSON: answers, tool results, and the messages between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from pi_core import AgentMessage, CustomMessage, ToolResult, ToolResultMessage, Usage, parse_message

Json: TypeAlias = dict[str, Any]

ANSWER: Final = "pi.answer"
"""Name of the step that makes a request. It holds ``before``: the messages that entered the transcript since the one
before it, each as ``{"message": ...}`` or as ``{"answer": STEP}``; ``mail``: what was taken from the mailbox; and
``answer``, the response."""

BEGIN: Final = "pi.begin"
"""Name of the step that says that the call of a ``never`` tool begins. It holds who began it."""

EFFECT: Final = "pi.effect"
"""Name of the step that executes a tool call. It holds ``result``, ``error`` or ``cancelled``."""


def result_to_json(result: ToolResult) -> Json:
    """Return the JSON form of a tool's result.

    :raises ValueError: something in it cannot be written as JSON.
    """
    return result.to_json()


def result_from_json(data: Mapping[str, Any]) -> ToolResult:
    """Make a tool's result of its JSON form."""
    result = ToolResult(details=data.get("details"), is_error=data.get("isError"), terminate=data.get("terminate"))
    if "content" in data:
        # A message knows how to read the blocks.
        result.content = ToolResultMessage(tool_call_id="", tool_name="", content=data["content"]).content
    if "structuredContent" in data:
        result.structured_content = data["structuredContent"]
    if "usage" in data:
        result.usage = Usage.model_validate(data["usage"])
    return result


def transcript(
    steps: Mapping[int, Any],
    tail: Iterable[Json] | None = None,
    types: Mapping[str, type[CustomMessage]] | None = None,
) -> list[AgentMessage]:
    """Return the messages of a run in their order.

    :param steps: what the engine kept, by step; what is no answer is skipped.
    :param tail: the messages after the last answer, from the outcome of the run; ``None`` while it goes on.
    :param types: custom message types by role.
    """
    answers = {step: kept for step, kept in sorted(steps.items()) if isinstance(kept, dict) and "before" in kept}
    entries = [entry for kept in answers.values() for entry in kept["before"]] + list(tail or ())
    placed = {entry.get("answer") for entry in entries}
    if tail is None and answers:
        last = max(answers)
        if last not in placed and answers[last]["answer"] is not None:
            entries.append({"answer": last})
    found = []
    for entry in entries:
        data = entry["message"] if "message" in entry else answers[entry["answer"]]["answer"]
        found.append(parse_message(data, types))
    return found
