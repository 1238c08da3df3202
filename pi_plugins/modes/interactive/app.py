"""The application: the conversation above, and below it what goes on, the queue, the editor and the status line."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from prompt_toolkit.application import Application
from prompt_toolkit.filters import Condition
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import merge_key_bindings
from prompt_toolkit.layout import Layout
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style
from rich.console import Group
from rich.text import Text

from pi_core import ImageContent, PiError

from . import theme
from ._beside import Beside
from ._screen import FRAME_SECONDS, Above, InlineRenderer, TerminalState, open_output, reflows
from ._text import plain
from .abilities import images
from .blocks import Block
from .controls import editor_bindings
from .conversation import Conversation
from .dialog import Dialog
from .dialogs import Dialogs
from .editor import Editor
from .live import TICK_SECONDS, Live
from .painter import Painter
from .paper import Paper
from .sending import Sender
from .status import StatusLine
from .ui import Choice, CompletionSource, Level

if TYPE_CHECKING:
    from prompt_toolkit.history import History

    from pi_plugins.coding_agent import AgentSession, SessionEvent
    from pi_plugins.coding_agent.inputs import Delivery

_TWICE_SECONDS: Final = 2.0
_REFRESHING: Final = frozenset(
    {"turn_end", "agent_settled", "compaction_end", "thinking_level_changed", "session_info_changed", "notice"}
)
"""Events after which the status line may say something else."""


class TerminalUi:
    """The interactive mode on a terminal; the :class:`~pi_plugins.modes.interactive.Ui` of its commands.

    :param environ: environment variables.
    :param clock: seconds that only go forward.
    """

    def __init__(self, environ: Mapping[str, str], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        color = not environ.get("NO_COLOR")
        self._terminal = TerminalState(sys.__stdin__.fileno() if sys.__stdin__ is not None else 0)
        self._output = open_output()
        self.sources: list[CompletionSource] = []
        self.conversation = Conversation(self._columns, clock=clock)
        self.status = StatusLine(lambda text: self.conversation.say(text, "warning"))
        self.prompt = Editor(self.sources, self._columns, self._rows)
        self.dialogs = Dialogs(self._dialog_changed, self._output.get_size)
        self._paper = Paper(color=color)
        self._painter = Painter(self.conversation, self._paper)
        self._live = Live(
            self.conversation,
            self._painter,
            self.prompt,
            self.dialogs,
            self.status,
            size=self._output.get_size,
            clock=clock,
        )
        self._interrupted = -_TWICE_SECONDS
        self._escaped = -_TWICE_SECONDS
        self._session: AgentSession | None = None
        self._sender: Sender | None = None
        self._ready = asyncio.Event()
        self.leaving = asyncio.Event()
        """Set when the user wants to leave."""
        self._beside = Beside(lambda text: self.show(text, "error"))
        self._drawn = asyncio.Event()
        self._last_breath = clock()
        self._app = self._application(environ, color)

    def _application(self, environ: Mapping[str, str], color: bool) -> Application[None]:
        style = Style.from_dict(theme.LIVE)
        layout = Layout(self._live.container, focused_element=self.prompt.window)
        editing = ~self.dialogs.is_open
        app: Application[None] = Application(
            layout=layout,
            style=style,
            key_bindings=merge_key_bindings(
                [editor_bindings(self.prompt, self, Condition(editing)), self.dialogs.bindings()]
            ),
            input=create_input(),
            output=self._output,
            color_depth=ColorDepth.DEPTH_4_BIT if color else ColorDepth.DEPTH_1_BIT,
            erase_when_done=True,
            min_redraw_interval=FRAME_SECONDS,
        )
        app.ttimeoutlen = 0.05
        app.timeoutlen = 0.15
        renderer = InlineRenderer(
            app.renderer.style, self._output, reflow=reflows(environ), printed=self._painter.last_lines
        )
        app.renderer = renderer
        above = Above(renderer, self._output, self._live.printed, self._painter.again)
        app.before_render += above.before_frame
        app.after_render += above.after_frame
        app.after_render += self._frame_done
        return app

    def _columns(self) -> int:
        return self._output.get_size().columns

    def _rows(self) -> int:
        return self._output.get_size().rows

    def _frame_done(self, app: Application[None]) -> None:
        self._last_breath = self._clock()
        self._drawn.set()

    def _dialog_changed(self) -> None:
        layout = self._app.layout
        layout.focus(self.dialogs.focus() if self.dialogs.open is not None else self.prompt.window)
        self._app.invalidate()

    # --- running ---

    async def run(self, main: Callable[[], Awaitable[int]]) -> int:
        """Show the terminal's interface while ``main`` runs, and put the terminal back as it was.

        :returns: what ``main`` returns.
        """
        work = asyncio.ensure_future(main())
        work.add_done_callback(lambda _: self._stop())
        ticking = asyncio.create_task(self._tick())
        try:
            await self._app.run_async(set_exception_handler=False, handle_sigint=False)
        finally:
            ticking.cancel()
            self._output.release()
            if not work.done():
                work.cancel()
        return await work

    def _stop(self) -> None:
        if self._app.is_running:
            self._app.exit()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            if self._live.moves:
                self._app.invalidate()

    def attach(self, session: AgentSession) -> None:
        """Show a session and take inputs for it."""
        self._session = self._live.session = session
        self._sender = self._live.sender = Sender(session, self.conversation, self.prompt)
        self.prompt.most_completions = session.settings.autocomplete_max_visible
        terminal = session.settings.terminal
        self._paper.drawing.protocol = images(terminal, session.models.environ)
        self._paper.drawing.columns = terminal.image_width_cells
        self.conversation.attach(session)
        session.subscribe(self._on_event)
        self.refresh_status()
        self._ready.set()

    def _on_event(self, event: SessionEvent) -> Awaitable[None] | None:
        self._app.invalidate()
        if event.type in _REFRESHING:
            self.refresh_status()
        # A model that never waits would keep the terminal from being drawn.
        if self._clock() - self._last_breath > 3 * FRAME_SECONDS:
            return self._breathe()
        return None

    async def _breathe(self) -> None:
        self._drawn.clear()
        try:
            await asyncio.wait_for(self._drawn.wait(), 2 * FRAME_SECONDS)
        except TimeoutError:
            self._last_breath = self._clock()

    def use_history(self, history: History) -> None:
        """Take former inputs from a history, and put new ones there."""
        self.prompt.use_history(history)

    def refresh_status(self) -> None:
        """Find out anew what the status line says."""
        if self._session is not None:
            self.start(self._refresh(self._session))

    async def _refresh(self, session: AgentSession) -> None:
        await self.status.refresh(session)
        self._app.invalidate()

    def as_typed(self, text: str) -> str:
        """Return what was typed for a text that waits."""
        return text if self._sender is None else self._sender.as_typed(text)

    def start(self, work: Awaitable[None]) -> None:
        """Let something run beside; what it raises is shown."""
        self._beside.start(work)

    # --- what keys do ---

    @property
    def busy(self) -> bool:
        """Whether a run goes on."""
        return self._session is not None and self._session.runs.active

    def submit(self, delivery: Delivery) -> None:
        """Send what is typed."""
        self._live.hint = ""
        text = self.prompt.take()
        if text.strip():
            self.start(self._submit(text, delivery))

    async def _submit(self, text: str, delivery: Delivery) -> None:
        await self.send(text, delivery=delivery)

    async def send(self, text: str, images: Sequence[ImageContent] = (), *, delivery: Delivery = "followUp") -> None:
        """Send an input as if it were typed, as soon as there is a session.

        :param delivery: how it reaches a run that goes on.
        """
        await self._ready.wait()
        assert self._sender is not None
        await self._sender.send(text, delivery, images)
        self.refresh_status()

    def escape(self) -> None:
        """Abort what goes on; twice with nothing going on does what the settings say."""
        session, sender = self._session, self._sender
        if session is None or sender is None:
            return
        if session.bash.active:
            session.bash.abort()
        elif not session.is_idle:
            self.abort()
        elif self._clock() - self._escaped < _TWICE_SECONDS / 2 and not self.prompt.buffer.text:
            self._escaped = -_TWICE_SECONDS
            action = session.settings.double_escape_action
            if action != "none":
                self.start(sender.send(f"/{action}"))
        else:
            self._escaped = self._clock()

    def abort(self) -> None:
        """Abort the run; what waited comes back into the editor."""
        if self._session is not None and self._sender is not None:
            self._sender.give_back_queue()
            self._session.abort()

    def interrupt(self) -> None:
        """Clear the editor; leave when it was empty twice."""
        if self.prompt.buffer.text:
            self.prompt.clear()
            return
        now = self._clock()
        if now - self._interrupted < _TWICE_SECONDS:
            self.exit()
            return
        self._interrupted = now
        self._live.hint = "Ctrl-C again leaves" + (", Esc aborts the run" if self.busy else "")
        asyncio.get_running_loop().call_later(_TWICE_SECONDS, self._forget_hint)

    def _forget_hint(self) -> None:
        self._live.hint = ""
        self._app.invalidate()

    def leave(self) -> None:
        """Leave."""
        self.exit()

    def unfold(self) -> None:
        """Print the next folded thing."""
        block = self.conversation.folds.unfold()
        if block is None:
            self._live.hint = "Nothing is folded"
            asyncio.get_running_loop().call_later(_TWICE_SECONDS, self._forget_hint)
        else:
            self.conversation.add(block)
        self._app.invalidate()

    def toggle_thinking(self) -> None:
        """Show what the model thinks from now on, or fold it."""
        shown = self.conversation.show_thinking = not self.conversation.show_thinking
        self.show("What the model thinks is shown from now on" if shown else "What the model thinks is folded")

    def take_back(self) -> bool:
        """Take the last queued message back into the editor."""
        return self._sender is not None and self._sender.take_back_last()

    async def external_editor(self) -> None:
        """Edit the text in another program."""
        command = self._session.settings.external_editor if self._session is not None else None
        try:
            await self.prompt.open_external(command)
        except PiError as error:
            self.show(str(error), "error")

    async def cycle_level(self) -> None:
        """Let the model think more, or least again."""
        if self._session is not None and await self._session.choice.cycle_level() is None:
            self.show(f"{self._session.model.id} does not think")

    async def cycle_model(self) -> None:
        """Ask the next model."""
        if self._session is None:
            return
        if await self._session.choice.cycle_model() is None:
            self.show("There is no other model with a key: /login stores one")
        self.refresh_status()

    def greet(self, session: AgentSession) -> None:
        """Print what one should know at the start."""
        model = session.model
        head = Text.assemble(("pi", "bold"), (f"  {model.provider}/{model.id}", ""), style="")
        keys = "/ commands · @ files · ! shell · Ctrl-J new line · Esc aborts · Ctrl-D leaves"
        self.conversation.add(Block(Group(head, Text(keys, "dim"))))

    def restore(self) -> None:
        """Put the terminal back as it was, when there is no time for more."""
        self._app.renderer.erase()
        self._output.release()
        self._terminal.restore()

    # --- for commands and dialogs ---

    @property
    def session(self) -> AgentSession | None:
        """The session that is shown."""
        return self._session

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
        """Let the user choose one of several."""
        return await self.dialogs.ask(  # type: ignore[no-any-return]
            lambda: Dialog(
                title, message=message, choices=choices, text="" if filter else None, keys=keys, selected=selected
            )
        )

    async def confirm(self, title: str, message: str = "") -> bool:
        """Ask yes or no; leaving is no."""
        choices = [Choice(True, "Yes"), Choice(False, "No")]
        chosen = await self.select(title, choices, message=message, filter=False, keys={"y": "yes", "n": "no"})
        if chosen is None or chosen[1] == "n":
            return False
        return chosen[1] == "y" or bool(chosen[0].value)

    async def input(self, title: str, prefill: str = "", *, secret: bool = False) -> str | None:
        """Ask for a line."""
        return await self.dialogs.ask(lambda: Dialog(title, text=prefill, secret=secret))  # type: ignore[no-any-return]

    async def editor(self, title: str, prefill: str = "") -> str | None:
        """Ask for a longer text."""
        return await self.dialogs.ask(lambda: Dialog(title, text=prefill, multiline=True))  # type: ignore[no-any-return]

    def show(self, content: Any, level: Level = "info") -> None:
        """Print into the conversation."""
        if isinstance(content, str):
            self.conversation.say(content, level)
        else:
            self.conversation.add(Block(content, fallback=Text(plain(str(content)))))
        self._app.invalidate()

    def set_status(self, key: str, text: str | None) -> None:
        """Put a text into the status line, or take it away."""
        self.status.set(key, text)
        self._app.invalidate()

    def set_editor_text(self, text: str) -> None:
        """Replace what is in the editor."""
        self.prompt.set(text)
        self._app.invalidate()

    def clear(self) -> None:
        """Clear the screen; what has scrolled away stays."""
        self._app.renderer.clear()
        self._app.invalidate()

    def exit(self) -> None:
        """Leave."""
        self.leaving.set()
