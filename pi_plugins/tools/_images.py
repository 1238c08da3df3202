"""Checks an image before it enters the history: one that a provider refuses would spoil every later request."""

from __future__ import annotations

import base64
import importlib.util
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pi_core import ImageContent, Model

from ._content import HEAD_BYTES, IMAGES, sniff
from ._errors import ToolError
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


class BrokenImageError(ValueError):
    """The content is not what its first bytes promise."""


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
        width, height = _MEASURES[mime](data)
        if width < 1 or height < 1:
            raise BrokenImageError("it has no pixels")
        if width * height > _MAX_SOURCE_PIXELS:
            raise ToolError(f"{name}: {width}x{height} pixels are too many; resize it with bash")
        if limits.resize:
            from ._resize import fit

            changed = fit(data, mime, limits)
            if changed is not None:
                data, mime, notes = changed
                return PreparedImage(_block(data, mime), notes)
    except (BrokenImageError, struct.error, IndexError) as error:
        raise ToolError(f"{name}: damaged {mime} file, {str(error) or 'it ends too early'}") from None
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


def _png(data: bytes) -> tuple[int, int]:
    position, size, pixels = 8, (0, 0), False
    while True:
        length, name = struct.unpack_from(">I4s", data, position)
        end = position + 12 + length
        if end > len(data):
            raise BrokenImageError("it ends too early")
        if zlib.crc32(data[position + 4 : end - 4]) != struct.unpack_from(">I", data, end - 4)[0]:
            raise BrokenImageError("a checksum is wrong")
        if name == b"IHDR":
            size = struct.unpack_from(">II", data, position + 8)
        pixels = pixels or name == b"IDAT"
        position = end
        if name == b"IEND":
            break
    if not pixels:
        raise BrokenImageError("it holds no pixels")
    return size


def _jpeg(data: bytes) -> tuple[int, int]:
    position = 2
    while True:
        if data[position] != 0xFF:
            raise BrokenImageError("a segment is missing")
        marker = data[position + 1]
        if marker == 0xFF:
            position += 1
            continue
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, position + 5)
            return width, height
        if marker in (0xD9, 0xDA):
            raise BrokenImageError("its size is missing")
        position += 2 + struct.unpack_from(">H", data, position + 2)[0]


def _gif(data: bytes) -> tuple[int, int]:
    if len(data) < 14:
        raise BrokenImageError("it ends too early")
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _webp(data: bytes) -> tuple[int, int]:
    if data[:4] != b"RIFF" or struct.unpack_from("<I", data, 4)[0] + 8 > len(data):
        raise BrokenImageError("it ends too early")
    form = data[12:16]
    if form == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if form == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if form == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    raise BrokenImageError("its first part is unknown")


def _bmp(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<ii", data, 18)
    return width, abs(height)


_MEASURES: dict[str, Callable[[bytes], tuple[int, int]]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
    "image/bmp": _bmp,
}
