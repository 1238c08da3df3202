"""How a text is laid down in a file: encoding, byte order mark, line endings. What is changed keeps all of it."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from ._content import HEAD_BYTES, sniff
from ._errors import ToolError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class Style:
    """How the text of a file is laid down.

    :param mark: its byte order mark.
    :param crlf: each of its lines ends with a carriage return and a line feed.
    """

    encoding: str = "utf-8"
    mark: bytes = b""
    crlf: bool = False

    @classmethod
    def of(cls, head: bytes) -> Style:
        """Return the style of a file that begins so; that of a new file when it is no text."""
        if sniff(head[:HEAD_BYTES]).encoding is None:
            return cls()
        mark, encoding = _mark(head)
        text = head[len(mark) :].decode(encoding, "replace")
        newlines = text.count("\n")
        return cls(encoding, mark, newlines > 0 and newlines == text.count("\r\n"))

    def encode(self, text: str) -> bytes:
        """Return a whole new text in this style; one that has carriage returns of its own keeps its line endings."""
        if self.mark:
            text = text.removeprefix("\ufeff")
        if self.crlf and "\r" not in text:
            text = text.replace("\n", "\r\n")
        return self.mark + text.encode(self.encoding)

    def words(self) -> list[str]:
        """Return what is not as in a new file, in words for the model."""
        words = []
        if self.mark:
            words.append(f"{self.encoding.upper()} with a byte order mark")
        if self.crlf:
            words.append("CRLF line endings")
        return words


@dataclass(slots=True)
class FileText:
    """The content of a text file, which is going to be changed in places.

    :param mark: its byte order mark, which is no part of the text.
    :param legacy: it holds bytes that are no UTF-8; each stands in the text as a lone surrogate.
    """

    text: str
    encoding: str
    mark: bytes
    legacy: bool

    @classmethod
    def decode(cls, data: bytes, path: str) -> FileText:
        """Return what a file holds.

        :param path: what errors call it.
        :raises ToolError: it is no text, or not in the encoding that its byte order mark says.
        """
        content = sniff(data[:HEAD_BYTES])
        if content.encoding is None:
            raise ToolError(f"{path} is a binary file ({content.mime}) and cannot be edited as text")
        mark, encoding = _mark(data)
        body = data[len(mark) :]
        try:
            return cls(body.decode(encoding), encoding, mark, False)
        except UnicodeDecodeError:
            if encoding != "utf-8":
                raise ToolError(f"{path} is no valid {encoding} text and cannot be edited") from None
            return cls(body.decode(encoding, "surrogateescape"), encoding, mark, True)

    def encode(self, text: str) -> bytes:
        """Return the changed text; its line endings are what they are."""
        return self.mark + text.encode(self.encoding, "surrogateescape")


def _mark(data: bytes) -> tuple[bytes, str]:
    """Return the byte order mark of a text and the encoding that it means."""
    return next(((mark, encoding) for mark, encoding in _MARKS if data.startswith(mark)), (b"", "utf-8"))
