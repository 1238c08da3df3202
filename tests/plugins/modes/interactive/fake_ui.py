"""A terminal for tests: dialogs are answered from a list, and what is shown is kept."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rich.console import Console

from pi_plugins.coding_agent import AgentSession
from pi_plugins.modes.interactive.ui import Choice, Level

Answer: TypeAlias = "str | tuple[str, str] | bool | Callable[[Asked], Any] | None"


@dataclass
class Asked:
    """A dialog that was open."""

    kind: str
    title: str
    message: str = ""
    choices: list[Choice] = field(default_factory=list)
    keys: Mapping[str, str] = field(default_factory=dict)
    selected: int = 0
    prefill: str = ""
    secret: bool = False

    @property
    def labels(self) -> list[str]:
        """What could be chosen."""
        return [choice.label for choice in self.choices]


class FakeUi:
    """Answers dialogs in order: a part of a label (and a key) chooses, ``None`` leaves, a function decides by itself.

    A dialog without an answer is a failure; :meth:`done` says whether answers are left.
    """

    def __init__(self, *answers: Answer) -> None:
        self.answers: deque[Answer] = deque(answers)
        self.asked: list[Asked] = []
        self.shown: list[tuple[str, Level]] = []
        self.statuses: list[tuple[str, str | None]] = []
        self.editor_text = ""
        self.left = False
        self.session: AgentSession | None = None

    def done(self) -> bool:
        """Whether every answer was asked for."""
        return not self.answers

    @property
    def texts(self) -> list[str]:
        """What was shown."""
        return [text for text, _ in self.shown]

    def _answer(self, asked: Asked) -> Any:
        self.asked.append(asked)
        assert self.answers, f"nobody answers {asked}"
        answer = self.answers.popleft()
        return answer(asked) if callable(answer) else answer

    async def select(
        self,
        title: str,
        choices: Sequence[Choice],
        *,
        message: str = "",
        filter: bool = True,  # noqa: A002
        keys: Mapping[str, str] | None = None,
        selected: int = 0,
    ) -> tuple[Choice, str] | None:
        """Choose by a part of a label."""
        assert choices, f"{title}: nothing to choose from"
        assert 0 <= selected < len(choices)
        asked = Asked("select", title, message, list(choices), keys or {}, selected)
        answer = self._answer(asked)
        if answer is None:
            return None
        part, key = answer if isinstance(answer, tuple) else (answer, "enter")
        assert key == "enter" or key in asked.keys, f"{key} chooses nothing in {title}"
        found = [choice for choice in choices if part in choice.label]
        assert found, f"{part!r} is none of {asked.labels}"
        return found[0], key

    async def confirm(self, title: str, message: str = "") -> bool:
        """Say yes or no."""
        answer = self._answer(Asked("confirm", title, message))
        assert isinstance(answer, bool)
        return answer

    async def input(self, title: str, prefill: str = "", *, secret: bool = False) -> str | None:
        """Type a line."""
        answer: str | None = self._answer(Asked("input", title, prefill=prefill, secret=secret))
        return answer

    async def editor(self, title: str, prefill: str = "") -> str | None:
        """Type a text."""
        return await self.input(title, prefill)

    def show(self, content: Any, level: Level = "info") -> None:
        """Keep what is shown."""
        self.shown.append((content if isinstance(content, str) else _rendered(content), level))

    def set_status(self, key: str, text: str | None) -> None:
        """Keep a status."""
        self.statuses.append((key, text))

    def set_editor_text(self, text: str) -> None:
        """Keep the text."""
        self.editor_text = text

    def clear(self) -> None:
        """Forget what was shown."""
        self.shown.clear()

    def abort(self) -> None:
        """Abort the run."""
        if self.session is not None:
            self.session.abort()

    def exit(self) -> None:
        """Note that it is over."""
        self.left = True


def _rendered(content: Any) -> str:
    console = Console(file=io.StringIO(), width=1000, color_system=None)
    with console.capture() as capture:
        console.print(content)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())
