"""The turns of :mod:`benchmarks.ours` with 20 plugins that watch four hooks."""

from __future__ import annotations

from typing import Final

from pi_core import AgentMessage, RunContext, ToolCall, ToolResult, TurnEndEvent, hookimpl

from .ours import turns
from .work import Work

PLUGINS: Final = 20


class Plugin:
    """Implements four hooks and changes nothing."""

    def __init__(self, number: int) -> None:
        self.name = f"plugin{number}"

    @hookimpl
    async def transform_context(self, messages: list[AgentMessage], ctx: RunContext) -> None:
        return None

    @hookimpl
    async def before_tool_call(self, call: ToolCall, ctx: RunContext) -> None:
        return None

    @hookimpl
    async def after_tool_call(self, call: ToolCall, result: ToolResult, ctx: RunContext) -> None:
        return None

    @hookimpl
    async def on_turn_end(self, event: TurnEndEvent, ctx: RunContext) -> None:
        return None


def plugged(n: int) -> Work:
    """Make ``n`` turns under the eyes of all plugins."""
    return turns(n, [Plugin(number) for number in range(PLUGINS)])


CASES = {"turns": plugged}
