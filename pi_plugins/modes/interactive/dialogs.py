"""Dialogs: a question in the place of the editor, one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import DynamicKeyBindings, KeyBindings, KeyBindingsBase, merge_key_bindings
from prompt_toolkit.layout import BufferControl, ConditionalContainer, Dimension, FormattedTextControl, HSplit, Window
from prompt_toolkit.layout.processors import ConditionalProcessor, PasswordProcessor
from prompt_toolkit.utils import get_cwidth

from ._text import one_line, plain
from .ui import Choice

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyPressEvent
    from prompt_toolkit.layout import Container

_MESSAGE_ROWS: Final = 10
_CHOICE_ROWS: Final = 10


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
        self.message = plain(message).strip("\n").split("\n") if message else []
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
            self.selected = (self.selected + step) % count if abs(step) == 1 else max(0, min(count - 1, self.selected + step))

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


class Dialogs:
    """Shows dialogs, each when the one before it is over.

    :param changed: called when one opens or closes.
    :param columns: gives the columns of the terminal.
    """

    def __init__(self, changed: Callable[[], None], columns: Callable[[], int]) -> None:
        self._changed = changed
        self._columns = columns
        self._lock = asyncio.Lock()
        self.open: Dialog | None = None
        self.waiting = 0
        self.is_open = Condition(lambda: self.open is not None)

    async def ask(self, make: Callable[[], Dialog]) -> Any:
        """Open a dialog and return its answer; ``None`` when the user left."""
        self.waiting += 1
        try:
            async with self._lock:
                dialog = self.open = make()
                self._changed()
                try:
                    return await dialog.answer
                finally:
                    self.open = None
                    self._changed()
        finally:
            self.waiting -= 1

    # --- how it looks ---

    def container(self) -> Container:
        """Return what draws the open dialog."""
        control = BufferControl(
            buffer=self._placeholder,
            input_processors=[ConditionalProcessor(PasswordProcessor("•"), Condition(lambda: self._now.secret))],
        )
        self._control = control
        self.window = Window(
            control,
            height=lambda: Dimension(min=1, max=8 if self._now.multiline else 1),
            wrap_lines=Condition(lambda: self._now.multiline),
            dont_extend_height=True,
            get_line_prefix=lambda line, wrap: [("class:accent", "› " if line == 0 and wrap == 0 else "  ")],
        )
        self.list = Window(FormattedTextControl(self._list, focusable=True, show_cursor=False), dont_extend_height=True)
        return HSplit(
            [
                Window(FormattedTextControl(self._head), wrap_lines=True, dont_extend_height=True),
                ConditionalContainer(self.window, Condition(lambda: self._now.typed)),
                ConditionalContainer(self.list, Condition(lambda: bool(self._now.choices))),
                Window(FormattedTextControl(self._hint), dont_extend_height=True, height=1),
            ]
        )

    _placeholder: Final = Buffer()

    @property
    def _now(self) -> Dialog:
        assert self.open is not None
        return self.open

    def focus(self) -> Window:
        """Give the window that has the keys while a dialog is open."""
        if self._now.typed:
            self._control.buffer = self._now.buffer
            return self.window
        return self.list

    def _head(self) -> StyleAndTextTuples:
        dialog = self._now
        more = f"  ({self.waiting - 1} more wait)" if self.waiting > 1 else ""
        shown: StyleAndTextTuples = [("class:accent", "? "), ("class:title", dialog.title), ("class:dim", more)]
        rows = dialog.message[dialog.scroll : dialog.scroll + _MESSAGE_ROWS]
        for row in rows:
            shown.append(("", f"\n  {row}"))
        left = len(dialog.message) - dialog.scroll - len(rows)
        if left > 0 or dialog.scroll:
            shown.append(("class:dim", f"\n  … {left} more lines below · PgUp PgDn"))
        return shown

    def _list(self) -> StyleAndTextTuples:
        dialog, width = self._now, self._columns()
        found = dialog.found
        if not found:
            return [("class:dim", "  nothing like this")]
        dialog.selected = min(dialog.selected, len(found) - 1)
        first = max(0, min(dialog.selected - _CHOICE_ROWS // 2, len(found) - _CHOICE_ROWS))
        shown: StyleAndTextTuples = []
        rows = found[first : first + _CHOICE_ROWS]
        column = min(max((get_cwidth(choice.label) for choice in rows), default=0), max(10, width // 2))
        for number, choice in enumerate(rows, first):
            chosen = number == dialog.selected
            mark = "❯ " if chosen else "  "
            digit = f"{number + 1}. " if dialog.numbered else ""
            label = _cut(one_line(choice.label), width - 3 - len(digit))
            shown.append(("class:chosen" if chosen else "", f"{mark}{digit}{label}"))
            room = width - 5 - len(digit) - max(column, get_cwidth(label))
            if choice.detail and room > 8:
                gap = " " * (2 + max(0, column - get_cwidth(label)))
                shown.append(("class:dim", gap + _cut(one_line(choice.detail), room)))
            shown.append(("", "\n"))
        left = len(found) - len(rows)
        if left:
            shown.append(("class:dim", f"  {left} more\n"))
        shown.pop() if not left else None
        return shown

    def _hint(self) -> StyleAndTextTuples:
        dialog = self._now
        parts = ["1-9 or Enter choose" if dialog.numbered else "Enter choose" if dialog.choices else "Enter accept"]
        if dialog.multiline:
            parts.append("Ctrl-J new line")
        parts += [f"{_key_name(key)} {what}" for key, what in dialog.keys.items()]
        parts.append("Esc leave")
        return [("class:dim", _cut("  " + " · ".join(parts), self._columns() - 1))]

    # --- keys ---

    def bindings(self) -> KeyBindingsBase:
        """Return what keys do while a dialog is open."""
        keys = KeyBindings()
        listed = Condition(lambda: self.open is not None and bool(self.open.choices))
        numbered = Condition(lambda: self.open is not None and self.open.numbered)

        def bind(*names: str, when: Condition = self.is_open) -> Callable[[Callable[[KeyPressEvent], None]], None]:
            def register(handler: Callable[[KeyPressEvent], None]) -> None:
                for name in names:
                    keys.add(*name.split(" "), filter=when)(handler)

            return register

        @bind("enter")
        def _accept(event: KeyPressEvent) -> None:
            dialog = self._now
            if dialog.choices:
                dialog.choose("enter")
            else:
                dialog.finish(dialog.buffer.text if dialog.typed else "")

        @bind("escape", "c-c", "c-d")
        def _leave(event: KeyPressEvent) -> None:
            self._now.finish(None)

        @bind("up", "c-p", when=listed)
        def _up(event: KeyPressEvent) -> None:
            self._now.move(-1)

        @bind("down", "c-n", "tab", when=listed)
        def _down(event: KeyPressEvent) -> None:
            self._now.move(1)

        @bind("pageup")
        def _page_up(event: KeyPressEvent) -> None:
            self._page(-1)

        @bind("pagedown")
        def _page_down(event: KeyPressEvent) -> None:
            self._page(1)

        @bind("c-j", when=Condition(lambda: self.open is not None and self.open.multiline))
        def _new_line(event: KeyPressEvent) -> None:
            self._now.buffer.newline(copy_margin=False)

        @bind(*"123456789", when=numbered)
        def _digit(event: KeyPressEvent) -> None:
            number = int(event.data) - 1
            if number < len(self._now.choices):
                self._now.finish((self._now.choices[number], "enter"))

        return merge_key_bindings([keys, DynamicKeyBindings(lambda: self.open.own_keys if self.open else None)])

    def _page(self, step: int) -> None:
        dialog = self._now
        if len(dialog.message) > _MESSAGE_ROWS:
            dialog.scroll = max(0, min(len(dialog.message) - _MESSAGE_ROWS, dialog.scroll + step * (_MESSAGE_ROWS - 1)))
        else:
            dialog.move(step * _CHOICE_ROWS)


def _key_name(key: str) -> str:
    return key.replace("c-", "Ctrl-").title() if key.startswith("c-") else key.capitalize()


def _cut(text: str, width: int) -> str:
    """Return a text that fits."""
    if get_cwidth(text) <= width:
        return text
    shown = ""
    for letter in text:
        if get_cwidth(shown + letter) > width - 1:
            break
        shown += letter
    return shown + "…"
