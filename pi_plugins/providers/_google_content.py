"""The conversation as contents of the Gemini API."""

from __future__ import annotations

import re
from collections.abc import Sequence
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
)

from ._google_models import checks_signatures, results_hold_images, uses_call_ids
from ._history import HistoryRules, prepare_history, same_model
from ._images import ImageRules, media_type, omit_images
from ._text import clean, clean_value

TOOL_IMAGES: Final = "Tool result image:"
_SEE_IMAGE: Final = "(see attached image)"
_ID_LIMIT: Final = 64
_NAME_LIMIT: Final = 128
_IMAGES: Final = ImageRules(
    types=frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}),
    max_size=20 << 20,
    max_per_request=3000,
    max_request_bytes=20 << 20,
)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_NO_SIGNATURE: Final = "skip_thought_signature_validator"
"""What Google documents as the signature of a call that another model made."""


def build_contents(messages: Sequence[Message], model: Model) -> list[dict[str, Any]]:
    """Return the contents of a request, one for each turn."""
    rules = HistoryRules(_legal_id if uses_call_ids(model) else _any_id, _ID_LIMIT)
    contents: list[dict[str, Any]] = []
    for message in omit_images(prepare_history(messages, model, rules), model, _IMAGES):
        if isinstance(message, ToolResultMessage):
            _add_result(contents, message, model)
        elif isinstance(message, AssistantMessage):
            _add(contents, "model", _model_parts(message, model))
        elif isinstance(message.content, str):
            _add(contents, "user", [{"text": clean(message.content)}])
        else:
            _add(contents, "user", [part for block in message.content if (part := _user_part(block)) is not None])
    return contents


def _add(contents: list[dict[str, Any]], role: str, parts: list[dict[str, Any]]) -> None:
    if parts:
        contents.append({"parts": parts, "role": role})


def _user_part(block: Any) -> dict[str, Any] | None:
    if isinstance(block, TextContent):
        return {"text": clean(block.text)}
    return _image(block) if isinstance(block, ImageContent) else None


def _image(block: ImageContent) -> dict[str, Any]:
    return {"inlineData": {"mimeType": media_type(block), "data": block.data}}


def _model_parts(message: AssistantMessage, model: Model) -> list[dict[str, Any]]:
    own = same_model(message, model)
    unsigned = not own and checks_signatures(model)
    parts: list[dict[str, Any]] = []
    for block in message.content:
        if isinstance(block, ToolCallContent):
            signature = block.thought_signature
            if unsigned:
                # Only the first of calls that were made together has a signature.
                signature, unsigned = _NO_SIGNATURE, False
            part: dict[str, Any] = {"functionCall": _call(block, model)}
        elif isinstance(block, TextContent):
            signature = block.text_signature
            part = {"text": clean(block.text)}
        elif isinstance(block, ThinkingContent):
            signature = block.thinking_signature
            part = {"text": clean(block.thinking), "thought": True}
        else:
            continue
        if _is_signature(signature):
            part["thoughtSignature"] = signature
        elif "functionCall" not in part and not part["text"].strip():
            continue
        parts.append(part)
    return parts


def _is_signature(signature: str | None) -> bool:
    return signature == _NO_SIGNATURE or (
        bool(signature) and len(signature or "") % 4 == 0 and bool(_BASE64.fullmatch(signature or ""))
    )


def _call(block: ToolCallContent, model: Model) -> dict[str, Any]:
    call: dict[str, Any] = {"args": clean_value(block.arguments), "name": _legal_name(block.name)}
    if uses_call_ids(model):
        call["id"] = block.id
    return call


def _add_result(contents: list[dict[str, Any]], message: ToolResultMessage, model: Model) -> None:
    text = "\n".join(clean(block.text) for block in message.content if isinstance(block, TextContent))
    images = [_image(block) for block in message.content if isinstance(block, ImageContent)]
    shown = text or (_SEE_IMAGE if images else "")
    result: dict[str, Any] = {
        "name": _legal_name(message.tool_name),
        "response": {"error" if message.is_error else "output": shown},
    }
    native = results_hold_images(model)
    if images and native:
        result["parts"] = images
    if uses_call_ids(model):
        result["id"] = message.tool_call_id
    part = {"functionResponse": result}
    if contents and any("functionResponse" in other for other in contents[-1]["parts"]):
        contents[-1]["parts"].append(part)
    else:
        _add(contents, "user", [part])
    if images and not native:
        _add(contents, "user", [{"text": TOOL_IMAGES}, *images])


def _legal_name(name: str) -> str:
    """The name of a tool that a model may have made up; a request with an impossible one would be refused."""
    return re.sub(r"[^A-Za-z0-9_.:-]", "_", name)[:_NAME_LIMIT] or "unknown"


def _any_id(call_id: str) -> str:
    return call_id


def _legal_id(call_id: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", call_id)[:_ID_LIMIT] or "call"
