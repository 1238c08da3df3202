"""The hooks of a session's life, of what the user types, and of questions to the user.

``session`` is the :class:`~pi_plugins.coding_agent.AgentSession` that asks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pi_core import Kind, Model, OnError, ThinkingLevel, hookspec

if TYPE_CHECKING:
    from pi_plugins.tools import UserCommandResult

    from .inputs import Input, RunStart, SlashCommand
    from .questions import Answer, Question


@hookspec(Kind.REGISTER)
def register_slash_commands() -> Iterable[SlashCommand]:  # type: ignore[empty-body]
    """Called when a session collects commands that are typed as ``/name arguments``.

    :returns: commands. Two owners of one name are a conflict; ``owner/name`` always names one.
    """


@hookspec(Kind.NOTIFY)
async def session_start(session: Any, reason: str) -> None:
    """Called when a session is ready.

    :param reason: ``startup``, ``new``, ``resume`` or ``fork``.
    """


@hookspec(Kind.NOTIFY)
async def session_shutdown(session: Any, reason: str) -> None:
    """Called before a session ends.

    :param reason: ``quit``, ``new``, ``resume`` or ``fork``.
    """


@hookspec(Kind.NOTIFY)
async def session_info_changed(session: Any, name: str | None) -> None:
    """Called when the session's display name was set or cleared."""


@hookspec(Kind.NOTIFY)
async def model_select(session: Any, model: Model, previous: Model, source: str) -> None:
    """Called when another model was chosen.

    :param source: ``set`` or ``cycle``.
    """


@hookspec(Kind.NOTIFY)
async def thinking_level_select(session: Any, level: ThinkingLevel, previous: ThinkingLevel) -> None:
    """Called when the thinking level changed, also by clamping to what a model can."""


@hookspec(Kind.CHAIN)
async def input(given: Input, session: Any) -> Input | None:  # noqa: A001 - the name of the original
    """Called with what the user typed, before skills and templates are expanded.

    :param given: text, images and where they come from. Once an answer says ``handled``, nothing is sent.
    :returns: what to go on with.
    """


@hookspec(Kind.CHAIN)
async def before_agent_start(start: RunStart, session: Any) -> RunStart | None:
    """Called before a run, after expansion.

    :param start: the prompt's message, messages to send with it, and the system prompt of the run.
    :returns: what to start with.
    """


@hookspec(Kind.NOTIFY)
async def agent_settled(session: Any, aborted: bool) -> None:
    """Called when nothing more happens by itself: the run, its retries and its compaction are over."""


@hookspec(Kind.FIRST)
async def user_bash(session: Any, command: str, exclude_from_context: bool) -> UserCommandResult | None:
    """Called before a command that the user typed as ``!command`` runs. An exception keeps it from running.

    :returns: the result, in place of running it.
    """


@hookspec(Kind.FIRST, on_error=OnError.FAIL_RUN)
async def ask_user(question: Question) -> Answer | None:
    """Called to ask the user. The mode that runs answers; without one nobody does.

    :returns: the answer.
    """
