"""A question that is open: what is asked, what can be chosen, what was typed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.key_binding import KeyBindings

from ._text import one_line, plain
from .ui import Choice


class Dialog:
    """A question that is open.

    :param title: one line.
    :param choices: what can be chosen; nothing asks for a text.
    :param text: the text to begin with; ``None`` when nothing is typed.
    :param multiline: whether the text may have several lines.
    :param secret: whether the text is hidden.
    :param keys: further keys that choose, and what they are for.
    """

    def __init__(
        self,
        title: str,
        *,
        message: str = "",
        choices: Sequence[Choice] = (),
        text: str | None = None,
        multiline: bool = False,
        secret: bool = False,
        keys: Mapping[str, str] | None = None,
        selected: int = 0,
    ) -> None:
        self.title = one_line(title)
        self.message = plain(message).strip("\n")
        self.choices = choices
        self.keys = dict(keys or {})
        self.typed = text is not None
        self.multiline = multiline
        self.secret = secret
        self.selected = selected
        self.scroll = 0
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.own_keys = KeyBindings()
        for name in self.keys:
            self.own_keys.add(*name.split(" "))(lambda event, name=name: self.choose(name))
        self.buffer = Buffer(multiline=multiline, document=Document(text or ""), on_text_changed=self._typed)

    @property
    def numbered(self) -> bool:
        """Whether a digit chooses."""
        return bool(self.choices) and not self.typed and len(self.choices) <= 9

    @property
    def found(self) -> list[Choice]:
        """The choices that what was typed means."""
        return matching(self.choices, self.buffer.text) if self.typed else list(self.choices)

    def move(self, step: int) -> None:
        """Go to another choice."""
        count = len(self.found)
        if count:
            self.selected = (
                (self.selected + step) % count if abs(step) == 1 else max(0, min(count - 1, self.selected + step))
            )

    def finish(self, value: Any) -> None:
        """Answer."""
        if not self.answer.done():
            self.answer.set_result(value)

    def choose(self, key: str) -> None:
        """Answer with the choice that is selected."""
        found = self.found
        if found:
            self.finish((found[min(self.selected, len(found) - 1)], key))

    def _typed(self, buffer: Buffer) -> None:
        if self.choices:
            self.selected = 0


def matching(choices: Sequence[Choice], text: str) -> list[Choice]:
    """Return the choices that have every word of a text, or failing that its letters in order; exact words first."""
    words = text.lower().split()
    if not words:
        return list(choices)
    exact, loose = [], []
    for choice in choices:
        label, all_of_it = choice.label.lower(), f"{choice.label} {choice.detail}".lower()
        if all(word in all_of_it for word in words):
            exact.append(choice)
        elif all(_in_order(word, label) for word in words):
            loose.append(choice)
    return exact + loose


def _in_order(letters: str, text: str) -> bool:
    position = -1
    for letter in letters:
        position = text.find(letter, position + 1)
        if position < 0:
            return False
    return True
