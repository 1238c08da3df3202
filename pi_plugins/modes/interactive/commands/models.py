"""``/model`` and ``/thinking``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pi_core import ConfigError
from pi_plugins.coding_agent import SlashCommand

from ..models import LEVELS, named_model, rows_for, split_level, usable_rows
from ..pickers import DEFAULT, pick_model
from ..ui import Choice
from ._busy import when

if TYPE_CHECKING:
    from pi_core import Model, ThinkingLevel
    from pi_plugins.coding_agent import AgentSession

    from ..ui import Ui

_MOST = 50


class ModelCommands:
    """Which model is asked, and how much it thinks."""

    def __init__(self, ui: Ui) -> None:
        self._ui = ui

    def commands(self) -> list[SlashCommand]:
        """Return the commands."""
        return [
            SlashCommand("model", "Ask another model", self.model, _complete_model),
            SlashCommand("thinking", "How much the model thinks", self.thinking, _complete_level),
        ]

    async def model(self, text: str, session: AgentSession) -> str | None:
        """Ask the model of a name or a part of one; without a clear one, let the user choose."""
        given, level = text, None
        rows = usable_rows(session)
        if text:
            found = rows_for(text, rows)
            if not found:
                given, level = split_level(text)
                found = rows_for(given, rows) if level is not None else []
            if not found:
                return await self._take(session, await named_model(session, given), level)
            if len(found) == 1:
                row = found[0]
                model = session.models.model(row["provider"], row["id"])
                return None if model is None else await self._take(session, model, level)
            rows = found
        if not rows:
            raise ConfigError("No provider has a key. Store one with: /login")
        picked = await pick_model(self._ui, session, rows)
        if picked is None:
            return None
        said = await self._take(session, picked[0], level)
        return f"{said}. {await _make_default(session, picked[0])}" if picked[1] == DEFAULT else said

    async def _take(self, session: AgentSession, model: Model, level: ThinkingLevel | None) -> str:
        await session.choice.set_model(model, level=level)
        thinking = f", thinking {session.thinking_level}" if model.reasoning else ""
        return f"Model: {model.provider}/{model.id}{thinking}{when(session)}"

    async def thinking(self, text: str, session: AgentSession) -> str | None:
        """Set how much the model thinks, or let the user choose it."""
        levels = session.choice.levels
        if text:
            wanted = next((level for level in LEVELS if level == text.lower()), None)
            if wanted is None:
                raise ConfigError(f"There is no thinking level '{text}': {', '.join(levels)}")
        else:
            if len(levels) < 2:
                return f"{session.model.id} does not think"
            choices = [Choice(level, level, "now" if level == session.thinking_level else "") for level in levels]
            now = levels.index(session.thinking_level) if session.thinking_level in levels else 0
            chosen = await self._ui.select("Thinking", choices, selected=now)
            if chosen is None:
                return None
            wanted = chosen[0].value
        level = await session.choice.set_level(wanted)
        clamped = f"; {session.model.id} has no '{wanted}'" if level != wanted else ""
        return f"Thinking: {level}{clamped}{when(session)}"


async def _make_default(session: AgentSession, model: Model) -> str:
    from pi_plugins.config import save_setting

    agent_dir = session.models.agent_dir
    await asyncio.to_thread(save_setting, "defaultProvider", model.provider, agent_dir=agent_dir)
    path = await asyncio.to_thread(save_setting, "defaultModel", model.id, agent_dir=agent_dir)
    return f"It is the default now ({path})"


def _complete_model(text: str, session: AgentSession) -> list[str]:
    rows = usable_rows(session)
    found = rows_for(text, rows) if text else rows
    return [f"{row['provider']}/{row['id']}" for row in found[:_MOST]]


def _complete_level(text: str, session: AgentSession) -> list[str]:
    return [level for level in session.choice.levels if level.startswith(text.lower())]


__all__ = ["ModelCommands"]
