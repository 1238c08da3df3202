"""How plugins take part in what the terminal shows.

What raises, or cannot be drawn, is replaced by what is shown without the plugin, and the plugin is named once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pi_core import AgentMessage, Kind, ToolCallContent, ToolResult, hookspec


@hookspec(Kind.FIRST)
async def render_tool_call(call: ToolCallContent, result: ToolResult | None, width: int) -> Any:
    """Called when a call of a tool is shown.

    :param call: the call, with the model's own arguments.
    :param result: what it returned; ``None`` when the call has only begun.
    :param width: columns there are.
    :returns: a text, or anything that rich prints, in place of what is usually shown.
    """


@hookspec(Kind.FIRST)
async def render_message(message: AgentMessage, width: int) -> Any:
    """Called when a message that is no response of the model and no tool result is shown.

    :param message: a message of the user, or a custom one.
    :param width: columns there are.
    :returns: a text, or anything that rich prints, in place of what is usually shown.
    """


@hookspec(Kind.COLLECT)
async def status_line(session: Any) -> Iterable[str]:  # type: ignore[empty-body]
    """Called when the status line is made: after each turn, and when model or session change.

    :param session: the :class:`~pi_plugins.coding_agent.AgentSession` that is shown.
    :returns: texts of a few words each.
    """
