"""The coding agent: an agent with a session, a prompt, retries and compaction, as every mode of ``pi`` runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pi_core import hookimpl

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

_HOMES: Final = {
    "AgentSession": "session",
    "Answer": "questions",
    "Input": "inputs",
    "Listener": "events",
    "Prepared": "factory",
    "PromptParts": "prompt_parts",
    "Question": "questions",
    "RunStart": "inputs",
    "SessionEvent": "events",
    "SessionOptions": "options",
    "SlashCommand": "inputs",
    "create_session": "factory",
    "event_json": "events",
    "load_prompt_parts": "prompt_parts",
    "prepare_session": "factory",
    "reload_session": "reloading",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{home}", __name__), name)


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
