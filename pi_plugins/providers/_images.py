"""Images in a request: their true type, and leaving out those a server would refuse the whole request for."""

from __future__ import annotations

import base64
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pi_core import ImageContent, Message, Model, TextContent

_SIGNATURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_IMAGE_SHARE: Final = 0.9
"""What images may take of the longest request; the rest is for the text."""


@dataclass(frozen=True, slots=True)
class ImageRules:
    """What a server accepts. What a model says of itself (``inputLimits``) wins over the numbers here.

    :param types: MIME types.
    :param max_size: characters of base64 of one image.
    :param max_per_request: images of one request.
    :param max_request_bytes: bytes of one request.
    """

    types: Collection[str]
    max_size: int
    max_per_request: int
    max_request_bytes: int


def media_type(image: ImageContent) -> str:
    """Return the MIME type of an image by its first bytes, or what it is said to be when those tell nothing."""
    try:
        head = base64.b64decode(image.data[:24])
    except ValueError:
        head = b""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    found = next((kind for start, kind in _SIGNATURES if head.startswith(start)), image.mime_type.lower())
    return "image/jpeg" if found == "image/jpg" else found


def omit_images(messages: Sequence[Message], model: Model, rules: ImageRules) -> list[Message]:
    """Return the messages with a note in place of each image that cannot be sent.

    Of too many images the newest stay.
    """
    limits = _object((model.model_extra or {}).get("inputLimits"))
    of_images = _object(limits.get("images"))
    left = _number(of_images.get("maxPerRequest"), rules.max_per_request)
    per_message = _number(of_images.get("maxPerMessage"), left)
    room = int(_number(limits.get("maxRequestBytes"), rules.max_request_bytes) * _IMAGE_SHARE)
    kept: list[Message] = []
    for message in reversed(messages):
        if isinstance(message.content, str) or not any(isinstance(block, ImageContent) for block in message.content):
            kept.append(message)
            continue
        content: list[Any] = []
        left_here = per_message
        for block in reversed(message.content):
            if isinstance(block, ImageContent):
                reason = _fault(block, rules)
                if reason is None and (left <= 0 or left_here <= 0):
                    reason = "too many images"
                if reason is None and len(block.data) > room:
                    reason = "the images are too large together"
                if reason is not None:
                    content.append(TextContent(text=f"(image omitted: {reason})"))
                    continue
                left, left_here, room = left - 1, left_here - 1, room - len(block.data)
            content.append(block)
        kept.append(message.model_copy(update={"content": content[::-1]}))
    return kept[::-1]


def _fault(image: ImageContent, rules: ImageRules) -> str | None:
    if not image.data:
        return "it is empty"
    kind = media_type(image)
    if kind not in rules.types:
        return f"{kind} is not supported"
    if len(image.data) > rules.max_size:
        return f"larger than {rules.max_size >> 20} MiB"
    return None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default
