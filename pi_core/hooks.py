"""The typed facade of the hooks: one method per hook with the hook's own parameters, and what the answers combine to.

The loop takes an object of this shape. It holds a manager's plugins, or plain callables, or both; the callables an
application passes to its agent come first in call order.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from typing import Any, Final, NoReturn, cast

from ._answers import copied
from ._caller import APPLICATION, HookCaller
from ._dispatch import Implementation, Owner, Plan, any_true, chain, collect, first, fold, guard, record
from .context import RunContext, SelectionContext, Turn, TurnUpdate
from .errors import HookError
from .events import (
    AgentEndEvent,
    AgentEvent,
    AgentStartEvent,
    MessageEndEvent,
    MessageStartEvent,
    MessageUpdateEvent,
    StreamEvent,
    ToolExecutionEndEvent,
    ToolExecutionStartEvent,
    ToolExecutionUpdateEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from .messages import AgentMessage, Message, ToolCallContent, ToolResultMessage
from .providers import Context, Model, StreamOptions
from .tools import Block, ReplaceArguments, ToolCall, ToolResult, ToolResultPatch


class Hooks(HookCaller):
    """Calls the hooks of a set of plugins and callables.

    :param manager: holds the plugins; ``None`` for none.
    :param callables: implementations by hook name, called before the plugins'.
    :param without: plugin names that are left out.
    :raises TypeError: a callable for a hook that does not exist, or with arguments it does not have.
    :raises ValueError: a plugin that is to be left out is not there.
    """

    __slots__ = ()

    # --- choosing a model ---

    async def resolve_model(self, name: str | None, ctx: SelectionContext) -> Model | None:
        """Return the first model a plugin knows for the name."""
        plan = self._plan("resolve_model")
        return None if plan is None else cast("Model | None", await self._run(plan, (name, ctx), first))

    # --- the queues ---

    async def steering_messages(self, ctx: RunContext) -> list[AgentMessage]:
        """Return the steering messages of all plugins."""
        plan = self._plan("steering_messages")
        return [] if plan is None else cast("list[AgentMessage]", await self._run(plan, (ctx,), _all_messages))

    async def follow_up_messages(self, ctx: RunContext) -> list[AgentMessage]:
        """Return the follow-up messages of all plugins."""
        plan = self._plan("follow_up_messages")
        return [] if plan is None else cast("list[AgentMessage]", await self._run(plan, (ctx,), _all_messages))

    # --- a request ---

    async def transform_context(self, messages: list[AgentMessage], ctx: RunContext) -> list[AgentMessage]:
        """Return the messages of this request; each implementation gets a list of its own."""
        plan = self._plan("transform_context")
        if plan is None:
            return messages
        # A wrapper may edit what proceed() gives it.
        given = list(messages) if plan.wrappers else messages
        transformed: list[AgentMessage] = await self._run(plan, (given, ctx), chain)
        return transformed

    async def convert_to_llm(self, messages: list[AgentMessage], ctx: RunContext) -> list[Message] | None:
        """Return a plugin's conversion, ``None`` to use the core's."""
        plan = self._plan("convert_to_llm")
        return None if plan is None else cast("list[Message] | None", await self._run(plan, (messages, ctx), first))

    async def get_api_key(self, provider: str, ctx: RunContext) -> str | None:
        """Return the first key a plugin has."""
        plan = self._plan("get_api_key")
        return None if plan is None else cast("str | None", await self._run(plan, (provider, ctx), first))

    async def stream(
        self,
        model: Model,
        context: Context,
        options: StreamOptions,
        ctx: RunContext,
        core: Callable[[Model, Context, StreamOptions], Any],
    ) -> AsyncIterable[StreamEvent]:
        """Return the response: a plugin's, else that of ``core``."""

        async def combine(plan: Plan, given: tuple[Any, ...]) -> Any:
            answer = await first(plan, given)
            if answer is None:
                answer = core(*given[:-1])
            return await answer if inspect.isawaitable(answer) else answer

        arguments = (model, context, options, ctx)
        plan = self._plan("stream") or Plan("stream", (), ())
        return cast("AsyncIterable[StreamEvent]", await self._run(plan, arguments, combine))

    async def provider_headers(
        self, headers: dict[str, str | None], model: Model, ctx: RunContext
    ) -> dict[str, str | None]:
        """Return the headers to send; each implementation gets a mapping of its own."""
        plan = self._plan("provider_headers")
        return headers if plan is None else await self._run(plan, (headers, model, ctx), chain)

    async def provider_payload(self, payload: Any, model: Model, ctx: RunContext) -> Any:
        """Return the body to send; each implementation gets a copy of its own."""
        plan = self._plan("provider_payload")
        return payload if plan is None else await self._run(plan, (payload, model, ctx), chain)

    async def provider_response(self, status: int, headers: Mapping[str, str], model: Model, ctx: RunContext) -> None:
        """Tell the plugins about the head of a response."""
        plan = self._plan("provider_response")
        if plan is not None:
            await self._notify(plan, (status, headers, model, ctx), ctx.failures)

    # --- a tool call ---

    async def before_tool_call(self, call: ToolCall, ctx: RunContext) -> Block | ToolCall:
        """Return the call with its final arguments, or the first objection.

        :raises HookError: a guard raised, so the call must not be executed.
        """
        plan = self._plan("before_tool_call")
        if plan is None:
            return call
        verdict: Block | ToolCall = await self._run(plan, (call, ctx), self._guard_call)
        return verdict

    def _guard_call(self, plan: Plan, arguments: tuple[Any, ...]) -> Awaitable[Any]:
        return guard(plan, arguments, _with_arguments, self._refuse_call)

    def _refuse_call(self, found: Implementation, error: Exception) -> NoReturn:
        self.report(found.failure(error))
        raise found.failed(error)

    async def execute_tool(self, call: ToolCall, ctx: RunContext) -> ToolResult:
        """Return the result of a call: a plugin's, else the tool's own."""
        plan = self._plan("execute_tool")
        return await call.run() if plan is None else cast("ToolResult", await self._run(plan, (call, ctx), _execute))

    async def after_tool_call(
        self, call: ToolCall, result: ToolResult, is_error: bool, ctx: RunContext
    ) -> tuple[ToolResult, bool]:
        """Return the result and error flag with the patches of all plugins."""
        plan = self._plan("after_tool_call")
        if plan is None:
            return result, is_error
        patched: tuple[ToolResult, bool] = await self._run(plan, (call, result, is_error, ctx), _patched)
        return patched

    async def record_tool_result(self, call: ToolCallContent, result: ToolResultMessage, ctx: RunContext) -> None:
        """Let the plugins store the result of a call.

        :raises HookError: one of them could not.
        """
        plan = self._plan("record_tool_result")
        if plan is not None:
            await self._run(plan, (call, result, ctx), record)

    # --- a turn ---

    async def prepare_next_turn(self, turn: Turn, ctx: RunContext) -> TurnUpdate | None:
        """Return what all plugins together change; ``None`` when nobody implements the hook."""
        plan = self._plan("prepare_next_turn")
        return None if plan is None else cast("TurnUpdate | None", await self._run(plan, (turn, ctx), _updated))

    async def should_stop_after_turn(self, turn: Turn, ctx: RunContext) -> bool:
        """Return whether any plugin wants the run to end."""
        plan = self._plan("should_stop_after_turn")
        return plan is not None and bool(await self._run(plan, (turn, ctx), any_true))

    async def record_message(self, message: AgentMessage, ctx: RunContext) -> None:
        """Let the plugins store a final message.

        :raises HookError: one of them could not.
        """
        plan = self._plan("record_message")
        if plan is not None:
            await self._run(plan, (message, ctx), record)

    # --- what happened ---

    async def on_agent_start(self, event: AgentStartEvent, ctx: RunContext) -> None:
        """Tell the plugins that a run begins."""
        plan = self._plan("on_agent_start")
        if plan is not None:
            await self._observe(plan, event, ctx)

    async def on_agent_end(self, event: AgentEndEvent, ctx: RunContext) -> None:
        """Tell the plugins that a run is over."""
        plan = self._plan("on_agent_end")
        if plan is not None:
            await self._observe(plan, event, ctx)

    async def on_turn_start(self, event: TurnStartEvent, ctx: RunContext) -> None:
        """Tell the plugins that a turn begins."""
        plan = self._plan("on_turn_start")
        if plan is not None:
            await self._observe(plan, event, ctx)

    async def on_turn_end(self, event: TurnEndEvent, ctx: RunContext) -> None:
        """Tell the plugins that a turn is over."""
        plan = self._plan("on_turn_end")
        if plan is not None:
            await self._observe(plan, event, ctx)

    async def on_message_start(self, event: MessageStartEvent, ctx: RunContext) -> None:
        """Tell the plugins that a message enters the run."""
        plan = self._plan("on_message_start")
        if plan is not None:
            await self._observe(plan, event, ctx)

    async def on_message_update(self, event: MessageUpdateEvent, ctx: RunContext) -> None:
        """Tell the plugins that the response has grown."""
        plan = self._plan("on_message_update")
        if plan is not None:
            await self._observe(plan, event, ctx)

    async def on_message_end(self, event: MessageEndEvent, ctx: RunContext) -> None:
        """Tell the plugins that a message is final."""
        plan = self._plan("on_message_end")
        if plan is not None:
            await self._observe(plan, event, ctx)

    async def on_tool_execution_start(self, event: ToolExecutionStartEvent, ctx: RunContext) -> None:
        """Tell the plugins that a tool call is taken up."""
        plan = self._plan("on_tool_execution_start")
        if plan is not None:
            await self._observe(plan, event, ctx)

    async def on_tool_execution_update(self, event: ToolExecutionUpdateEvent, ctx: RunContext) -> None:
        """Tell the plugins that a tool reports progress."""
        plan = self._plan("on_tool_execution_update")
        if plan is not None:
            await self._observe(plan, event, ctx)

    async def on_tool_execution_end(self, event: ToolExecutionEndEvent, ctx: RunContext) -> None:
        """Tell the plugins that a tool call is final."""
        plan = self._plan("on_tool_execution_end")
        if plan is not None:
            await self._observe(plan, event, ctx)

    async def notify_event(self, event: AgentEvent, ctx: RunContext) -> None:
        """Call the ``on_*`` hook of an event."""
        plan = self._plan(HOOKS_OF_EVENTS[type(event)])
        if plan is not None:
            await self._observe(plan, event, ctx)

    def _observe(self, plan: Plan, event: AgentEvent, ctx: RunContext) -> Awaitable[None]:
        return self._notify(plan, (copied(event), ctx), ctx.failures)


async def _all_messages(plan: Plan, arguments: tuple[Any, ...]) -> list[AgentMessage]:
    return [message for _, messages in await collect(plan, arguments) for message in messages]


def _with_arguments(call: ToolCall, answer: ReplaceArguments) -> ToolCall:
    return call.with_arguments(call.tool.validate(answer.arguments))


async def _execute(plan: Plan, arguments: tuple[Any, ...]) -> ToolResult:
    answer = await first(plan, arguments)
    call: ToolCall = arguments[0]
    return await call.run() if answer is None else cast("ToolResult", answer)


def _patched(plan: Plan, arguments: tuple[Any, ...]) -> Awaitable[tuple[ToolResult, bool]]:
    call, result, is_error, ctx = arguments
    return fold(plan, (result, is_error), lambda state: (call, *state, ctx), _with_patch)


def _with_patch(state: tuple[ToolResult, bool], patch: ToolResultPatch) -> tuple[ToolResult, bool]:
    return patch.apply(*state)


def _updated(plan: Plan, arguments: tuple[Any, ...]) -> Awaitable[TurnUpdate]:
    turn, ctx = arguments

    def given(state: TurnUpdate) -> tuple[Turn, RunContext]:
        return (turn if state.context is None else turn.copy(context=state.context)), ctx

    return fold(plan, TurnUpdate(), given, _merged)


def _merged(state: TurnUpdate, answer: TurnUpdate) -> TurnUpdate:
    messages = [*(state.messages or ()), *(answer.messages or ())]
    return TurnUpdate(
        context=state.context if answer.context is None else answer.context,
        model=state.model if answer.model is None else answer.model,
        thinking_level=state.thinking_level if answer.thinking_level is None else answer.thinking_level,
        messages=messages or None,
    )


HOOKS_OF_EVENTS: Final = {event: f"on_{event.type}" for event in AgentEvent.__args__}
"""The hook that is called with each event."""

NO_HOOKS: Final = Hooks()
"""The facade over nothing."""

__all__ = ["APPLICATION", "NO_HOOKS", "HookError", "Hooks", "Owner"]
