"""From the start of the interactive mode to its session: trust, which session, and what to do when it cannot be had."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from pi_core import ConfigError
from pi_plugins.sessions import SessionInUseError, sessions_dir

from .first_start import first_start, has_no_model
from .pickers import pick_session
from .ui import Choice

if TYPE_CHECKING:
    from pi_plugins.coding_agent import AgentSession, Prepared
    from pi_plugins.config.trust import Ask, TrustChoice

    from .ui import Ui


def trust_question(ui: Ui) -> Ask:
    """Return what asks whether a project is trusted, for :func:`~pi_plugins.coding_agent.prepare_session`."""

    async def ask(question: str) -> TrustChoice | None:
        title, _, files = question.partition("\n")
        choices = [
            Choice("trust", "Trust it"),
            Choice("trust-parent", "Trust the folder above it", "and all that is in there"),
            Choice("once", "Trust it this time"),
            Choice("not-now", "Not this time"),
            Choice("never", "Never"),
        ]
        chosen = await ui.select(title, choices, message=files, filter=False, selected=3)
        answer: TrustChoice | None = None if chosen is None else chosen[0].value
        return answer

    return ask


async def choose_session(ui: Ui, prepared: Prepared) -> bool:
    """Let the user choose the session to go on with, and put it into the options.

    :returns: whether one was chosen.
    """
    options, cwd = prepared.options, prepared.cwd
    folder = sessions_dir(
        cwd, prepared.settings, prepared.environ, agent_dir=prepared.agent_dir, directory=options.session_dir
    )
    picked = await pick_session(ui, cwd, folder)
    if picked is None:
        return False
    path, where = str(picked.ref.path), picked.ref.header.cwd
    if where == str(cwd):
        options.session = path
        return True
    message = f"It works in {where}. Go on with a copy of it in {cwd}?"
    if not await ui.confirm("The session is of another folder", message):
        return False
    options.fork = path
    return True


async def start_session(
    ui: Ui, prepared: Prepared, create: Callable[[], Awaitable[AgentSession]]
) -> AgentSession | None:
    """Make the session; where there is no model, or another process writes the session, ask what to do.

    :param create: makes the session as ``prepared`` says.
    :returns: the session; ``None`` when the user leaves.
    :raises ConfigError: it cannot be made for another reason.
    """
    notices, warnings = list(prepared.notices), list(prepared.warnings)
    while True:
        try:
            return await create()
        except SessionInUseError as error:
            if not await ui.confirm(
                "The session is in use", f"{error.who.capitalize()} writes {error.path}.\nGo on with a copy of it?"
            ):
                return None
            options = prepared.options
            options.continue_last, options.session, options.session_id = False, None, None
            options.fork = str(error.path)
        except ConfigError:
            if not await has_no_model(prepared):
                raise
            if not await first_start(ui, prepared):
                return None
        prepared.notices[:], prepared.warnings[:] = notices, warnings


__all__ = ["choose_session", "start_session", "trust_question"]
