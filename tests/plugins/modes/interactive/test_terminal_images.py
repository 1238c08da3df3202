from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from pi_core import ImageContent
from pi_plugins.config.settings import TerminalSettings
from pi_plugins.modes.interactive.abilities import images, links
from pi_plugins.modes.interactive.image_view import Picture
from pi_plugins.modes.interactive.paper import Paper, with_styles_only

from ..running import Pi
from .terminal import Terminal

Play = Callable[..., Terminal]


def png(width: int, height: int) -> bytes:
    """An image."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(b"\0" * (width + 1) * height))
    return b"\x89PNG\r\n\x1a\n" + header + pixels + chunk(b"IEND", b"")


def content(data: bytes | str, mime: str = "image/png") -> ImageContent:
    text = data if isinstance(data, str) else base64.b64encode(data).decode()
    return ImageContent(data=text, mime_type=mime)


def paper(protocol: str) -> Paper:
    made = Paper()
    made.drawing.protocol = protocol  # type: ignore[assignment]
    return made


@pytest.mark.parametrize(
    ("environ", "protocol"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, "kitty"),
        ({"TERM_PROGRAM": "iTerm.app"}, "iterm2"),
        ({"TERM": "xterm-256color"}, "none"),
        ({"TERM": "screen-256color", "TERM_PROGRAM": "iTerm.app"}, "none"),
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/x,1,0"}, "none"),
    ],
)
def test_the_terminal_tells_how_it_takes_images(environ: dict[str, str], protocol: str) -> None:
    assert images(TerminalSettings(), environ) == protocol


def test_the_settings_have_the_last_word() -> None:
    kitty = {"TERM": "xterm-kitty"}
    assert images(TerminalSettings(images="iterm2"), {}) == "iterm2"
    assert images(TerminalSettings(show_images=False), kitty) == "none"
    assert links(TerminalSettings(hyperlinks=True), {})
    assert not links(TerminalSettings(hyperlinks=False), kitty)


@pytest.mark.parametrize(
    ("environ", "linking"),
    [
        ({"TERM": "xterm-kitty"}, True),
        ({"VTE_VERSION": "7600"}, True),
        ({"VTE_VERSION": "4000"}, False),
        ({"TERM_PROGRAM": "Apple_Terminal"}, False),
        ({"VTE_VERSION": "7600", "TMUX": "x"}, False),
    ],
)
def test_links_can_be_clicked_where_the_terminal_is_known_to_take_them(environ: dict[str, str], linking: bool) -> None:
    assert links(TerminalSettings(), environ) is linking


def test_an_image_takes_rows_of_its_own_and_is_named_below() -> None:
    lines = paper("kitty").lines(Picture(content(png(160, 160))), 80)
    assert len(lines) == 11
    assert re.search(r"\x1b7\x1b\[9A\x1b_Ga=T,f=100,q=2,C=1,c=20,r=10,m=0;[\w+/=]+\x1b\\\x1b8$", lines[9])
    assert with_styles_only(lines[9]).strip() == ""
    assert "[image: png, 1 kB]" in lines[10]


def test_a_large_image_keeps_its_shape_within_the_rows_there_are() -> None:
    line = "".join(paper("iterm2").lines(Picture(content(png(800, 1600))), 80))
    assert "\x1b]1337;File=inline=1;width=16;height=16;preserveAspectRatio=1:" in line


@pytest.mark.parametrize(
    "image",
    [
        content("AAAA\x1b]0;owned\x07"),
        content(png(8, 8)[:-20]),
        content(b"GIF89a\x01\x00\x01\x00\x00\x00\x00", "image/gif"),
        content(b"<svg/>", "image/svg+xml"),
    ],
    ids=["no base64", "damaged", "not for kitty", "unknown"],
)
def test_what_cannot_be_drawn_is_named_only(image: ImageContent) -> None:
    lines = paper("kitty").lines(Picture(image), 80)
    assert len(lines) == 1
    assert "[image: " in lines[0]
    assert "owned" not in lines[0]


@pytest.mark.parametrize(("term", "drawn"), [("xterm-kitty", True), ("xterm-256color", False)])
def test_an_image_of_a_prompt_is_drawn_where_the_terminal_can(play: Play, pi: Pi, term: str, drawn: bool) -> None:
    Path(pi.folder, "dot.png").write_bytes(png(8, 8))
    with play([[{"text": "A dot."}]], environ={"TERM": term}) as terminal:
        terminal.type("what is @dot.png ")
        terminal.wait("@dot.png")
        terminal.key("enter")
        terminal.wait("A dot.")
    assert (b"\x1b_Ga=T" in terminal.raw) is drawn
