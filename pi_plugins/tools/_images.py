"""Checks an image before it enters the history: one that a provider refuses would spoil every later request."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

from ._errors import ToolError
from ._truncate import format_size

MAX_SIDE = 8000
"""Most pixels per side that providers take."""


class _BrokenImageError(ValueError):
    """The content is not what its first bytes promise."""


def require_small_image(path: str, size: int, max_bytes: int) -> None:
    """Refuse a file whose base64 form is over the limit.

    :param size: bytes of the file.
    :raises ToolError: it is too large.
    """
    encoded = (size + 2) // 3 * 4
    if encoded > max_bytes:
        raise ToolError(
            f"{path}: the image is {format_size(encoded)} as base64, over the limit of {format_size(max_bytes)}; "
            "make a smaller copy with bash and read that"
        )


def require_sound_image(path: str, data: bytes, mime: str) -> None:
    """Refuse an image that no provider would take.

    :raises ToolError: it is damaged, has too many pixels, or is of a type that models do not read.
    """
    measure = _MEASURES.get(mime)
    if measure is None:
        raise ToolError(f"{path}: models do not read {mime}; convert it to PNG with bash and read that")
    try:
        width, height = measure(data)
    except (_BrokenImageError, struct.error, IndexError) as error:
        raise ToolError(f"{path}: damaged {mime} file, {str(error) or 'it ends too early'}") from None
    if not 0 < width <= MAX_SIDE or not 0 < height <= MAX_SIDE:
        raise ToolError(f"{path}: {width}x{height} pixels, each side must be 1 to {MAX_SIDE}; resize it with bash")


def _png(data: bytes) -> tuple[int, int]:
    position, size, pixels = 8, (0, 0), False
    while True:
        length, name = struct.unpack_from(">I4s", data, position)
        end = position + 12 + length
        if end > len(data):
            raise _BrokenImageError("it ends too early")
        if zlib.crc32(data[position + 4 : end - 4]) != struct.unpack_from(">I", data, end - 4)[0]:
            raise _BrokenImageError("a checksum is wrong")
        if name == b"IHDR":
            size = struct.unpack_from(">II", data, position + 8)
        pixels = pixels or name == b"IDAT"
        position = end
        if name == b"IEND":
            break
    if not pixels:
        raise _BrokenImageError("it holds no pixels")
    return size


def _jpeg(data: bytes) -> tuple[int, int]:
    position = 2
    while True:
        if data[position] != 0xFF:
            raise _BrokenImageError("a segment is missing")
        marker = data[position + 1]
        if marker == 0xFF:
            position += 1
            continue
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, position + 5)
            return width, height
        if marker in (0xD9, 0xDA):
            raise _BrokenImageError("its size is missing")
        position += 2 + struct.unpack_from(">H", data, position + 2)[0]


def _gif(data: bytes) -> tuple[int, int]:
    if len(data) < 14:
        raise _BrokenImageError("it ends too early")
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _webp(data: bytes) -> tuple[int, int]:
    if data[:4] != b"RIFF" or struct.unpack_from("<I", data, 4)[0] + 8 > len(data):
        raise _BrokenImageError("it ends too early")
    form = data[12:16]
    if form == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if form == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if form == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    raise _BrokenImageError("its first part is unknown")


_MEASURES: dict[str, Callable[[bytes], tuple[int, int]]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
}
