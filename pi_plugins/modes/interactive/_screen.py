"""The terminal itself: lines that stay are written above, what changes is drawn below, each frame in one piece."""

from __future__ import annotations

import os
import re
import sys
import termios
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from prompt_toolkit.data_structures import Size
from prompt_toolkit.layout.screen import Char
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import Renderer
from prompt_toolkit.styles import BaseStyle
from prompt_toolkit.utils import get_cwidth

from .paper import with_styles_only

if TYPE_CHECKING:
    from prompt_toolkit.application import Application

FRAME_SECONDS: Final = 1 / 30
"""The least time between two frames."""

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Tell terminals that know it to show what is between them at once."""

_STYLES: Final = re.compile("\x1b\\[[0-9;]*m")

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
    """Draws below the conversation. After a change of size, what is on the screen is wiped off, to be printed again.

    :param reflow: whether the terminal wraps lines anew.
    :param printed: gives the last lines that were printed above.
    """

    def __init__(
        self, style: BaseStyle, output: HeldOutput, *, reflow: bool, printed: Callable[[], Sequence[str]]
    ) -> None:
        self._reflow = reflow
        self._printed = printed
        self._drawn: Size | None = None
        self.wiped = 0
        """How many of the printed lines were wiped off."""
        super().__init__(style, output)

    def render(self, app: Application[Any], layout: Any, is_done: bool = False) -> None:
        """Draw, and remember how large the terminal was."""
        self._drawn = self.output.get_size()
        super().render(app, layout, is_done)

    def erase(self, leave_alternate_screen: bool = True) -> None:
        """Erase what was drawn; after a change of size, also what was printed and is still on the screen."""
        size = self.output.get_size()
        screen = self.last_rendered_screen
        if screen is None or size == self._drawn:
            super().erase(leave_alternate_screen)
            return
        drawn = [_row_text(screen.data_buffer[y]) for y in range(screen.height)]
        cursor = self._cursor_pos
        up = sum(self._rows(text, size.columns) for text in drawn[: cursor.y])
        up += self._rows(drawn[cursor.y][: cursor.x + 1], size.columns) - 1
        below = sum(self._rows(text, size.columns) for text in drawn[cursor.y + 1 :])
        for line in reversed(self._printed()):
            if up >= size.rows - 1 - below:
                break
            up += self._rows(_STYLES.sub("", with_styles_only(line)), size.columns)
            self.wiped += 1
        self._wipe(min(up, size.rows - 1), size.rows)
        self.reset(leave_alternate_screen=leave_alternate_screen)

    def _rows(self, text: str, columns: int) -> int:
        """Rows that a line of text takes now."""
        return max(1, -(-get_cwidth(text) // columns)) if self._reflow else 1

    def _wipe(self, up: int, rows: int) -> None:
        # Line by line: what clears the screen at once makes some terminals keep it in their history.
        clear = "\x1b[2K\x1b[B" * (rows - 1) + "\x1b[2K"
        self.output.write_raw("\r" + (f"\x1b[{up}A" if up else "") + f"\x1b7{clear}\x1b8")
        self.output.reset_attributes()
        self.output.enable_autowrap()


def _row_text(row: Mapping[int, Char]) -> str:
    """The text of a drawn row, without spaces at its end."""
    return "".join(row[x].char for x in range(max(row, default=-1) + 1)).rstrip()


class Above:
    """Writes lines above what is drawn.

    :param renderer: draws below.
    :param lines: returns the lines that are to be written now, for a width.
    :param again: returns the last lines that were written, as they are at another width.
    """

    def __init__(
        self,
        renderer: InlineRenderer,
        output: HeldOutput,
        lines: Callable[[int], list[str]],
        again: Callable[[int, int], list[str]],
    ) -> None:
        self._renderer = renderer
        self._output = output
        self._lines = lines
        self._again = again

    def before_frame(self, app: Application[Any]) -> None:
        """Write what is due, and make room again where less is drawn than before."""
        self._output.hold()
        size = self._output.get_size()
        wiped, self._renderer.wiped = self._renderer.wiped, 0
        lines = self._again(wiped, size.columns) if wiped else []
        lines += self._lines(size.columns)
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
