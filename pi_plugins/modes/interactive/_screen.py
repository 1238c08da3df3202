"""The terminal itself: lines that stay are written above, what changes is drawn below, each frame in one piece."""

from __future__ import annotations

import os
import sys
import termios
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import Renderer
from prompt_toolkit.styles import BaseStyle

if TYPE_CHECKING:
    from prompt_toolkit.application import Application

FRAME_SECONDS: Final = 1 / 30
"""The least time between two frames."""

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Tell terminals that know it to show what is between them at once."""

_REFLOWING: Final = (
    "VTE_VERSION", "TMUX", "KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "WEZTERM_PANE", "ALACRITTY_WINDOW_ID",
    "GHOSTTY_RESOURCES_DIR", "ITERM_SESSION_ID",
)  # fmt: skip
_REFLOWING_TERMS: Final = ("tmux", "xterm-kitty", "alacritty", "xterm-ghostty", "foot", "wezterm")


class HeldOutput(Vt100_Output):
    """An output that can be held, so that several steps reach the terminal as one write."""

    _held = False

    def hold(self) -> None:
        """Write nothing until :meth:`release`."""
        self._held = True

    def release(self) -> None:
        """Write what was held."""
        self._held = False
        self.flush()

    def flush(self) -> None:
        """Write what there is, unless it is held."""
        if not self._held and self._buffer:
            self._buffer = [_BEGIN, *self._buffer, _END]
            super().flush()


def open_output() -> HeldOutput:
    """Return the output to the process's own terminal."""
    output = HeldOutput.from_pty(sys.__stdout__ or sys.stdout, term=os.environ.get("TERM"))
    assert isinstance(output, HeldOutput)
    output.enable_cpr = False
    return output


class TerminalState:
    """The modes of a terminal, as they were.

    :param descriptor: of the terminal.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._modes = termios.tcgetattr(descriptor)

    def restore(self) -> None:
        """Put them back."""
        termios.tcsetattr(self._descriptor, termios.TCSANOW, self._modes)


def reflows(environ: Mapping[str, str]) -> bool:
    """Whether the terminal wraps what it shows anew when its width changes, as far as that can be known."""
    term = environ.get("TERM", "")
    known = environ.get("TERM_PROGRAM", "") in ("iTerm.app", "Apple_Terminal", "vscode", "WezTerm", "ghostty")
    return known or term.startswith(_REFLOWING_TERMS) or any(environ.get(name) for name in _REFLOWING)


class InlineRenderer(Renderer):
    """Draws below the conversation, and knows what becomes of that when the terminal gets narrower.

    :param reflow: whether the terminal wraps lines anew.
    """

    def __init__(self, style: BaseStyle, output: HeldOutput, *, reflow: bool) -> None:
        self._reflow = reflow
        self._drawn_columns = 0
        super().__init__(style, output)

    def render(self, app: Application[Any], layout: Any, is_done: bool = False) -> None:
        """Draw, and remember how wide the terminal was."""
        super().render(app, layout, is_done)
        self._drawn_columns = self.output.get_size().columns

    def erase(self, leave_alternate_screen: bool = True) -> None:
        """Erase what was drawn, also the lines it was wrapped into since."""
        extra = self._wrapped_rows()
        if extra:
            self.output.write_raw("\r")
            self.output.cursor_up(extra)
        super().erase(leave_alternate_screen)

    def _wrapped_rows(self) -> int:
        """Rows above the cursor that were added by wrapping."""
        columns, screen = self.output.get_size().columns, self.last_rendered_screen
        if not self._reflow or screen is None or columns >= self._drawn_columns:
            return 0
        extra = 0
        cursor = self._cursor_pos
        for y in range(cursor.y + 1):
            row = screen.data_buffer[y]
            width = max((x + 1 for x, cell in row.items() if cell.char.strip()), default=0)
            if y == cursor.y:
                width = max(1, min(width, cursor.x + 1))
            extra += max(0, -(-width // columns) - 1)
        return extra


class Above:
    """Writes lines above what is drawn.

    :param renderer: draws below.
    :param lines: returns the lines that are to be written now, for a width.
    """

    def __init__(self, renderer: InlineRenderer, output: HeldOutput, lines: Callable[[int], list[str]]) -> None:
        self._renderer = renderer
        self._output = output
        self._lines = lines

    def before_frame(self, app: Application[Any]) -> None:
        """Write what is due, and make room again where less is drawn than before."""
        self._output.hold()
        size = self._output.get_size()
        lines = self._lines(size.columns)
        screen = self._renderer.last_rendered_screen
        drawn = screen.height if screen is not None else 0
        wanted = app.layout.container.preferred_height(size.columns, size.rows).preferred
        if lines or wanted < drawn:
            self._renderer.erase(leave_alternate_screen=False)
        if lines:
            self._output.write_raw("\r\n".join(lines) + "\r\n")

    def after_frame(self, app: Application[Any]) -> None:
        """Let the frame reach the terminal."""
        self._output.release()
