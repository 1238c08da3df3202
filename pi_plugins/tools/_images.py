"""Checks an image before it enters the history: one that a provider refuses would spoil every later request."""

from __future__ import annotations

import base64
import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pi_core import ImageContent, Model

from ._content import HEAD_BYTES, IMAGES, sniff
from ._errors import ToolError
from ._image_headers import BrokenImageError, size_of
from ._truncate import format_size

if TYPE_CHECKING:
    from . import ToolsOptions

MAX_SIDE = 8000
"""Most pixels per side that any provider takes."""

MAX_SOURCE_BYTES = 64 * 1024 * 1024
"""Largest file that is made smaller."""

_SIDE = 2000
_QUALITY = 80
_MAX_SOURCE_PIXELS = 64_000_000
_SENT_AS_THEY_ARE = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def can_resize() -> bool:
    """Say whether Pillow is installed."""
    return importlib.util.find_spec("PIL") is not None


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """What an image that is sent may be.

    :param max_width: in pixels, and so is ``max_height``.
    :param max_bytes: of its base64 form.
    :param jpeg_quality: the best one that is tried when a photograph has to get smaller, 1 to 100.
    :param resize: larger images are made smaller; otherwise they are refused.
    """

    max_width: int = _SIDE
    max_height: int = _SIDE
    max_bytes: int = 4_718_592
    jpeg_quality: int = _QUALITY
    resize: bool = True

    @classmethod
    def of(cls, options: ToolsOptions, model: Model | None) -> ImageLimits:
        """Return the limits of the options; those that a model has of its own (``inputLimits``) win."""
        side = _SIDE if options.resize_images else MAX_SIDE
        own: Any = (model.model_extra or {}) if model is not None else {}
        for name in ("inputLimits", "images", "resize"):
            own = own.get(name)
            if not isinstance(own, dict):
                own = {}
        return cls(
            max_width=_number(own.get("maxWidth"), side),
            max_height=_number(own.get("maxHeight"), side),
            max_bytes=_number(own.get("maxBytes"), options.max_image_bytes),
            jpeg_quality=min(100, _number(own.get("jpegQuality"), _QUALITY)),
            resize=options.resize_images and can_resize(),
        )

    def allow(self, width: int, height: int, size: int) -> bool:
        """Say whether an image of so many bytes may be sent as it is."""
        return width <= self.max_width and height <= self.max_height and encoded_size(size) <= self.max_bytes


def _number(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default


@dataclass(frozen=True, slots=True)
class PreparedImage:
    """An image that every provider takes.

    :param notes: what was done to it, in words for the model.
    """

    image: ImageContent
    notes: tuple[str, ...] = ()


def image_type(head: bytes) -> str | None:
    """Return the MIME type of a file that begins so, ``None`` when it is no image that can be prepared.

    :param head: its first 8192 bytes, or all of it.
    """
    mime = sniff(head[:HEAD_BYTES]).mime
    return mime if mime in IMAGES else None


def encoded_size(size: int) -> int:
    """Return how long so many bytes are as base64."""
    return (size + 2) // 3 * 4


def require_small_image(name: str, size: int, limits: ImageLimits) -> None:
    """Refuse a file that is too large even to look into.

    :param size: bytes of the file.
    :raises ToolError: it is too large.
    """
    if size > MAX_SOURCE_BYTES:
        raise ToolError(
            f"{name}: the image is {format_size(size)}, over the limit of {format_size(MAX_SOURCE_BYTES)}; "
            "make a smaller copy with bash and read that"
        )
    if not limits.resize and encoded_size(size) > limits.max_bytes:
        raise ToolError(
            f"{name}: the image is {format_size(encoded_size(size))} as base64, over the limit of "
            f"{format_size(limits.max_bytes)}; {_INSTEAD}"
        )


_INSTEAD = "make a smaller copy with bash and read that, or install the extra 'images' of pi-agent-framework"


def prepare_image(name: str, data: bytes, limits: ImageLimits | None = None) -> PreparedImage:
    """Return an image for a model: as it is where providers take it so, else upright, still, smaller, as PNG or JPEG.

    :param name: what errors call it.
    :raises ToolError: it is no image, damaged, or too large and cannot be made smaller here.
    """
    limits = limits or ImageLimits(resize=can_resize())
    mime = image_type(data)
    if mime is None:
        raise ToolError(f"{name} is no image")
    require_small_image(name, len(data), limits)
    try:
        width, height = size_of(data, mime)
        if width * height > _MAX_SOURCE_PIXELS:
            raise ToolError(f"{name}: {width}x{height} pixels are too many; resize it with bash")
        if limits.resize:
            from ._resize import fit

            changed = fit(data, mime, limits)
            if changed is not None:
                data, mime, notes = changed
                return PreparedImage(_block(data, mime), notes)
    except BrokenImageError as error:
        raise ToolError(f"{name}: damaged {mime} file, {error}") from None
    if mime not in _SENT_AS_THEY_ARE:
        raise ToolError(
            f"{name}: models do not read {mime}; convert it to PNG with bash and read that, or install the extra "
            "'images' of pi-agent-framework"
        )
    if not limits.allow(width, height, len(data)):
        raise ToolError(
            f"{name}: {width}x{height} pixels, over the limit of {limits.max_width}x{limits.max_height}; {_INSTEAD}"
        )
    return PreparedImage(_block(data, mime))


def _block(data: bytes, mime: str) -> ImageContent:
    return ImageContent(data=base64.b64encode(data).decode(), mime_type=mime)
