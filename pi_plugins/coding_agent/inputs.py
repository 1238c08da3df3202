"""What the user gives a session: text with images, what a run starts with, and commands typed as ``/name``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from pi_core import AgentMessage, ImageContent

InputSource: TypeAlias = Literal["interactive", "rpc", "print", "plugin"]
"""Where an input comes from."""

Delivery: TypeAlias = Literal["steer", "followUp"]
"""How an input reaches a run that goes on: before its next request, or when it would stop."""

Disposition: TypeAlias = Literal["started", "queued", "handled"]
"""What became of an input: it started a run, waits in a queue, or a command or hook dealt with it."""


@dataclass(frozen=True, slots=True)
class Input:
    """What the user typed, on its way to the model.

    :param delivery: how it reaches a run that goes on; ``None`` when there is none.
    :param handled: whether a hook has dealt with it, so that nothing is sent.
    """

    text: str
    images: tuple[ImageContent, ...] = ()
    source: InputSource = "interactive"
    delivery: Delivery | None = None
    handled: bool = False

    def replace(self, **changes: Any) -> Input:
        """Return an input with some fields changed."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class RunStart:
    """What a run starts with.

    :param messages: what is sent, the user's message among it.
    :param system_prompt: the system prompt of this run.
    """

    messages: tuple[AgentMessage, ...]
    system_prompt: str

    def replace(self, **changes: Any) -> RunStart:
        """Return a start with some fields changed."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A command that is typed as ``/name arguments`` and runs at once, also while the agent works.

    :param description: one line for lists.
    :param run: called with the arguments as typed and the session; a text it returns is shown to the user.
    :param complete: called with the text so far; returns what may be typed in its place.
    """

    name: str
    description: str
    run: Callable[[str, Any], Awaitable[str | None] | str | None]
    complete: Callable[[str, Any], Iterable[str]] | None = None


__all__ = ["Delivery", "Disposition", "Input", "InputSource", "RunStart", "SlashCommand"]
