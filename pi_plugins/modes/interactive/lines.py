"""The interactive mode for terminals that can only print lines."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import termios
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from pi_core import ImageContent, ToolExecutionStartEvent

from ._beside import Beside
from ._text import plain
from .blocks import Block
from .conversation import Conversation
from .dialog import matching
from .painter import Painter
from .paper import Paper
from .sending import Sender
from .ui import Choice, CompletionSource, Level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prompt_toolkit.history import History

    from pi_plugins.coding_agent import AgentSession, SessionEvent
    from pi_plugins.coding_agent.inputs import Delivery

_FLUSH_SECONDS: Final = 0.1
_LISTED: Final = 30


class LineUi:
    """Talks in lines. What is typed while the agent works steers it; Ctrl-C aborts, and leaves when nothing goes on."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.sources: list[CompletionSource] = []
        self.leaving = asyncio.Event()
        self.conversation = Conversation(self._columns, clock=clock)
        self._painter = Painter(self.conversation, Paper(color=False, styles=False))
        self._session: AgentSession | None = None
        self._sender: Sender | None = None
        self._ready = asyncio.Event()
        self._lock = asyncio.Lock()
        self._beside = Beside(lambda text: self.show(text, "error"))
        self._waiting: asyncio.Future[str | None] | None = None
        self._rest = b""
        self._due: asyncio.TimerHandle | None = None

    @staticmethod
    def _columns() -> int:
        return shutil.get_terminal_size().columns

    # --- running ---

    async def run(self, main: Callable[[], Awaitable[int]]) -> int:
        """Read lines while ``main`` runs."""
        loop = asyncio.get_running_loop()
        descriptor = sys.__stdin__.fileno() if sys.__stdin__ is not None else 0
        loop.add_reader(descriptor, self._readable, descriptor)
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        try:
            return await main()
        finally:
            loop.remove_reader(descriptor)
            loop.remove_signal_handler(signal.SIGINT)
            self._flush()

    def _readable(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, 65536)
        except OSError:
            data = b""
        if not data:
            self._write("\n")
            self._line(None)
            self.exit()
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._line(line.decode("utf-8", "replace").rstrip("\r"))

    def _line(self, text: str | None) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(text)
        elif text is not None and text.strip():
            if self._session is not None and self._session.is_idle:
                self.conversation.seen = text
            self.start(self.send(text, delivery="steer"))

    def _interrupt(self) -> None:
        session = self._session
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
        elif session is not None and session.bash.active:
            session.bash.abort()
        elif session is not None and not session.is_idle:
            self.abort()
        else:
            self.exit()

    def abort(self) -> None:
        """Abort the run; what waited is printed, to be typed again."""
        if self._session is not None and self._sender is not None:
            self._sender.give_back_queue()
            self._session.abort()

    def attach(self, session: AgentSession) -> None:
        """Show a session and take inputs for it."""
        self._session = session
        self._sender = Sender(session, self.conversation, self)
        self.conversation.attach(session)
        session.subscribe(self._on_event)
        self._ready.set()

    def use_history(self, history: History) -> None:
        """Keep nothing: the terminal has no editor."""

    def _on_event(self, event: SessionEvent) -> Awaitable[None] | None:
        if isinstance(event, ToolExecutionStartEvent):
            self._flush()
            line = "\n".join(self._painter.live(self._columns(), 1))
            self._write(f"\n{line.removesuffix('…')}…\n")
        if event.type == "agent_settled":
            self._flush()
            self._prompt()
        elif self._due is None:
            self._due = asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self._flush)
        return None

    def _flush(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        lines = self._painter.printed(self._columns())
        if lines:
            self._write("\n".join(lines) + "\n")

    def _prompt(self) -> None:
        self._write("\n> ")

    @staticmethod
    def _write(text: str) -> None:
        stream = sys.__stdout__
        if stream is not None:
            stream.write(text.encode(stream.encoding or "ascii", "replace").decode(stream.encoding or "ascii"))
            stream.flush()

    def refresh_status(self) -> None:
        """Print nothing: there is no status line."""

    def restore(self) -> None:
        """Leave the terminal as it is: its modes were not changed."""

    def greet(self, session: AgentSession) -> None:
        """Print what one should know at the start."""
        self.show(f"pi  {session.model.provider}/{session.model.id}")
        self.show("A line is sent as it ends. /help lists commands, Ctrl-C aborts, Ctrl-D leaves.")
        self._prompt()

    def as_typed(self, text: str) -> str:
        """Return what was typed for a text that waits."""
        return text if self._sender is None else self._sender.as_typed(text)

    def start(self, work: Awaitable[None]) -> None:
        """Let something run beside; what it raises is shown."""
        self._beside.start(work)

    async def send(self, text: str, images: Sequence[ImageContent] = (), *, delivery: Delivery = "followUp") -> None:
        """Send an input as if it were typed, as soon as there is a session."""
        await self._ready.wait()
        assert self._sender is not None
        assert self._session is not None
        await self._sender.send(text, delivery, images)
        self._flush()
        if self._session.is_idle:
            self._prompt()

    def give_back(self, texts: Iterable[str]) -> None:
        """Say what was not sent."""
        for text in texts:
            self.show(f"Not sent: {text}", "warning")

    # --- for commands and dialogs ---

    @property
    def session(self) -> AgentSession | None:
        """The session that is shown."""
        return self._session

    async def _ask(self, question: str, *, secret: bool = False) -> str | None:
        self._flush()
        self._write(question)
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            with _silent() if secret else _aloud():
                return await self._waiting
        finally:
            self._waiting = None

    async def select(
        self,
        title: str,
        choices: Sequence[Choice],
        *,
        message: str = "",
        filter: bool = True,  # noqa: A002 - the word for it
        keys: Mapping[str, str] | None = None,
        selected: int = 0,
    ) -> tuple[Choice, str] | None:
        """Let the user choose by number; with a filter, a word shows the choices that have it."""
        async with self._lock:
            self._head(title, message)
            found = list(choices)
            while True:
                self._list(found)
                others = "".join(
                    f", Ctrl-C to {what}" if key == "c-c" else f", 'NUMBER {key}' to {what}"
                    for key, what in (keys or {}).items()
                )
                words = ", a word to look for" if filter else ""
                answer = await self._ask(f"Number{words}{others}, nothing to leave: ")
                if answer is None and "c-c" in (keys or {}):
                    return found[0], "c-c"
                if not (answer or "").strip():
                    return None
                number, _, key = str(answer).strip().partition(" ")
                if number.isdigit() and 0 < int(number) <= len(found) and (not key or key in (keys or {})):
                    return found[int(number) - 1], key or "enter"
                if filter:
                    found = matching(choices, str(answer)) or found

    def _head(self, title: str, message: str) -> None:
        self._flush()
        self._write(f"\n? {plain(title)}\n" + "".join(f"  {line}\n" for line in plain(message).split("\n") if message))

    def _list(self, choices: Sequence[Choice]) -> None:
        for number, choice in enumerate(choices[:_LISTED], 1):
            detail = f"  ({plain(choice.detail)})" if choice.detail else ""
            self._write(f"  {number}. {plain(choice.label)}{detail}\n")
        if len(choices) > _LISTED:
            self._write(f"  and {len(choices) - _LISTED} more\n")

    async def confirm(self, title: str, message: str = "") -> bool:
        """Ask yes or no; leaving is no."""
        async with self._lock:
            self._head(title, message)
            answer = await self._ask("y/n: ")
            return (answer or "").strip().lower() in ("y", "yes")

    async def input(self, title: str, prefill: str = "", *, secret: bool = False) -> str | None:
        """Ask for a line; an empty one takes what there is."""
        async with self._lock:
            self._head(title, "")
            answer = await self._ask(f"[{prefill}] " if prefill else ": ", secret=secret)
            return answer or prefill if answer is not None else None

    async def editor(self, title: str, prefill: str = "") -> str | None:
        """Ask for a text; a line with a dot ends it."""
        async with self._lock:
            self._head(title, prefill)
            self._write("A line with a dot ends the text; a dot alone keeps what there is.\n")
            lines: list[str] = []
            while (line := await self._ask("")) != ".":
                if line is None:
                    return None
                lines.append(line)
            return "\n".join(lines) if lines else prefill

    def show(self, content: Any, level: Level = "info") -> None:
        """Print into the conversation."""
        if isinstance(content, str):
            self.conversation.say(content, level)
        else:
            self.conversation.add(Block(content, fallback=Text(plain(str(content)))))
        self._flush()

    def set_status(self, key: str, text: str | None) -> None:
        """Print a text once; there is no status line."""
        if text:
            self.show(text)

    def set_editor_text(self, text: str) -> None:
        """Print a text that is to be sent again."""
        self.show(f"To send it again, type: {text}")

    def clear(self) -> None:
        """Clear nothing: the terminal cannot."""

    def exit(self) -> None:
        """Leave."""
        self.leaving.set()


@contextmanager
def _aloud() -> Iterator[None]:
    yield


@contextmanager
def _silent() -> Iterator[None]:
    """Let the terminal show nothing of what is typed."""
    descriptor = sys.__stdin__.fileno() if sys.__stdin__ is not None else 0
    modes = termios.tcgetattr(descriptor)
    quiet = [*modes[:3], modes[3] & ~termios.ECHO, *modes[4:]]
    termios.tcsetattr(descriptor, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, modes)
