"""What makes the answer of a model a summary."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from pi_core import AgentMessage, AssistantMessage

_HEADING: Final = re.compile(
    r"^[ \t]*(?:(?P<marks>#{1,4})[ \t]+|\*\*)(?P<name>[^\n*#:]+?)[ \t]*:?(?:\*\*)?[ \t]*:?[ \t]*$", re.MULTILINE
)
"""A line that begins a section: with number signs, or in bold as small models write it."""
_ALWAYS: Final = ("Goal",)
_AFTER_WORK: Final = ("Progress", "Next Steps")


def required_headings(messages: Iterable[AgentMessage]) -> tuple[str, ...]:
    """Return the headings that a summary of a conversation must have: more when tools were used than after talk."""
    worked = any(isinstance(message, AssistantMessage) and message.tool_calls for message in messages)
    return _ALWAYS + _AFTER_WORK if worked else _ALWAYS


def fault_of(answer: AssistantMessage, headings: Iterable[str]) -> str | None:
    """Return what keeps an answer from being a summary, as a clause for the model; ``None`` when nothing does.

    :param headings: those that must be there with something below them.
    """
    if answer.stop_reason == "length":
        return "it was cut off at the limit of an answer, so it has to be much shorter"
    if answer.tool_calls:
        return "it calls tools, and there are none here"
    if not answer.text.strip():
        return "it is empty"
    sections = _sections(answer.text)
    missing = [heading for heading in headings if not sections.get(heading.lower())]
    return f"it says nothing under {' and '.join(f'## {heading}' for heading in missing)}" if missing else None


def _sections(text: str) -> dict[str, str]:
    """What stands below each heading, down to the next one of its rank; headings without text below say nothing."""
    found = list(_HEADING.finditer(text))
    sections: dict[str, str] = {}
    for index, match in enumerate(found):
        following = (other.start() for other in found[index + 1 :] if _rank(other) <= _rank(match))
        below = text[match.end() : next(following, len(text))]
        sections.setdefault(match["name"].strip().lower(), _HEADING.sub("", below).strip())
    return sections


def _rank(match: re.Match[str]) -> int:
    return len(match["marks"] or "##")
