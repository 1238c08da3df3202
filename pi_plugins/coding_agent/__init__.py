"""The coding agent: an agent with a session, a prompt, retries and compaction, as every mode of ``pi`` runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_core import hookimpl
from pi_plugins._lazy import names_of

from . import hookspecs

if TYPE_CHECKING:
    from .events import Listener as Listener
    from .events import SessionEvent as SessionEvent
    from .events import event_json as event_json
    from .factory import Prepared as Prepared
    from .factory import create_session as create_session
    from .factory import prepare_session as prepare_session
    from .inputs import Input as Input
    from .inputs import RunStart as RunStart
    from .inputs import SlashCommand as SlashCommand
    from .options import SessionOptions as SessionOptions
    from .prompt_parts import PromptParts as PromptParts
    from .prompt_parts import load_prompt_parts as load_prompt_parts
    from .questions import Answer as Answer
    from .questions import Question as Question
    from .reloading import reload_session as reload_session
    from .session import AgentSession as AgentSession

__getattr__, __dir__ = names_of(
    __name__,
    events=("Listener", "SessionEvent", "event_json"),
    factory=("Prepared", "create_session", "prepare_session"),
    inputs=("Input", "RunStart", "SlashCommand"),
    options=("SessionOptions",),
    prompt_parts=("PromptParts", "load_prompt_parts"),
    questions=("Answer", "Question"),
    reloading=("reload_session",),
    session=("AgentSession",),
)


class CodingAgentPlugin:
    """Offers the hooks of the session's life, of what the user types, and of questions to the user."""

    @hookimpl
    def register_hookspecs(self) -> list[object]:
        """Offer the hooks of this package."""
        return [hookspecs]


__all__ = [
    "AgentSession",
    "Answer",
    "CodingAgentPlugin",
    "Input",
    "Listener",
    "Prepared",
    "PromptParts",
    "Question",
    "RunStart",
    "SessionEvent",
    "SessionOptions",
    "SlashCommand",
    "create_session",
    "event_json",
    "load_prompt_parts",
    "prepare_session",
    "reload_session",
]
