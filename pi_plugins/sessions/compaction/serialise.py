"""A conversation as text, for a model that is to summarise it and not to continue it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from pi_core import (
    AgentMessage,
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ToolResultMessage,
    convert_to_llm,
)

_LONGEST_RESULT: Final = 2000
_LONGEST_ARGUMENTS: Final = 2000


def paragraphs(messages: Iterable[AgentMessage]) -> Iterator[str]:
    """Yield one paragraph for each message that says something: who speaks, and what.

    Thinking is left out. Results and arguments of tools are cut to 2000 characters each.
    """
    for message in convert_to_llm(list(messages)):
        if isinstance(message, AssistantMessage):
            yield from _response(message)
            continue
        text = _text(message)
        if isinstance(message, ToolResultMessage):
            text = shortened(text, _LONGEST_RESULT)
            if text:
                yield f"[Tool result]: {text}" if not message.is_error else f"[Tool result, failed]: {text}"
        elif text:
            yield f"[User]: {text}"


def shortened(text: str, limit: int) -> str:
    """Return the beginning of a text, with a note of how much is missing.

    :param limit: characters that are kept.
    """
    return text if len(text) <= limit else f"{text[:limit]}\n[... {len(text) - limit} more characters left out]"


def _response(message: AssistantMessage) -> Iterator[str]:
    if message.text.strip():
        yield f"[Assistant]: {message.text.strip()}"
    calls = [f"{call.name}({_arguments(call.arguments)})" for call in message.tool_calls]
    if calls:
        yield f"[Assistant tool calls]: {'; '.join(calls)}"


def _arguments(arguments: dict[str, Any]) -> str:
    parts = (f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in arguments.items())
    return shortened(", ".join(parts), _LONGEST_ARGUMENTS)


def _text(message: Message) -> str:
    content = message.content
    if isinstance(content, str):
        return content.strip()
    return "\n".join(_shown(block) for block in content).strip()


def _shown(block: Any) -> str:
    if isinstance(block, TextContent):
        return block.text
    return "[an image]" if isinstance(block, ImageContent) else ""
