"""The status line: model, folder, how full the context is, and what the session has cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.utils import get_cwidth

from pi_core import HookError

from ._text import one_line, tokens
from .plugin_view import blame

if TYPE_CHECKING:
    from collections.abc import Callable

    from prompt_toolkit.formatted_text import StyleAndTextTuples

    from pi_plugins.coding_agent import AgentSession

_HOOK = "status_line"


class StatusLine:
    """Keeps what the status line says; it is found out when something changed, not when it is drawn.

    :param say: tells the user about a plugin that fails, once for each way it does.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._told: set[str] = set()
        self._left: list[str] = []
        self._right: list[str] = []
        self._given: dict[str, str] = {}
        self._plugins: list[str] = []

    def set(self, key: str, text: str | None) -> None:
        """Put a text there, or take it away."""
        if text is None:
            self._given.pop(key, None)
        else:
            self._given[key] = one_line(text)

    async def refresh(self, session: AgentSession) -> None:
        """Find out what there is to say about a session."""
        self._look(session)
        try:
            parts = await session.call_hook(_HOOK, (), session=session)
            self._plugins = [one_line(str(text)) for _, texts in parts for text in texts]
        except HookError as error:
            self._plugins = []
            told = f"{blame(error.plugin, _HOOK, error.__cause__ or error)}. The status line does without."
            if told not in self._told:
                self._told.add(told)
                self._say(told)

    def _look(self, session: AgentSession) -> None:
        model, stats = session.model, session.stats()
        level = session.thinking_level
        self._left = [model.id + (f" ({level})" if model.reasoning else ""), session.cwd.name or str(session.cwd)]
        if session.store.name:
            self._left.append(one_line(session.store.name))
        self._right = []
        usage = session.context_usage()
        if usage is not None:
            self._right.append(f"{usage['percent']:.0f}% of {tokens(usage['contextWindow'])}")
        if stats.total_tokens:
            self._right.append(f"↑{tokens(stats.input + stats.cache_read + stats.cache_write)} ↓{tokens(stats.output)}")
        if stats.cost:
            self._right.append(f"${stats.cost:.2f}" if stats.cost >= 0.01 else f"${stats.cost:.4f}")

    def draw(self, width: int) -> StyleAndTextTuples:
        """Return the line; what has no room is left out, the middle first.

        :param width: columns there are.
        """
        given = [*self._given.values(), *self._plugins]
        left, right = [*self._left, *given], list(self._right)
        while left and _length(left) + _length(right) + 4 > width and len(left) + len(right) > 2:
            if len(left) > 1 + len(given):
                left.pop(1)
            elif len(right) > 1:
                right.pop(0 if len(right) > 2 else 1)
            else:
                left.pop()
        text, end = " · ".join(left), " · ".join(right)
        space = width - 3 - get_cwidth(text) - get_cwidth(end)
        if space < 1:
            return [("class:dim", f"  {text}"[: width - 1])]
        return [("class:dim", f"  {text}{' ' * space}{end}")]


def _length(parts: list[str]) -> int:
    return sum(map(get_cwidth, parts)) + 3 * max(0, len(parts) - 1)
