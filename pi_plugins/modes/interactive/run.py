"""The interactive mode, from the first question to the last word."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pi_core import Build, ConfigError
from pi_plugins.coding_agent import AgentSession, Prepared, SessionOptions, create_session, prepare_session

from .._signals import stopping_on_signals
from ..printing import begin_trace
from ._capture import printed
from .app import TerminalUi
from .asking import Asking
from .commands import OWNER, offer_commands
from .completion import completion_sources
from .history import InputHistory, history_path
from .queueing import queue_command
from .starting import choose_session, start_session, trust_question

if TYPE_CHECKING:
    from .._input import Prompt

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
    if is_dumb(environ):
        from .lines import run_lines

        return await run_lines(build, options, prompts, trace, resume=resume)
    return await _Interactive(build, options, prompts, trace, resume=resume).run(environ)


def is_dumb(environ: Mapping[str, str]) -> bool:
    """Whether the terminal can do no more than print lines."""
    return environ.get("TERM", "dumb") in ("", "dumb", "unknown")


class _Interactive:
    def __init__(
        self,
        build: Build,
        options: SessionOptions,
        prompts: Sequence[Prompt],
        trace: Path | None,
        *,
        resume: bool,
    ) -> None:
        self._build = build
        self._options = options
        self._prompts = prompts
        self._trace = trace
        self._resume = resume
        self._session: AgentSession | None = None

    async def run(self, environ: Mapping[str, str]) -> int:
        ui = self._ui = TerminalUi(environ)
        self._asking = Asking(ui)
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
        history = InputHistory(history_path(prepared.agent_dir))
        ui.prompt.use_history(history)
        if self._resume and not await choose_session(ui, prepared):
            return 0
        session = self._session = await start_session(ui, prepared, lambda: self._create(prepared))
        if session is None:
            return 0
        offer_commands(session, ui, prepared)
        session.commands.offer(OWNER, [queue_command(ui)])
        ui.attach(session)
        self._greet(session, prepared)
        await self._show_transcript(session)
        if self._prompts:
            ui.start(self._send_prompts())
        await ui.leaving.wait()
        await session.close()
        return 0

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
        self._ui.refresh_status()
        if reason == "new":
            self._ui.show("A new session begins here")
        elif reason != "reload":
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
