"""Read by the type checker only: a plugin as its author would write it, with every annotation the hooks name."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping
from typing import Any, assert_type

from pi_core import (
    Agent,
    AgentMessage,
    Block,
    Context,
    Hooks,
    MessageEndEvent,
    Model,
    ReplaceArguments,
    RunContext,
    StashKey,
    StreamEvent,
    StreamOptions,
    Tool,
    ToolCall,
    ToolResult,
    ToolResultPatch,
    Turn,
    TurnUpdate,
    hookimpl,
    tool,
)
from pi_core.testing import SCRIPTED_MODEL, ScriptedProvider

SEEN = StashKey[list[str]]("seen")


@tool
async def echo(text: str) -> str:
    """Say it again."""
    return text


assert_type(echo, Tool)


class TypedPlugin:
    """Annotated like the hooks."""

    @hookimpl
    def register_tools(self) -> Iterable[Tool]:
        """Offer a tool."""
        return [echo]

    @hookimpl
    async def transform_context(self, messages: list[AgentMessage], ctx: RunContext) -> list[AgentMessage] | None:
        """Keep what is recent."""
        assert_type(ctx.stash.setdefault(SEEN, list), list[str])
        return messages[-3:]

    @hookimpl
    async def stream(
        self,
        model: Model,
        context: Context,
        options: StreamOptions,
        ctx: RunContext,
        *,
        proceed: Callable[..., Awaitable[AsyncIterable[StreamEvent]]],
    ) -> AsyncIterable[StreamEvent]:
        """Pass on."""
        return await proceed()

    @hookimpl
    def before_tool_call(self, call: ToolCall, ctx: RunContext) -> Block | ReplaceArguments | None:
        """Look at a call."""
        assert_type(call.arguments, dict[str, Any])
        return None

    @hookimpl
    def after_tool_call(self, call: ToolCall, result: ToolResult, is_error: bool) -> ToolResultPatch | None:
        """Look at a result."""
        return ToolResultPatch(is_error=False) if is_error else None

    @hookimpl
    async def prepare_next_turn(self, turn: Turn, ctx: RunContext) -> TurnUpdate | None:
        """Change nothing."""
        return None

    @hookimpl
    def provider_headers(self, headers: dict[str, str | None]) -> Mapping[str, str | None]:
        """Add a header."""
        return {**headers, "x-team": "tools"}

    @hookimpl
    def on_message_end(self, event: MessageEndEvent) -> None:
        """See a message."""


async def use() -> None:
    """Use what the facade and the agent return."""
    hooks = Hooks.over(TypedPlugin())
    assert_type(await hooks.transform_context([], RunContext()), list[AgentMessage])
    agent = Agent(model=SCRIPTED_MODEL, stream=ScriptedProvider("hi").stream, plugins=[TypedPlugin()])
    assert_type(await agent.prompt("hello"), list[AgentMessage])
