"""What a file holds, judged by its first bytes: text in some encoding, an image, or something else."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

HEAD_BYTES = 8192
"""How much of a file is looked at."""

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"})

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SIGNATURES = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"PK\x05\x06", "application/zip"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"\xfd7zXZ\x00", "application/x-xz"),
    (0, b"(\xb5/\xfd", "application/zstd"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (0, b"Rar!\x1a\x07", "application/vnd.rar"),
    (0, b"\x7fELF", "application/x-elf"),
    (0, b"\xcf\xfa\xed\xfe", "application/x-mach-binary"),
    (0, b"\xca\xfe\xba\xbe", "application/java-vm"),
    (0, b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (0, b"\x00asm", "application/wasm"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (4, b"ftyp", "video/mp4"),
    (257, b"ustar", "application/x-tar"),
)
# Signatures that a text may begin with: they count only where the rest is no text.
_WEAK_SIGNATURES = (
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"BM", "image/bmp"),
    (8, b"WAVE", "audio/wav"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"BZh", "application/x-bzip2"),
    (0, b"wOFF", "font/woff"),
    (0, b"wOF2", "font/woff2"),
    (0, b"MZ", "application/vnd.microsoft.portable-executable"),
)
_TEXT_BYTES = bytes({*range(0x20, 0x7F), *range(0x80, 0x100), *b"\t\n\v\f\r\b\x1b"})


@dataclass(frozen=True, slots=True)
class Content:
    """The kind of a file.

    :param encoding: of a text; ``None`` for anything else.
    """

    mime: str
    encoding: str | None = None


def sniff(head: bytes) -> Content:
    """Return the kind of a file that begins with ``head``, its first :data:`HEAD_BYTES` or all of it."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return Content("text/plain", encoding) if _decodes(head, encoding) else Content("application/octet-stream")
    for offset, signature, mime in _SIGNATURES:
        if head.startswith(signature, offset):
            return Content(mime)
    if _is_text(head):
        return Content("text/plain", "utf-8")
    for offset, signature, mime in _WEAK_SIGNATURES:
        if head.startswith(signature, offset):
            return Content(mime)
    return Content("application/octet-stream")


def _is_text(head: bytes) -> bool:
    if b"\0" in head:
        return False
    controls = len(head.translate(None, _TEXT_BYTES))
    return controls <= len(head) * (0.3 if _decodes(head, "utf-8") else 0.05)


def _decodes(head: bytes, encoding: str) -> bool:
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return False
    return "\0" not in text


def as_utf8(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Turn pieces of a text into pieces of the same text in UTF-8; what cannot be decoded becomes U+FFFD.

    UTF-8 itself is passed on as it is.
    """
    if encoding == "utf-8":
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode()
    yield decoder.decode(b"", final=True).encode()


def to_text(text: str) -> str:
    """Return text that every encoding can hold: surrogate pairs joined, single surrogates replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
