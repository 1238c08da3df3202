"""Images in a request: their type, and which of them are left out."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from pi_core import ImageContent, Model, TextContent, ToolResultMessage, UserMessage
from pi_plugins.providers._images import ImageRules, media_type, omit_images

RULES = ImageRules(("image/png", "image/jpeg"), max_size=2 << 20, max_per_request=3, max_request_bytes=4 << 20)
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()


def image(data: str = PNG, kind: str = "image/png") -> ImageContent:
    return ImageContent(data=data, mime_type=kind)


def target(**limits: Any) -> Model:
    return Model.model_validate(
        {"id": "m", "api": "a", "provider": "p", "input": ["text", "image"], "inputLimits": limits}
    )


def shown(messages: list[Any], **limits: Any) -> list[list[str]]:
    return [
        ["image" if isinstance(block, ImageContent) else block.text for block in message.content]
        for message in omit_images(messages, target(**limits), RULES)
    ]


def encoded(head: bytes) -> str:
    return base64.b64encode(head).decode()


@pytest.mark.parametrize(
    ("data", "said", "kind"),
    [
        (PNG, "image/jpeg", "image/png"),
        (encoded(b"\xff\xd8\xff\xe0" + bytes(20)), "image/png", "image/jpeg"),
        (encoded(b"GIF89a" + bytes(20)), "image/png", "image/gif"),
        (encoded(b"GIF87a" + bytes(20)), "image/png", "image/gif"),
        (encoded(b"RIFF\x01\x02\x03\x04WEBPVP8 "), "image/png", "image/webp"),
        (encoded(b"RIFF\x01\x02\x03\x04WAVE"), "image/png", "image/png"),
        ("AAAA", "image/jpg", "image/jpeg"),
        ("AAAA", "IMAGE/PNG", "image/png"),
        ("A", "image/png", "image/png"),
        ("é", "image/png", "image/png"),
        ("", "image/png", "image/png"),
    ],
)
def test_type(data: str, said: str, kind: str) -> None:
    assert media_type(image(data, said)) == kind


def test_images_that_fit_stay() -> None:
    messages = [UserMessage(content="x"), UserMessage(content=[TextContent(text="a"), image()])]
    assert omit_images(messages, target(), RULES) == messages


@pytest.mark.parametrize(
    ("data", "kind", "note"),
    [
        ("", "image/png", "(image omitted: it is empty)"),
        ("AAAA", "image/bmp", "(image omitted: image/bmp is not supported)"),
        (PNG[:16] + "A" * (2 << 20), "image/png", "(image omitted: larger than 2 MiB)"),
    ],
)
def test_images_a_server_refuses(data: str, kind: str, note: str) -> None:
    result = ToolResultMessage(tool_call_id="c", tool_name="read", content=[image(data, kind), image()])
    assert shown([result]) == [[note, "image"]]


MANY = "(image omitted: too many images)"
LARGE = "(image omitted: the images are too large together)"


def test_the_newest_images_stay() -> None:
    messages = [UserMessage(content=[image(), TextContent(text="a"), image()]), UserMessage(content=[image(), image()])]
    assert shown(messages) == [[MANY, "a", "image"], ["image", "image"]]
    assert shown(messages, images={"maxPerRequest": 1}) == [[MANY, "a", MANY], [MANY, "image"]]
    assert shown(messages, images={"maxPerMessage": 1}) == [[MANY, "a", "image"], [MANY, "image"]]
    assert messages[0].content[0] == image()


def test_all_images_together() -> None:
    large = PNG[:16] + "A" * (1 << 20)
    messages = [
        UserMessage(content=[image(large)]),
        UserMessage(content=[image(large)]),
        UserMessage(content=[image()]),
    ]
    assert shown(messages, maxRequestBytes=2 << 20) == [[LARGE], ["image"], ["image"]]
    assert shown(messages) == [["image"], ["image"], ["image"]]


@pytest.mark.parametrize("limits", [{"images": 3}, {"images": {"maxPerRequest": "x"}}, {"maxRequestBytes": -1}])
def test_limits_that_make_no_sense(limits: Any) -> None:
    assert shown([UserMessage(content=[image()])], **limits) == [["image"]]
