"""Questions to the user: what is asked, and what the mode that runs brings back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

QuestionKind: TypeAlias = Literal["select", "confirm", "input", "editor"]
"""Choose one of several, yes or no, a line, or a longer text."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the user.

    :param title: what is asked, in one line.
    :param message: what the user should know to answer it.
    :param options: what can be chosen, for ``select``.
    :param prefill: the text to begin with, for ``input`` and ``editor``.
    :param timeout: seconds after which nobody has answered; ``None`` waits.
    """

    kind: QuestionKind
    title: str
    message: str = ""
    options: tuple[str, ...] = ()
    prefill: str = ""
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the user.

    :param value: the option or text; ``yes`` or ``no`` for ``confirm``; ``None`` when the user gave none or none came
        in time.
    """

    value: str | None

    @property
    def confirmed(self) -> bool:
        """Whether the user said yes."""
        return self.value == "yes"


__all__ = ["Answer", "Question", "QuestionKind"]
