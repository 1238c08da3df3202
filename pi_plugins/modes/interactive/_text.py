"""Text from outside, made safe to print."""

from __future__ import annotations

import re
from typing import Final

from prompt_toolkit.utils import get_cwidth

_SEQUENCES: Final = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]"  # CSI: colors, cursor
    "|\x1b[\\]PX^_].*?(?:\x07|\x1b\\\\|$)"  # OSC, DCS and other strings: titles, clipboard
    "|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_REORDERING: Final = re.compile("[\u202a-\u202e\u2066-\u2069]|[\ud800-\udfff]")
_OVERWRITTEN: Final = re.compile(r"[^\n]*\r(?=[^\n\r])")


def plain(text: str) -> str:
    """Return a text without what would steer the terminal: no escape sequences, no controls but line ends.

    Of a line that was written over, as progress bars do, the last state stays. Marks that change the direction of
    writing are replaced, so that what is read is what will run.
    """
    if text.isascii() and text.isprintable():
        return text
    if "\x1b" in text:
        text = _SEQUENCES.sub("", text)
    if "\r" in text:
        text = _OVERWRITTEN.sub("", text.replace("\r\n", "\n"))
    return _REORDERING.sub("\ufffd", _CONTROLS.sub("", text)).expandtabs(4)


def one_line(text: str) -> str:
    """Return a text as one line, safe to print."""
    return " ".join(plain(text).split())


def cut(text: str, width: int) -> str:
    """Return a text that has no more columns than there are, with an ellipsis where it goes on."""
    if get_cwidth(text) <= width:
        return text
    shown, used = [], 1
    for letter in text:
        used += get_cwidth(letter)
        if used > width:
            break
        shown.append(letter)
    return "".join(shown) + "…"


def count(number: int, one: str, many: str | None = None) -> str:
    """Return a number with the word for what it counts: ``1 line``, ``5,000 lines``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def tokens(number: float) -> str:
    """Return a number of tokens in a few characters: ``950``, ``12.3k``, ``1.2M``."""
    if number < 1000:
        return f"{number:.0f}"
    if number < 999_500:
        return f"{number / 1000:.1f}k" if number < 100_000 else f"{number / 1000:.0f}k"
    return f"{number / 1_000_000:.1f}M"


def seconds(number: float) -> str:
    """Return a duration: ``8 s``, ``2 min 5 s``, ``1 h 2 min``."""
    whole = int(number)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
