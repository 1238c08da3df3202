from __future__ import annotations

import base64
import io
from typing import Any

import pytest

from .running import Pi, events

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def prompts(pi: Pi, *arguments: str, stdin: bytes | None = None) -> list[Any]:
    """The content of the user messages that were sent."""
    done = pi.run("--mode", "json", *arguments, script=["ok", "ok", "ok"], stdin=stdin)
    assert done.returncode == 0, done.stderr
    found = [event["message"] for event in events(done.stdout) if event["type"] == "message_end"]
    return [message["content"] for message in found if message["role"] == "user"]


def text(value: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": value}]


def test_piped_text_comes_before_the_prompt(pi: Pi) -> None:
    assert prompts(pi, "Sum this up.", stdin="a, b: ü\n".encode()) == [text("a, b: ü\nSum this up.")]


def test_piped_text_alone_is_a_prompt_and_a_byte_order_mark_is_none(pi: Pi) -> None:
    assert prompts(pi, stdin=b"\xef\xbb\xbfhello") == [text("hello")]


def test_an_empty_pipe_is_none(pi: Pi) -> None:
    assert prompts(pi, "go", stdin=b"") == [text("go")]


def test_files_come_between_the_pipe_and_the_first_word(pi: Pi) -> None:
    (pi.folder / "one.txt").write_bytes(b"\xef\xbb\xbffirst")
    (pi.folder / "two.txt").write_text("second\n")
    (one, more) = prompts(pi, "@one.txt", "look", "@two.txt", "and then", stdin=b"piped ")
    folder = pi.folder.resolve()
    assert one == text(
        f'piped <file name="{folder}/one.txt">\nfirst\n</file>\n<file name="{folder}/two.txt">\nsecond\n\n</file>\nlook'
    )
    assert more == text("and then")


def test_a_file_alone_is_a_prompt(pi: Pi) -> None:
    (pi.folder / "one.txt").write_text("first")
    (only,) = prompts(pi, "@one.txt")
    assert only == text(f'<file name="{pi.folder.resolve()}/one.txt">\nfirst\n</file>\n')


def test_an_at_sign_alone_is_a_word(pi: Pi) -> None:
    assert prompts(pi, "@", "now") == [text("@"), text("now")]


def test_images_follow_the_text(pi: Pi) -> None:
    (pi.folder / "dot.png").write_bytes(PNG)
    (content,) = prompts(pi, "@dot.png", "What is this?")
    assert content == [
        *text(f'<file name="{pi.folder.resolve()}/dot.png"></file>\nWhat is this?'),
        {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"},
    ]


@pytest.mark.parametrize("head", [b"\xff\xd8\xff\xe0", b"GIF89a", b"BM\0\0", b"RIFF\0\0\0\0WEBPVP8 "])
def test_a_damaged_image_is_left_out_and_the_model_is_told(pi: Pi, head: bytes) -> None:
    (pi.folder / "picture").write_bytes(head + b"\0\xff")
    (content,) = prompts(pi, "@picture", "look")
    assert [block["type"] for block in content] == ["text"]
    assert content[0]["text"].startswith(f'<file name="{pi.folder.resolve()}/picture">[left out: @')
    assert content[0]["text"].endswith("]</file>\nlook")


def test_a_large_image_is_made_smaller(pi: Pi) -> None:
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (3000, 1500), "navy").save(pi.folder / "large.png")
    (content,) = prompts(pi, "@large.png", "look")
    assert "[" in content[0]["text"]
    assert content[1]["type"] == "image"
    with image.open(io.BytesIO(base64.b64decode(content[1]["data"]))) as sent:
        assert sent.size == (2000, 1000)


def test_a_file_in_the_home_folder(pi: Pi) -> None:
    (pi.folder / "note").write_text("x")
    assert prompts(pi, "@~/note") == [text(f'<file name="{pi.folder.resolve()}/note">\nx\n</file>\n')]


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("missing", None, "pi: @missing: No such file or directory\n"),
        ("folder", b"", "pi: @folder: Is a directory\n"),
        ("data", b"\x80\x81", "pi: @data is neither UTF-8 text nor an image (PNG, JPEG, GIF, WebP, BMP)\n"),
        ("zero", b"text\0more", "pi: @zero is a binary file\n"),
        ("wave", b"RIFF\0\0\0\0WAVE\xff", "pi: @wave is neither UTF-8 text nor an image (PNG, JPEG, GIF, WebP, BMP)\n"),
    ],
)
def test_a_file_that_cannot_be_sent(pi: Pi, name: str, data: bytes | None, said: str) -> None:
    if name == "folder":
        (pi.folder / name).mkdir()
    elif data is not None:
        (pi.folder / name).write_bytes(data)
    done = pi.run("-p", f"@{name}", "look", script=["never"])
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


def test_a_pipe_that_is_no_text(pi: Pi) -> None:
    done = pi.run("-p", "look", script=["never"], stdin=b"ab\xff")
    assert (done.returncode, done.stderr) == (1, "pi: The piped input is not UTF-8 text (byte 2)\n")


def test_no_prompt_at_all(pi: Pi) -> None:
    for arguments in ([], [" "], ["-p"]):
        done = pi.run(*arguments, script=["never"], stdin=b"\n")
        assert done.returncode == 1
        assert 'pi: There is no prompt: give one, as in pi -p "What is in this folder?"' in done.stderr
