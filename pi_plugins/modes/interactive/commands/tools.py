"""``/tools``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_plugins.coding_agent import SlashCommand

from ..ui import Choice
from ._busy import when

if TYPE_CHECKING:
    from pi_plugins.coding_agent import AgentSession

    from ..ui import Ui


class ToolCommands:
    """Which tools the model may call."""

    def __init__(self, ui: Ui) -> None:
        self._ui = ui

    def commands(self) -> list[SlashCommand]:
        """Return the command."""
        return [SlashCommand("tools", "Which tools the model may call: +name -name", self.tools, _complete)]

    async def tools(self, text: str, session: AgentSession) -> str | None:
        """Change the tools as a list says, or one by one."""
        if text:
            await session.change_tools(text.replace(",", " ").split())
        elif not await self._toggle(session):
            return None
        names = ", ".join(tool.name for tool in session.agent.state.tools) or "none"
        return f"Tools: {names}{when(session)}"

    async def _toggle(self, session: AgentSession) -> bool:
        """Let the user turn tools on and off until they leave, and return whether anything changed."""
        position, changed = 0, False
        names = session.build.registry.tools.names()
        while True:
            on = {tool.name for tool in session.agent.state.tools}
            choices = [Choice(name, f"[{'x' if name in on else ' '}] {name}", _about(session, name)) for name in names]
            message = "Enter turns one on or off."
            chosen = await self._ui.select("Tools", choices, message=message, selected=position)
            if chosen is None:
                return changed
            name = chosen[0].value
            position = names.index(name)
            await session.change_tools([f"{'-' if name in on else '+'}{name}"])
            changed = True


def _about(session: AgentSession, name: str) -> str:
    tool, owner = session.build.registry.tools.get(name), session.build.registry.tools.owner(name)
    about = "" if tool is None else tool.prompt_snippet or tool.description.partition(".")[0]
    return about if owner is None or owner.plugin == "tools" else f"{about} ({owner.plugin})"


def _complete(text: str, session: AgentSession) -> list[str]:
    before, space, word = text.rpartition(" ")
    sign, start = (word[:1], word[1:]) if word[:1] in ("+", "-") else ("", word)
    on = {tool.name for tool in session.agent.state.tools}
    offered = [
        name
        for name in session.build.registry.tools.names()
        if name.startswith(start) and (not sign or (name in on) == (sign == "-"))
    ]
    return [f"{before}{space}{sign}{name}" for name in offered]


__all__ = ["ToolCommands"]
