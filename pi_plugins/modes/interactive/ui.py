"""What commands and dialogs know of the terminal: a protocol, so that they run with any front."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completion
    from prompt_toolkit.document import Document

    from pi_plugins.coding_agent import AgentSession

Level: TypeAlias = Literal["info", "warning", "error"]
"""How much a text matters."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several things to choose from.

    :param value: what the caller gets back.
    :param label: one line.
    :param detail: a few words beside it, dimmed, cut where there is no room.
    """

    value: Any
    label: str
    detail: str = ""


class CompletionSource(Protocol):
    """Offers what may be typed at the cursor."""

    def complete(self, text_before_cursor: str, document: Document) -> Iterable[Completion]:
        """Return completions; none when this source has nothing to say here.

        Called in a thread of its own, so it may read folders; it stops being read when the user types on.

        :param text_before_cursor: the text of the line up to the cursor.
        :param document: the whole input.
        """


class Ui(Protocol):
    """The terminal, for commands and dialogs. Dialogs wait for one another: one is open at a time."""

    @property
    def session(self) -> AgentSession | None:
        """The session that is shown; ``None`` before there is one."""

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
        """Let the user choose one of several.

        :param message: what the user should know to choose.
        :param filter: whether typing looks for choices.
        :param keys: further keys that choose, such as ``c-d``, and what each is for in a word or two.
        :param selected: position of the choice to begin at.
        :returns: the choice and the key it was chosen with (``enter`` or one of ``keys``); ``None`` when the user left.
        """

    async def confirm(self, title: str, message: str = "") -> bool:
        """Ask yes or no; leaving is no."""

    async def input(self, title: str, prefill: str = "", *, secret: bool = False) -> str | None:
        """Ask for a line.

        :param secret: show nothing of it, and keep it nowhere.
        :returns: the text; ``None`` when the user left.
        """

    async def editor(self, title: str, prefill: str = "") -> str | None:
        """Ask for a longer text; ``None`` when the user left."""

    def show(self, content: Any, level: Level = "info") -> None:
        """Print into the conversation.

        :param content: a text, or anything that rich prints.
        """

    def set_status(self, key: str, text: str | None) -> None:
        """Put a text into the status line, or take it away with ``None``."""

    def set_editor_text(self, text: str) -> None:
        """Replace what is in the editor."""

    def clear(self) -> None:
        """Clear the screen; what has scrolled away stays."""

    def abort(self) -> None:
        """Abort the run; what waited comes back into the editor."""

    def exit(self) -> None:
        """Leave, as soon as the current command is done."""


__all__ = ["Choice", "CompletionSource", "Level", "Ui"]
