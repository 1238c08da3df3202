"""What is drawn below the conversation: what goes on, the messages that wait, the editor or a question, the status."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.layout import ConditionalContainer, FormattedTextControl, HSplit, VerticalAlign, Window

from . import marks
from ._text import count, cut, one_line, seconds

if TYPE_CHECKING:
    from prompt_toolkit.data_structures import Size

    from pi_plugins.coding_agent import AgentSession

    from .conversation import Conversation
    from .dialogs import Dialogs
    from .editor import Editor
    from .painter import Painter
    from .sending import Sender
    from .status import StatusLine

TICK_SECONDS: Final = 0.1
"""How long the sign that something goes on stays the same."""

_QUEUE_ROWS: Final = 4
_OUTPUT_ROWS: Final = 5


class Live:
    """Draws what changes.

    :param painter: makes the lines of the conversation.
    :param size: gives the size of the terminal.
    :param clock: seconds that only go forward.
    """

    def __init__(
        self,
        conversation: Conversation,
        painter: Painter,
        prompt: Editor,
        dialogs: Dialogs,
        status: StatusLine,
        *,
        size: Callable[[], Size],
        clock: Callable[[], float],
    ) -> None:
        self._conversation = conversation
        self._painter = painter
        self._dialogs = dialogs
        self._status = status
        self._size = size
        self._clock = clock
        self._lines: list[str] = []
        self._goes_on: StyleAndTextTuples = []
        self.session: AgentSession | None = None
        self.sender: Sender | None = None
        self.hint = ""
        """Stands in the place of the status line while it is not empty."""
        self.container = self._stacked(prompt)

    def _stacked(self, prompt: Editor) -> HSplit:
        def lines(make: Callable[[], StyleAndTextTuples]) -> ConditionalContainer:
            window = Window(FormattedTextControl(make), dont_extend_height=True)
            return ConditionalContainer(window, Condition(lambda: bool(make())))

        asking = self._dialogs.is_open
        return HSplit(
            [
                lines(lambda: self._goes_on),
                lines(self._activity_text),
                lines(self._queue_text),
                Window(height=1),
                ConditionalContainer(HSplit([prompt.window, prompt.completions()]), ~asking),
                ConditionalContainer(self._dialogs.container(), asking),
                lines(self._status_text),
            ],
            align=VerticalAlign.TOP,
        )

    def printed(self, width: int) -> list[str]:
        """Make the lines of a frame: those that stay, which are returned, and those that go on."""
        lines = self._painter.printed(width)
        rows = self._size().rows
        room = rows - self._other_rows(width, rows)
        self._lines = self._painter.live(width, max(0, min(room, rows * 2 // 3)))
        self._goes_on = [
            fragment
            for number, line in enumerate(self._lines)
            for fragment in [*([("", "\n")] if number else []), *to_formatted_text(ANSI(line))]
        ]
        return lines

    def _other_rows(self, width: int, rows: int) -> int:
        """Rows that are needed below what goes on; whether that is anything is taken from the frame before."""
        self._goes_on = []
        wanted: int = self.container.preferred_height(width, rows).preferred
        return wanted + 1

    @property
    def moves(self) -> bool:
        """Whether something goes on that is drawn anew as time goes by."""
        return bool(self._conversation.activity) or (self.sender is not None and bool(self.sender.command))

    def _activity_text(self) -> StyleAndTextTuples:
        shown: StyleAndTextTuples = []
        width, sender = self._size().columns, self.sender
        if sender is not None and sender.command:
            command = cut(one_line(sender.command), width - 3)
            shown += [("class:accent", f"{marks.SHELL} "), ("class:title", command), ("", "\n")]
            for line in sender.output.rstrip("\n").split("\n")[-_OUTPUT_ROWS:]:
                shown += [("class:dim", f"  {cut(line, width - 3)}"), ("", "\n")]
        if self._dialogs.open is not None:
            return shown
        what = self._conversation.activity or ("Running" if sender is not None and sender.command else "")
        if not what:
            return shown
        sign = marks.SPINNER[int(self._clock() / TICK_SECONDS) % len(marks.SPINNER)]
        took = self._conversation.took
        after = f" · {seconds(took)}" if took >= 1 else ""
        gap = [("", "\n")] if self._lines else []
        return [*gap, *shown, ("class:accent", f"{sign} "), ("", what), ("class:dim", f"{after} · Esc aborts")]

    def _queue_text(self) -> StyleAndTextTuples:
        session, sender, width = self.session, self.sender, self._size().columns
        if session is None or sender is None:
            return []
        waiting = [("next", text) for text in session.steering.texts] + [
            ("later", text) for text in session.follow_ups.texts
        ]
        lines = [cut(f"  {when}: {one_line(sender.as_typed(text))}", width - 1) for when, text in waiting[:_QUEUE_ROWS]]
        if waiting:
            more = f"{count(len(waiting) - _QUEUE_ROWS, 'more message')} · " if len(waiting) > _QUEUE_ROWS else ""
            lines.append(cut(f"  {more}↑ takes the last one back", width - 1))
        return [("class:dim", "\n".join(lines))] if lines else []

    def _status_text(self) -> StyleAndTextTuples:
        width = self._size().columns
        if self.hint:
            return [("class:warning", cut(f"  {self.hint}", width - 1))]
        return self._status.draw(width)


__all__ = ["TICK_SECONDS", "Live"]
