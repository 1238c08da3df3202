"""Thinking that a server writes into the text: ``<think>`` ... ``</think>`` at the beginning of an answer."""

from __future__ import annotations

from typing import Final

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"


class ThinkTags:
    """Splits the text of one answer, in pieces as they arrive, into thinking and what is said.

    Only tags at the beginning count; once something else was said, the text is passed on as it is.
    """

    __slots__ = ("_begun", "_closed", "_held", "_inside", "done")

    def __init__(self) -> None:
        self._held = ""
        self._inside = self._begun = self._closed = False
        self.done = False

    def feed(self, piece: str) -> tuple[str, str]:
        """Take the next piece; returns the thinking and the text that are certain by now."""
        if self.done:
            return "", piece
        held, self._held = self._held + piece, ""
        if self._closed:
            return "", self._after(held)
        if not self._inside:
            start = held.lstrip()
            if not start.startswith(_OPEN):
                self.done = not _OPEN.startswith(start)
                self._held = "" if self.done else held
                return "", held if self.done else ""
            self._inside = True
            held = start.removeprefix(_OPEN)
        thinking, self._closed, text = _cut(held)
        if self._closed:
            return self._lead(thinking.rstrip("\n")), self._after(text)
        kept = len(held[: len(held) - _overlap(held)].rstrip("\n"))
        self._held = held[kept:]
        return self._lead(held[:kept]), ""

    def finish(self) -> tuple[str, str]:
        """Return what was held back."""
        held, self._held, self.done = self._held, "", True
        return (self._lead(held), "") if self._inside and not self._closed else ("", held)

    def _lead(self, thinking: str) -> str:
        """The thinking without the line ends it begins with."""
        thinking = thinking if self._begun else thinking.lstrip("\n")
        self._begun = self._begun or bool(thinking)
        return thinking

    def _after(self, text: str) -> str:
        """The text without the line ends between it and the thinking."""
        text = text.lstrip("\n")
        self.done = bool(text)
        return text


def _cut(text: str) -> tuple[str, bool, str]:
    thinking, closed, rest = text.partition(_CLOSE)
    return thinking, bool(closed), rest


def _overlap(text: str) -> int:
    """How many characters at the end of the text may be the beginning of the closing tag."""
    return next((size for size in range(len(_CLOSE) - 1, 0, -1) if text.endswith(_CLOSE[:size])), 0)
