"""Dialogs: a question in the place of the editor, one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import DynamicKeyBindings, KeyBindings, KeyBindingsBase, merge_key_bindings
from prompt_toolkit.layout import BufferControl, ConditionalContainer, Dimension, FormattedTextControl, HSplit, Window
from prompt_toolkit.layout.processors import ConditionalProcessor, PasswordProcessor
from prompt_toolkit.utils import get_cwidth
from rich.text import Text

from . import marks
from ._text import cut, one_line, plain
from .dialog import Dialog
from .editor import prompt_mark
from .paper import Paper

if TYPE_CHECKING:
    from prompt_toolkit.data_structures import Size
    from prompt_toolkit.key_binding import KeyPressEvent
    from prompt_toolkit.layout import Container

_MESSAGE_ROWS: Final = 10
_LEAST_MESSAGE_ROWS: Final = 3
_CHOICE_ROWS: Final = 10
_OTHER_ROWS: Final = 7
"""Rows around message and choices: the title, the keys, the status line, and what is empty."""


class Dialogs:
    """Shows dialogs, each when the one before it is over.

    :param changed: called when one opens or closes.
    :param size: gives the size of the terminal.
    """

    def __init__(self, changed: Callable[[], None], size: Callable[[], Size]) -> None:
        self._changed = changed
        self._size = size
        self._paper = Paper(styles=False)
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
            get_line_prefix=prompt_mark,
        )
        self.list = Window(FormattedTextControl(self._list, focusable=True, show_cursor=False), dont_extend_height=True)
        return HSplit(
            [
                Window(FormattedTextControl(self._head), dont_extend_height=True),
                ConditionalContainer(self.window, Condition(lambda: self._now.typed)),
                ConditionalContainer(self.list, Condition(lambda: bool(self._now.choices))),
                Window(FormattedTextControl(self._hint), dont_extend_height=True),
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
        dialog, width = self._now, self._size().columns
        more = f"  ({self.waiting - 1} more wait)" if self.waiting > 1 else ""
        message, room = self._message_rows()
        dialog.scroll = max(0, min(dialog.scroll, len(message) - room))
        if message:
            title = [cut(dialog.title, width - 3 - len(more))]
        else:
            title = [line.strip() for line in self._paper.lines(Text(dialog.title), width - 1 - len(more))]
        shown: StyleAndTextTuples = [("class:accent", f"{marks.QUESTION} "), ("class:title", "\n  ".join(title))]
        shown.append(("class:dim", more))
        rows = message[dialog.scroll : dialog.scroll + room]
        shown += [("", f"\n{row}") for row in rows]
        left = len(message) - dialog.scroll - len(rows)
        if left > 0 or dialog.scroll:
            shown.append(("class:dim", f"\n  … {left} more lines below · PgUp PgDn"))
        if rows:
            shown.append(("", "\n"))
        return shown

    def _message_rows(self) -> tuple[list[str], int]:
        """Return the rows of the message, and how many of them there is room for."""
        dialog, size = self._now, self._size()
        if not dialog.message:
            return [], _MESSAGE_ROWS
        room = size.rows - _OTHER_ROWS - min(len(dialog.choices), _CHOICE_ROWS)
        lines = self._paper.lines(Text(dialog.message), size.columns - 1)
        return lines, max(_LEAST_MESSAGE_ROWS, min(_MESSAGE_ROWS, room))

    def _list(self) -> StyleAndTextTuples:
        dialog, width = self._now, self._size().columns
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
            mark = f"{marks.CHOSEN} " if chosen else "  "
            digit = f"{number + 1}. " if dialog.numbered else ""
            label = cut(" ".join(plain(choice.label).splitlines()), width - 3 - len(digit))
            shown.append(("class:chosen" if chosen else "", f"{mark}{digit}{label}"))
            room = width - 5 - len(digit) - max(column, get_cwidth(label))
            if choice.detail and room > 8:
                gap = " " * (2 + max(0, column - get_cwidth(label)))
                shown.append(("class:dim", gap + cut(one_line(choice.detail), room)))
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
        return [("class:dim", "\n".join(_filled(parts, self._size().columns - 1)))]

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
        message, room = self._message_rows()
        if len(message) > room:
            dialog.scroll = max(0, min(len(message) - room, dialog.scroll + step * (room - 1)))
        else:
            dialog.move(step * _CHOICE_ROWS)


def _key_name(key: str) -> str:
    return key.replace("c-", "Ctrl-").title() if key.startswith("c-") else key.capitalize()


def _filled(parts: list[str], width: int) -> list[str]:
    """Return lines with as many parts as have room in each."""
    lines: list[str] = []
    for part in parts:
        longer = f"{lines[-1]} · {part}" if lines else ""
        if longer and get_cwidth(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(cut(f"  {part}", width))
    return lines
