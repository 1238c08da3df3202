"""``write`` over a file that is there: its encoding, line endings and names stay."""

from __future__ import annotations

import codecs
import os
from typing import Any

import pytest

PLAIN = "Successfully wrote to file.txt"


@pytest.mark.parametrize(
    ("before", "content", "after", "kept"),
    [
        (b"a\nb\n", "c\nd\n", b"c\nd\n", None),
        (b"a\r\nb\r\n", "c\nd\n", b"c\r\nd\r\n", "CRLF line endings"),
        (b"a\r\nb", "c\nd", b"c\r\nd", "CRLF line endings"),
        (b"a\r\nb\n", "c\nd\n", b"c\nd\n", None),
        (b"a\r\nb\r\n", "c\r\nd\n", b"c\r\nd\n", "CRLF line endings"),
        (b"no newline", "c\nd\n", b"c\nd\n", None),
        (b"", "c\n", b"c\n", None),
        (b"\xef\xbb\xbfa\n", "c\n", b"\xef\xbb\xbfc\n", "UTF-8 with a byte order mark"),
        (b"\xef\xbb\xbfa\n", "\ufeffc\n", b"\xef\xbb\xbfc\n", "UTF-8 with a byte order mark"),
        (b"a\n", "\ufeffc\n", b"\xef\xbb\xbfc\n", None),
        (
            codecs.BOM_UTF16_LE + "a\r\n".encode("utf-16-le"),
            "\u00fc\n",
            codecs.BOM_UTF16_LE + "\u00fc\r\n".encode("utf-16-le"),
            "UTF-16-LE with a byte order mark, CRLF line endings",
        ),
        (
            codecs.BOM_UTF16_BE + "a\n".encode("utf-16-be"),
            "\u00fc\n",
            codecs.BOM_UTF16_BE + "\u00fc\n".encode("utf-16-be"),
            "UTF-16-BE with a byte order mark",
        ),
        (b"\x89PNG\r\n\x1a\n\0\0\r\n", "text\n", b"text\n", None),
        (b"caf\xe9 au lait, quite enough to be a text\n", "caf\u00e9\n", "caf\u00e9\n".encode(), None),
    ],
)
def test_a_whole_new_text_is_laid_down_as_the_old_one(
    work: Any, before: bytes, content: str, after: bytes, kept: str | None
) -> None:
    path = work.write("file.txt", before)

    text = work.text("write", path="file.txt", content=content)

    assert path.read_bytes() == after
    assert text == (PLAIN if kept is None else f"{PLAIN}\n\n[Kept as it was: {kept}]")


def test_what_read_shows_can_be_written_back(work: Any) -> None:
    for content in (b"a\r\nb\r\n", b"\xef\xbb\xbfa\n", codecs.BOM_UTF16_LE + "gr\u00fc\u00dfe\r\n".encode("utf-16-le")):
        path = work.write("file.txt", content)

        work.text("write", path="file.txt", content=work.text("read", path="file.txt"))

        assert path.read_bytes() == content


@pytest.mark.parametrize("tool", ["write", "edit"])
def test_all_names_of_a_file_get_the_change(work: Any, tool: str) -> None:
    path = work.write("a.txt", "old and long\n")
    os.link(path, work.root / "b.txt")
    arguments = {"content": "new\n"} if tool == "write" else {"edits": [{"oldText": "old and long", "newText": "new"}]}

    work.text(tool, path="b.txt", **arguments)

    assert path.read_text() == (work.root / "b.txt").read_text() == "new\n"
    assert os.path.samefile(path, work.root / "b.txt")
    assert sorted(os.listdir(work.root)) == ["a.txt", "b.txt"]
