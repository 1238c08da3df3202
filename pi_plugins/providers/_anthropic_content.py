"""The history as messages of the messages API."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from pi_core import (
    AssistantMessage,
    ImageContent,
    Message,
    Model,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultMessage,
    UserMessage,
)

from ._anthropic_compat import Compat
from ._history import HistoryRules, prepare_history, same_model
from ._images import ImageRules, media_type, omit_images
from ._text import clean

REDACTED: Final = "[Reasoning redacted]"
"""What a thinking block shows whose text the server keeps to itself."""

_ID_LIMIT: Final = 64
_NAME_LIMIT: Final = 128
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]")
_SEE_IMAGE: Final = "(see attached image)"
_IMAGE_FOLLOWS: Final = "(image attached after the tool results)"
_IMAGES: Final = ImageRules(
    types=("image/jpeg", "image/png", "image/gif", "image/webp"),
    max_size=5 << 20,
    max_per_request=100,
    max_request_bytes=32 << 20,
)


def legal_id(call_id: str) -> str:
    """Return a call id in the form the API accepts: letters, digits, ``_`` and ``-``, at most 64 of them."""
    return _UNSAFE.sub("_", call_id)[:_ID_LIMIT] or "call"


def build_messages(
    messages: Sequence[Message], model: Model, compat: Compat, effort: str | None = None
) -> list[dict[str, Any]]:
    """Return the messages of a request.

    :param effort: how much the model shall think about this answer, for models that are told so between the messages.
    """
    prepared = prepare_history(messages, model, HistoryRules(legal_id, _ID_LIMIT))
    made: list[dict[str, Any]] = []
    results: list[ToolResultMessage] = []
    for message in omit_images(prepared, model, _IMAGES):
        if isinstance(message, ToolResultMessage):
            results.append(message)
            continue
        _flush(made, results)
        if isinstance(message, UserMessage):
            content = _user_content(message.content)
            if content:
                made.append({"role": "user", "content": content})
        elif param := assistant_message(message, compat):
            if effort is not None and message.provider_thinking_level and same_model(message, model):
                made.append(_effort(message.provider_thinking_level))
            made.append(param)
    _flush(made, results)
    if effort is not None:
        made.append(_effort(effort))
    return made


def assistant_message(message: AssistantMessage, compat: Compat) -> dict[str, Any] | None:
    """Return a response as it is sent back; ``None`` when nothing of it can be."""
    content = [part for block in message.content if (part := _assistant_part(block, compat)) is not None]
    return {"role": "assistant", "content": content} if content else None


def _effort(level: str) -> dict[str, Any]:
    return {"role": "system", "content": [], "output_config": {"effort": level}}


def _user_content(content: Any) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return clean(content) if content.strip() else ""
    return list(_parts(content))


def _parts(content: Iterable[Any]) -> Iterable[dict[str, Any]]:
    for block in content:
        if isinstance(block, ImageContent):
            source = {"type": "base64", "media_type": media_type(block), "data": block.data}
            yield {"type": "image", "source": source}
        elif isinstance(block, TextContent) and block.text.strip():
            yield {"type": "text", "text": clean(block.text)}


def _assistant_part(block: Any, compat: Compat) -> dict[str, Any] | None:
    if isinstance(block, ToolCallContent):
        name = _UNSAFE.sub("_", block.name)[:_NAME_LIMIT] or "unknown"
        return {"type": "tool_use", "id": block.id, "name": name, "input": block.arguments}
    if isinstance(block, ThinkingContent):
        signature = block.thinking_signature or ""
        if block.redacted:
            return {"type": "redacted_thinking", "data": signature} if signature else None
        if signature or (compat.allow_empty_signature and block.thinking.strip()):
            return {"type": "thinking", "thinking": clean(block.thinking), "signature": signature}
        return _text(block.thinking)
    return _text(block.text) if isinstance(block, TextContent) else None


def _text(text: str) -> dict[str, Any] | None:
    return {"type": "text", "text": clean(text)} if text.strip() else None


# --- tool results -------------------------------------------------------------------------------------------------


def _flush(made: list[dict[str, Any]], results: list[ToolResultMessage]) -> None:
    """All results of a turn in one message; images of failed calls, whose results may hold text only, behind them."""
    if not results:
        return
    content = [_result(message) for message in results]
    for message in results:
        images = [block for block in message.content if isinstance(block, ImageContent)] if message.is_error else []
        if images:
            caption = f"Images from the error result of tool call {message.tool_call_id} ({message.tool_name}):"
            content += [{"type": "text", "text": clean(caption)}, *_parts(images)]
    made.append({"role": "user", "content": content})
    results.clear()


def _result(message: ToolResultMessage) -> dict[str, Any]:
    blocks: list[Any] = _images_as_notes(message.content) if message.is_error else list(message.content)
    content: str | list[dict[str, Any]]
    if any(isinstance(block, ImageContent) for block in blocks):
        content = list(_parts(blocks))
        if all(part["type"] == "image" for part in content):
            content.insert(0, {"type": "text", "text": _SEE_IMAGE})
    else:
        content = clean("\n".join(block.text for block in blocks if isinstance(block, TextContent)))
    return {
        "type": "tool_result",
        "tool_use_id": message.tool_call_id,
        "content": content,
        "is_error": message.is_error,
    }


def _images_as_notes(content: Sequence[Any]) -> list[Any]:
    noted: list[Any] = []
    for position, block in enumerate(content):
        if not isinstance(block, ImageContent):
            noted.append(block)
        elif not position or not isinstance(content[position - 1], ImageContent):
            noted.append(TextContent(text=_IMAGE_FOLLOWS))
    return noted
