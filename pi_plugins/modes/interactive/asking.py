"""Questions of guards and plugins, brought to the user."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from pi_plugins.coding_agent.questions import Answer, Question

from ._text import seconds
from .ui import Choice

if TYPE_CHECKING:
    from .ui import Ui


_ABORT: Final = "c-c"


class Asking:
    """Implements the hook ``ask_user``: several questions at a time are asked one by one.

    :param ui: where they are asked.
    """

    def __init__(self, ui: Ui) -> None:
        self._ui = ui

    async def ask(self, question: Question) -> Answer | None:
        """Ask, and return the answer; it has no value when the user left, or nobody answered in time."""
        try:
            async with asyncio.timeout(question.timeout):
                return Answer(await self._value(question))
        except TimeoutError:
            self._ui.show(f"Nobody answered in {seconds(question.timeout or 0)}: {question.title}", "warning")
            return Answer(None)

    async def _value(self, question: Question) -> str | None:
        match question.kind:
            case "select":
                return await self._selected(question)
            case "confirm":
                return "yes" if await self._ui.confirm(question.title, question.message) else "no"
            case "input":
                return await self._ui.input(question.title, question.prefill)
            case "editor":
                return await self._ui.editor(question.title, question.prefill)

    async def _selected(self, question: Question) -> str | None:
        choices = [Choice(option, option) for option in question.options]
        session = self._ui.session
        keys = {_ABORT: "abort the run"} if session is not None and session.runs.active else None
        chosen = await self._ui.select(
            question.title, choices, message=question.message, filter=len(choices) > 9, keys=keys
        )
        if chosen is not None and chosen[1] == _ABORT:
            self._ui.abort()
            return None
        return None if chosen is None else str(chosen[0].value)
