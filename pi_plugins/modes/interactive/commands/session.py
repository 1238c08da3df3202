"""Commands about the session that is open: what it is, what it cost, and what becomes of it elsewhere."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pi_core import ConfigError
from pi_plugins.coding_agent import SlashCommand

from .._text import count
from ..clipboard import copy_text
from ._costs import costs
from ._rows import rows

if TYPE_CHECKING:
    from pi_plugins.coding_agent import AgentSession

    from ..ui import Ui


class SessionCommands:
    """What the session is and holds."""

    def __init__(self, ui: Ui) -> None:
        self._ui = ui

    def commands(self) -> list[SlashCommand]:
        """Return the commands."""
        return [
            SlashCommand("session", "File, name, messages, tokens and cost", self.session),
            SlashCommand("name", "Give the session a name", self.name),
            SlashCommand("compact", "Summarise what was said; words say what matters", self.compact),
            SlashCommand("cost", "What was spent, by model", self.cost),
            SlashCommand("export", "Write the session to .html, .md or .json", self.export),
            SlashCommand("copy", "Copy the last answer", self.copy),
        ]

    def session(self, text: str, session: AgentSession) -> None:
        """Show what there is to know about the session."""
        store, stats = session.store, session.stats()
        if store.path is None:
            file = "none, kept in memory"
        else:
            file = str(store.path) if store.path.exists() else f"{store.path}, once something was said"
        said = (
            f"{stats.user_messages:,} of yours, {count(stats.assistant_messages, 'answer')}, "
            f"{count(stats.tool_results, 'tool result')}"
            if stats.total_messages
            else "none yet"
        )
        pairs = [
            ("File", file),
            ("Id", store.id),
            ("Name", store.name or "none; /name gives it one"),
            ("Folder", str(session.cwd)),
            ("Model", f"{session.model.provider}/{session.model.id}, thinking {session.thinking_level}"),
            ("Messages", said),
            ("Tokens", f"{stats.input:,} in, {stats.output:,} out, {stats.cache_read:,} from cache"),
            ("Context", _context(session)),
            ("Cost", f"${stats.cost:.4f}"),
        ]
        self._ui.show(rows(pairs))

    async def name(self, text: str, session: AgentSession) -> str | None:
        """Set the display name."""
        name: str | None = text
        if not text:
            name = await self._ui.input("Name of the session (empty takes it away)", session.store.name or "")
            if name is None:
                return None
        session.set_name(name)
        return f"The session is called '{name}'" if name else "The session has no name"

    async def compact(self, text: str, session: AgentSession) -> str:
        """Put a summary in the place of what was said."""
        result = await session.compactor.manually(text or None)
        return f"Compacted: {result.tokens_before:,} tokens are about {result.estimated_tokens_after:,} now"

    def cost(self, text: str, session: AgentSession) -> None:
        """Show what was spent."""
        spent = costs(session.store.entries)
        pairs = [(f"${one.cost:.4f}", f"{one.model}: {one.input:,} in, {one.output:,} out") for one in spent]
        pairs += [(f"${session.stats().cost:.4f}", "together"), ("Context", _context(session))]
        self._ui.show(rows(pairs))

    async def export(self, text: str, session: AgentSession) -> str:
        """Write the session to a file."""
        from pi_plugins.config.paths import expand
        from pi_plugins.sessions import export_session

        path = session.store.path
        if path is None or not path.exists():
            raise ConfigError("There is no session file to export: it is kept in memory, or nothing was said yet")
        target = expand(text, session.cwd, session.models.environ) if text else session.cwd
        return f"Written to {await asyncio.to_thread(export_session, path, target)}"

    def copy(self, text: str, session: AgentSession) -> str:
        """Copy the last answer into the clipboard of the terminal."""
        answer = session.answer_text()
        if not answer:
            raise ConfigError("There is no answer to copy yet")
        copy_text(answer)
        return f"Copied {len(answer):,} characters, if the terminal allows it (OSC 52)"


def _context(session: AgentSession) -> str:
    usage = session.context_usage()
    if usage is None:
        return f"about {session.compactor.tokens():,} tokens"
    return f"about {usage['tokens']:,} of {usage['contextWindow']:,} tokens, {usage['percent']:.0f} %"


__all__ = ["SessionCommands"]
