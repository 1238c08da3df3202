"""The interactive mode, from the first question to the last word."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import click
from rich.rule import Rule

from pi_core import Build, ImageContent
from pi_plugins.coding_agent import AgentSession, Prepared, SessionOptions, create_session, prepare_session

from .._signals import stopping_on_signals
from ..printing import begin_trace
from ._capture import printed
from .asking import Asking
from .commands import OWNER, offer_commands
from .completion import completion_sources
from .history import InputHistory, history_path
from .queueing import queue_command
from .starting import choose_session, start_session, trust_question
from .ui import CompletionSource, Ui

if TYPE_CHECKING:
    from prompt_toolkit.history import History

    from .._input import Prompt
    from .conversation import Conversation

_REPLAYED: Final = 60
"""Messages of a session that is gone on with that are printed."""


async def run_interactive(
    build: Build,
    options: SessionOptions,
    prompts: Sequence[Prompt] = (),
    trace: Path | None = None,
    *,
    resume: bool = False,
) -> int:
    """Talk with the user on the terminal until he leaves, and return the exit code.

    :param prompts: what is sent first, one after another.
    :param trace: where calls of plugins are written.
    :param resume: let the user choose the session to go on with.
    :raises ConfigError: there is no such session, model or tool.
    """
    options.source = "interactive"
    environ = os.environ if options.environ is None else options.environ
    front: Front
    if is_dumb(environ):
        from .lines import LineUi

        front = LineUi()
    else:
        from .app import TerminalUi

        front = TerminalUi(environ)
    return await _Interactive(front, build, options, prompts, trace, resume=resume).run()


def is_dumb(environ: Mapping[str, str]) -> bool:
    """Whether the terminal can do no more than print lines."""
    return environ.get("TERM", "dumb") in ("", "dumb", "unknown")


class Front(Ui, Protocol):
    """A terminal that a conversation goes on at.

    :param sources: what can be completed.
    :param leaving: set when the user wants to leave.
    """

    sources: list[CompletionSource]
    leaving: asyncio.Event
    conversation: Conversation

    async def run(self, main: Callable[[], Awaitable[int]]) -> int:
        """Have the terminal while ``main`` runs, and return what it returns."""

    def attach(self, session: AgentSession) -> None:
        """Show a session and take inputs for it."""

    def use_history(self, history: History) -> None:
        """Take former inputs from a history, and put new ones there."""

    def greet(self, session: AgentSession) -> None:
        """Print what one should know at the start."""

    async def send(self, text: str, images: Sequence[ImageContent] = ()) -> None:
        """Send an input as if it were typed, as soon as there is a session."""

    def as_typed(self, text: str) -> str:
        """Return what was typed for a text that waits."""

    def start(self, work: Awaitable[None]) -> None:
        """Let something run beside; what it raises is shown."""

    def refresh_status(self) -> None:
        """Find out anew what the status line says."""

    def restore(self) -> None:
        """Put the terminal back as it was, when there is no time for more."""


class _Interactive:
    def __init__(
        self,
        ui: Front,
        build: Build,
        options: SessionOptions,
        prompts: Sequence[Prompt],
        trace: Path | None,
        *,
        resume: bool,
    ) -> None:
        self._ui = ui
        self._asking = Asking(ui)
        self._build = build
        self._options = options
        self._prompts = prompts
        self._trace = trace
        self._resume = resume
        self._session: AgentSession | None = None

    async def run(self) -> int:
        ui = self._ui
        ui.sources += completion_sources(ui)
        try:
            with printed(ui.show), stopping_on_signals(ui.exit, last=ui.restore) as received:
                code = await ui.run(self._converse)
        finally:
            if self._session is not None:
                await self._session.close()
        self._say_goodbye()
        return received[0] if received else code

    async def _converse(self) -> int:
        ui = self._ui
        prepared = await prepare_session(self._options, self._build, ask_trust=trust_question(ui))
        ui.use_history(InputHistory(history_path(prepared.agent_dir), lambda text: ui.show(text, "warning")))
        if self._resume and not await choose_session(ui, prepared):
            return 0
        session = self._session = await start_session(ui, prepared, lambda: self._create(prepared))
        if session is None:
            return 0
        offer_commands(session, ui, prepared)
        session.commands.offer(OWNER, [queue_command(ui, ui.as_typed)])
        ui.attach(session)
        self._greet(session, prepared)
        await self._show_transcript(session)
        if self._prompts:
            ui.start(self._send_prompts())
        ui.start(self._leave_when_asked(session))
        await ui.leaving.wait()
        await session.close()
        return 0

    async def _leave_when_asked(self, session: AgentSession) -> None:
        await session.leaving.wait()
        try:
            await session.wait_for_idle()
        finally:
            self._ui.exit()

    async def _create(self, prepared: Prepared) -> AgentSession:
        session = await create_session(
            prepared=prepared,
            callables={
                "ask_user": self._asking.ask,
                "session_start": self._session_started,
                "session_tree": self._moved,
            },
        )
        await begin_trace(session, self._trace)
        return session

    async def _send_prompts(self) -> None:
        for prompt in self._prompts:
            await self._ui.send(prompt.text, prompt.images)

    # --- what is said by the mode itself ---

    def _greet(self, session: AgentSession, prepared: Prepared) -> None:
        if not session.settings.quiet_startup:
            self._ui.greet(session)
        for text in prepared.notices:
            self._ui.show(text)
        for text in prepared.warnings:
            self._ui.show(text, "warning")

    async def _session_started(self, session: AgentSession, reason: str) -> None:
        if self._ui.session is not session:
            return
        self._ui.show(Rule(style="dim"))
        await self._show_transcript(session)

    async def _moved(self, session: AgentSession) -> None:
        await self._show_transcript(session)

    async def _show_transcript(self, session: AgentSession) -> None:
        messages = session.agent.state.messages
        left_out = len(messages) - _REPLAYED
        if left_out > 0:
            self._ui.show(f"{left_out:,} earlier messages are not shown; /tree shows where they are")
        await self._ui.conversation.replay(messages[-_REPLAYED:])
        self._ui.refresh_status()

    def _say_goodbye(self) -> None:
        session = self._session
        if session is not None and session.store.path is not None and session.stats().total_messages:
            click.echo(f"To go on with this session: pi --session {session.store.id}")
