"""Reads the size of an image from its first parts, and finds what is plainly damaged, without any decoder."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable


class BrokenImageError(ValueError):
    """The content is not what its first bytes promise."""


def size_of(data: bytes, mime: str) -> tuple[int, int]:
    """Return the width and height of an image in pixels.

    :raises BrokenImageError: the content is damaged.
    """
    try:
        width, height = _MEASURES[mime](data)
    except (struct.error, IndexError):
        raise BrokenImageError("it ends too early") from None
    if width < 1 or height < 1:
        raise BrokenImageError("it has no pixels")
    return width, height


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
