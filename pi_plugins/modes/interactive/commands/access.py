"""``/login``, ``/trust`` and ``/reload``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pi_core import ConfigError
from pi_plugins.coding_agent import SlashCommand, reload_session
from pi_plugins.config import needs_trust, save_trust
from pi_plugins.config.trust import saved_trust

from .._text import count
from ..api_keys import login
from ..ui import Choice

if TYPE_CHECKING:
    from pi_plugins.coding_agent import AgentSession, Prepared

    from ..ui import Ui


class AccessCommands:
    """Keys, trust in the project, and configuration that changed."""

    def __init__(self, ui: Ui, prepared: Prepared) -> None:
        self._ui = ui
        self._prepared = prepared

    def commands(self) -> list[SlashCommand]:
        """Return the commands."""
        return [
            SlashCommand("login", "Store the key of a provider", self.login, _complete_provider),
            SlashCommand("trust", "Whether the project's configuration is used", self.trust),
            SlashCommand("reload", "Read settings, context files, skills and templates again", self.reload),
        ]

    async def login(self, text: str, session: AgentSession) -> str | None:
        """Ask for a key and store it."""
        if " " in text:
            raise ConfigError("expected a provider at most; the key is asked for, so that it is not shown")
        known = session.models.providers()
        if text and text not in known:
            from pi_plugins.models._models_schema import closest

            raise ConfigError(f"There is no provider '{text}'{closest(text, known)}")
        provider = await login(self._ui, session.models, text or None)
        if provider is None or provider == session.model.provider:
            return None
        return f"/model chooses one of the models of {provider}"

    async def trust(self, text: str, session: AgentSession) -> str | None:
        """Let the user decide about the project."""
        cwd, agent_dir = session.cwd, self._prepared.agent_dir
        files = needs_trust(cwd, environ=self._prepared.environ, agent_dir=agent_dir)
        if not files:
            return f"{cwd} has no configuration that would need trust"
        saved = saved_trust(cwd, agent_dir=agent_dir)
        decided = {True: "trusted", False: "not trusted", None: "not decided"}[saved]
        now = "used" if session.trusted else "left out"
        choices = [
            Choice(True, "Trust it", f"{cwd} and what is below"),
            Choice(False, "Do not trust it"),
            Choice(None, "Forget the decision", "ask at the next start"),
        ]
        listed = "\n".join(map(str, files))
        message = f"Its configuration can run code on this computer. It is {decided}, and {now} now:\n{listed}"
        chosen = await self._ui.select(f"Do you trust {cwd}?", choices, message=message, filter=False)
        if chosen is None:
            return None
        decision: bool | None = chosen[0].value
        await asyncio.to_thread(save_trust, cwd, decision, agent_dir=agent_dir)
        if decision is None:
            return "The decision is forgotten"
        await self._read(session, trusted=decision)
        return "Saved. Plugins and models of the project follow at the next start"

    async def reload(self, text: str, session: AgentSession) -> str:
        """Read the configuration again."""
        await self._read(session)
        found = session.resources
        return (
            f"Read again: settings, {count(len(found.context_files), 'context file')}, "
            f"{count(len(found.skills), 'skill')}, {count(len(found.templates), 'template')}. "
            "Plugins are loaded at the start only"
        )

    async def _read(self, session: AgentSession, *, trusted: bool | None = None) -> None:
        for warning in await reload_session(session, self._prepared, trusted=trusted):
            self._ui.show(warning, "warning")


def _complete_provider(text: str, session: AgentSession) -> list[str]:
    return [name for name in session.models.providers() if text in name]


__all__ = ["AccessCommands"]
