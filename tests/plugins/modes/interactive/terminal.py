"""Drives ``pi`` in a real pseudo terminal, and reads its screen as a terminal would show it."""

from __future__ import annotations

import json
import os
import re
import signal
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import pexpect
import pyte

from ..running import Pi

SECONDS = 30
"""How long a screen is waited for."""

PROMPT = "\u203a"
"""The sign before what the user says."""

SCREENS = Path(__file__).parent / "screens"
STAGE = Path(__file__).parent / "stage.py"

_SPINNER = re.compile("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]")


class _Screen(pyte.HistoryScreen):
    """A screen that keeps the line of the cursor when it gets lower, as terminals do."""

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        lines, columns = lines or self.lines, columns or self.columns
        gone = max(0, self.cursor.y - lines + 1)
        for _ in range(gone):
            self.history.top.append(self.buffer[0])
            for y in range(self.lines - 1):
                self.buffer[y] = self.buffer[y + 1]
            self.buffer.pop(self.lines - 1, None)
        self.cursor.y -= gone
        for y in range(lines, self.lines):
            self.buffer.pop(y, None)
        self.lines, self.columns = lines, columns
        self.set_margins()
        self.dirty.update(range(lines))


class Terminal:
    """``pi`` in a terminal of its own.

    :param pi: where it runs.
    :param arguments: what ``pi`` is started with.
    :param columns: width of the terminal.
    :param rows: height of the terminal.
    """

    def __init__(
        self,
        pi: Pi,
        *arguments: str,
        script: Sequence[Any] | None = None,
        columns: int = 80,
        rows: int = 24,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = pi.folder
        command = pi.command(*arguments, script=script)
        self.screen = _Screen(columns, rows, history=20_000, ratio=0.5)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.child = pexpect.spawn(
            command[0],
            command[1:],
            cwd=str(pi.folder),
            env={**pi.environment, "TERM": "xterm-256color", "LANG": "C.UTF-8", **(environ or {})},
            dimensions=(rows, columns),
            timeout=SECONDS,
        )
        self.child.delaybeforesend = None
        # Taken before Python has started, let alone changed them.
        self.modes_at_start = self.modes()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.child.close(force=True)

    # --- what is shown ---

    def read(self, seconds: float = 0.05) -> bool:
        """Take in what the program has written; ``False`` when it has ended."""
        try:
            data = self.child.read_nonblocking(65536, timeout=seconds)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += data
        self.stream.feed(data)
        return True

    @property
    def lines(self) -> list[str]:
        """The lines of the screen, without spaces at their ends."""
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self) -> str:
        """The screen."""
        return "\n".join(self.lines).rstrip()

    @property
    def scrolled(self) -> str:
        """What has scrolled away and the screen."""
        width = self.screen.columns
        above = ["".join(line[x].data for x in range(width)).rstrip() for line in self.screen.history.top]
        return "\n".join([*above, *self.lines]).rstrip()

    def wait(self, wanted: str | Callable[[str], bool], *, everywhere: bool = False) -> str:
        """Wait until a text is on the screen, or the screen satisfies a test, and return the screen.

        :param everywhere: also look at what has scrolled away.
        """
        end = time.monotonic() + SECONDS
        while True:
            shown = self.scrolled if everywhere else self.text
            if wanted in shown if isinstance(wanted, str) else wanted(shown):
                return shown
            if not self.read() or time.monotonic() > end:
                raise AssertionError(f"not shown: {wanted!r}\n--- screen ---\n{self.scrolled}\n--- end ---")

    def open(self, gate: str) -> None:
        """Let the script go on that waits for a gate."""
        (self.folder / gate).touch()

    def wait_gone(self, text: str) -> str:
        """Wait until a text is not on the screen any more."""
        return self.wait(lambda shown: text not in shown)

    def expect(self, name: str) -> None:
        """Compare the screen, once it has come to rest, with a text file; ``PI_WRITE_SCREENS=1`` writes the file."""
        path = SCREENS / f"{name}.txt"
        if os.environ.get("PI_WRITE_SCREENS"):
            for _ in range(10):
                self.read(0.1)
            SCREENS.mkdir(exist_ok=True)
            path.write_text(self.comparable(self.text) + "\n", encoding="utf-8")
            return
        wanted = path.read_text(encoding="utf-8").rstrip("\n")
        try:
            self.wait(lambda shown: self.comparable(shown) == wanted)
        except AssertionError:
            assert self.comparable(self.text) == wanted, f"{path.name} is another screen"

    @staticmethod
    def comparable(text: str) -> str:
        """The screen without what differs from run to run: spinners, durations, ids and temporary folders."""
        text = _SPINNER.sub("⠋", text)
        text = re.sub(r"[ ·]* \d+ s(?= ·|$)", "", text, flags=re.MULTILINE)
        text = re.sub(r"\d+% of", "N% of", text)
        return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", text)

    def modes(self) -> list[Any]:
        """The modes of the terminal."""
        return termios.tcgetattr(self.child.child_fd)

    # --- what the user does ---

    def type(self, text: str) -> None:
        """Type a text."""
        self.child.send(text)

    def enter(self, text: str = "") -> None:
        """Type a text and press Enter."""
        self.child.send(text)
        if text:
            self.wait(lambda shown: text.split("\n")[-1][-20:] in shown)
        self.child.send("\r")

    def key(self, *names: str) -> None:
        """Press keys."""
        for name in names:
            self.child.send(_KEYS[name] if name in _KEYS else chr(ord(name[-1].upper()) - 64))

    def paste(self, text: str) -> None:
        """Paste a text as terminals do."""
        self.child.send(f"\x1b[200~{text}\x1b[201~")

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the terminal."""
        self.screen.resize(rows, columns)
        self.child.setwinsize(rows, columns)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal."""
        self.child.kill(number)

    def ends(self) -> int:
        """Wait for the end of the program and return its exit code; a signal gives a negative one."""
        end = time.monotonic() + SECONDS
        while self.read():
            assert time.monotonic() < end, f"still runs\n{self.text}"
        self.child.wait()
        if self.child.exitstatus is not None:
            return int(self.child.exitstatus)
        return -int(self.child.signalstatus or 0)


_KEYS = {
    "enter": "\r",
    "escape": "\x1b",
    "alt-enter": "\x1b\r",
    "alt-up": "\x1b\x1b[A",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "tab": "\t",
    "shift-tab": "\x1b[Z",
    "backspace": "\x7f",
    "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~",
}


def messages(folder: Path) -> list[dict[str, Any]]:
    """The messages of the only session that was kept."""
    (file,) = [path for path in folder.rglob("*.jsonl") if "history" not in path.name]
    entries = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return [entry["message"] for entry in entries if entry["type"] == "message"]


def said(message: dict[str, Any]) -> str:
    """The text of a message."""
    return "".join(block.get("text", "") for block in message["content"])
