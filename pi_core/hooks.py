"""The typed facade of the hooks: one method per hook with the hook's own parameters, and what the answers combine to.

The loop takes an object of this shape. It holds a manager's plugins, or plain callables, or both; the callables an
application passes to its agent come first in call order.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping
from copy import copy
from typing import Any, Final, TypeVar, cast

import pluggy

from . import hookspecs
from ._dispatch import (
    Implementation,
    Owner,
    Plan,
    ask,
    bind,
    chain,
    collect,
    first,
    log,
    notify,
    record,
    register,
    takes_proceed,
    wrapped,
)
from ._manager import HookManager
from .context import RunContext, SelectionContext, Turn, TurnUpdate, as_messages
from .errors import HookError, PluginFailure
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
from .markers import Contract, Kind, contract_of
from .messages import AgentMessage, Message, ToolCallContent, ToolResultMessage
from .providers import Context, Model, StreamOptions
from .tools import Block, ReplaceArguments, ToolCall, ToolResult, ToolResultPatch

APPLICATION: Final = Owner("application")
"""The owner of the callables that an application passes to its agent."""

T = TypeVar("T")
_MISSING: Final = object()


class Hooks:
    """Calls the hooks of a set of plugins and callables.

    :param manager: holds the plugins; ``None`` for none.
    :param callables: implementations by hook name, called before the plugins'.
    :param without: plugin names that are left out.
    :raises TypeError: a callable for a hook that does not exist, or with arguments it does not have.
    """

    __slots__ = ("_callables", "_generation", "_manager", "_plans", "_without")

    def __init__(
        self,
        manager: HookManager | None = None,
        callables: Mapping[str, Callable[..., Any]] | None = None,
        without: Iterable[str] = (),
    ) -> None:
        self._manager = manager
        self._callables = {name: _from_callable(name, function) for name, function in (callables or {}).items()}
        self._without = frozenset(without)
        self._plans: dict[str, Plan | None] = {}
        self._generation = manager.generation if manager is not None else 0

    @classmethod
    def over(cls, *plugins: object, callables: Mapping[str, Callable[..., Any]] | None = None) -> Hooks:
        """Return a facade over plugin objects, the first called first.

        :raises PluginLoadError: a plugin cannot be registered.
        """
        if not plugins:
            return cls(None, callables)
        manager = HookManager()
        manager.register_all((plugin, None, "") for plugin in plugins)
        return cls(manager, callables)

    def extended(
        self, callables: Mapping[str, Callable[..., Any]] | None = None, *, without: Iterable[str] = ()
    ) -> Hooks:
        """Return a facade over the same plugins with further callables, or without some of the plugins."""
        made = Hooks(self._manager, callables, self._without | set(without))
        made._callables = {**self._callables, **made._callables}
        return made

    def has(self, name: str) -> bool:
        """Whether anybody implements or wraps a hook."""
        return self._plan(name) is not None

    def implementations(self, name: str) -> list[tuple[Owner, Callable[..., Any], bool]]:
        """Who implements a hook, in call order: owner, function, and whether it is a wrapper (those come first)."""
        plan = self._plan(name)
        if plan is None:
            return []
        wrappers = [(found.owner, found.function, True) for found in plan.wrappers]
        return wrappers + [(found.owner, found.function, False) for found in plan.implementations]

    def specifications(self) -> list[tuple[str, tuple[str, ...], Contract]]:
        """Every hook in call order: name, arguments, contract; those that plugins offer come last."""
        manager = self._manager or HookManager()
        return [(name, manager.signatures[name], contract) for name, contract in manager.contracts.items()]

    def contributions(self, name: str) -> list[tuple[Owner, Any]]:
        """Call a register hook and return every contribution with its owner.

        :raises HookError: an implementation raised.
        """
        plan = self._plan(name)
        return [] if plan is None else register(plan)

    def report(self, failure: PluginFailure) -> None:
        """Log a failure of a plugin and tell the plugins that watch for it."""
        log.warning("%s", failure)
        self.plugin_error(failure)

    async def call(self, name: str, /, **arguments: Any) -> Any:
        """Call a hook that a plugin offers, combined as its contract says; a chain folds the hook's first argument.

        :raises KeyError: no such hook.
        """
        plan = self._plan(name)
        if self._manager is None:
            return None
        contract, order = self._manager.contracts[name], self._manager.signatures[name]
        given = tuple(arguments[key] for key in order)
        if plan is None:
            return given[0] if contract.kind is Kind.CHAIN else [] if contract.kind is Kind.COLLECT else None
        found = plan
        ctx = arguments.get("ctx")
        match contract.kind:
            case Kind.CHAIN:
                return await self._chain(found, *given)
            case Kind.NOTIFY:
                failures = ctx.failures if isinstance(ctx, RunContext) else {}
                return await self._run(found, given, lambda *new: notify(found, new, failures, self.report))
            case Kind.RECORD:
                return await self._run(found, given, lambda *new: record(found, new))
            case Kind.COLLECT:
                return await self._run(found, given, lambda *new: collect(found, new))
            case Kind.REGISTER:
                return register(found)
            case _:
                return await self._run(found, given, lambda *new: first(found, new))

    # --- choosing a model ---

    async def resolve_model(self, name: str | None, ctx: SelectionContext) -> Model | None:
        """Return the first model a plugin knows for the name."""
        plan = self._plan("resolve_model")
        if plan is None:
            return None
        return cast("Model | None", await self._run(plan, (name, ctx), lambda *new: first(plan, new)))

    # --- the queues ---

    async def steering_messages(self, ctx: RunContext) -> list[AgentMessage]:
        """Return the steering messages of all plugins."""
        return await self._messages("steering_messages", ctx)

    async def follow_up_messages(self, ctx: RunContext) -> list[AgentMessage]:
        """Return the follow-up messages of all plugins."""
        return await self._messages("follow_up_messages", ctx)

    async def _messages(self, name: str, ctx: RunContext) -> list[AgentMessage]:
        plan = self._plan(name)
        if plan is None:
            return []
        answers = await self._run(plan, (ctx,), lambda *new: collect(plan, new))
        return [message for _, answer in answers for message in as_messages(answer)]

    # --- a request ---

    async def transform_context(self, messages: list[AgentMessage], ctx: RunContext) -> list[AgentMessage]:
        """Return the messages of this request; each implementation gets a list of its own."""
        plan = self._plan("transform_context")
        return messages if plan is None else cast("list[AgentMessage]", await self._chain(plan, messages, ctx))

    async def convert_to_llm(self, messages: list[AgentMessage], ctx: RunContext) -> list[Message] | None:
        """Return a plugin's conversion, ``None`` to use the core's."""
        plan = self._plan("convert_to_llm")
        if plan is None:
            return None
        answer = await self._run(plan, (messages, ctx), lambda given, ctx: first(plan, (list(given), ctx)))
        return None if answer is None else list(answer)

    async def get_api_key(self, provider: str, ctx: RunContext) -> str | None:
        """Return the first key a plugin has."""
        plan = self._plan("get_api_key")
        if plan is None:
            return None
        return cast("str | None", await self._run(plan, (provider, ctx), lambda *new: first(plan, new)))

    async def stream(
        self,
        model: Model,
        context: Context,
        options: StreamOptions,
        ctx: RunContext,
        core: Callable[[Model, Context, StreamOptions], Any],
    ) -> AsyncIterable[StreamEvent]:
        """Return the response: a plugin's, else that of ``core``."""

        async def inner(model: Model, context: Context, options: StreamOptions, ctx: RunContext) -> Any:
            answer = None if plan is None else await first(plan, (model, context, options, ctx))
            if answer is None:
                answer = core(model, context, options)
            return await answer if inspect.isawaitable(answer) else answer

        plan = self._plan("stream")
        if plan is None:
            return cast("AsyncIterable[StreamEvent]", await inner(model, context, options, ctx))
        return cast("AsyncIterable[StreamEvent]", await self._run(plan, (model, context, options, ctx), inner))

    async def provider_headers(
        self, headers: dict[str, str | None], model: Model, ctx: RunContext
    ) -> dict[str, str | None]:
        """Return the headers to send; each implementation gets a mapping of its own."""
        plan = self._plan("provider_headers")
        if plan is None:
            return headers
        return dict(await self._chain(plan, headers, model, ctx))

    async def provider_payload(self, payload: Any, model: Model, ctx: RunContext) -> Any:
        """Return the body to send; each implementation gets a copy of the outermost object."""
        plan = self._plan("provider_payload")
        return payload if plan is None else await self._chain(plan, payload, model, ctx)

    async def provider_response(self, status: int, headers: Mapping[str, str], model: Model, ctx: RunContext) -> None:
        """Tell the plugins about the head of a response."""
        await self._notify("provider_response", (status, headers, model, ctx), ctx)

    # --- a tool call ---

    async def before_tool_call(self, call: ToolCall, ctx: RunContext) -> Block | ToolCall:
        """Return the call with its final arguments, or the first objection.

        :raises HookError: a guard raised, so the call must not be executed.
        """
        plan = self._plan("before_tool_call")
        if plan is None:
            return call
        return cast("Block | ToolCall", await self._run(plan, (call, ctx), lambda *new: self._guard(plan, *new)))

    async def _guard(self, plan: Plan, call: ToolCall, ctx: RunContext) -> Block | ToolCall:
        for implementation in plan.implementations:
            try:
                answer = implementation.call(call, ctx)
                if answer is not None and (implementation.is_async or inspect.isawaitable(answer)):
                    answer = await answer
                if isinstance(answer, Block):
                    return answer
                if isinstance(answer, ReplaceArguments):
                    call = call.with_arguments(call.tool.validate(answer.arguments))
                elif answer is not None:
                    raise TypeError(f"expected Block, ReplaceArguments or None, got {type(answer).__name__}")
            except Exception as error:
                owner = implementation.owner
                self.report(PluginFailure(owner.plugin, owner.distribution, plan.hook, error))
                raise implementation.failed(error) from error
        return call

    async def execute_tool(self, call: ToolCall, ctx: RunContext) -> ToolResult:
        """Return the result of a call: a plugin's, else the tool's own."""
        plan = self._plan("execute_tool")
        if plan is None:
            return await call.run()

        async def inner(call: ToolCall, ctx: RunContext) -> ToolResult:
            answer = await first(plan, (call, ctx)) if plan is not None else None
            return await call.run() if answer is None else cast("ToolResult", answer)

        return cast("ToolResult", await self._run(plan, (call, ctx), inner))

    async def after_tool_call(
        self, call: ToolCall, result: ToolResult, is_error: bool, ctx: RunContext
    ) -> tuple[ToolResult, bool]:
        """Return the result and error flag with the patches of all plugins."""
        plan = self._plan("after_tool_call")
        if plan is None:
            return result, is_error

        async def inner(call: ToolCall, result: ToolResult, is_error: bool, ctx: RunContext) -> tuple[ToolResult, bool]:
            return await chain(
                cast("Plan", plan),
                (result, is_error),
                lambda state: (call, copy(state[0]), state[1], ctx),
                lambda state, patch: cast("ToolResultPatch", patch).apply(*state),
            )

        return cast("tuple[ToolResult, bool]", await self._run(plan, (call, result, is_error, ctx), inner))

    async def record_tool_result(self, call: ToolCallContent, result: ToolResultMessage, ctx: RunContext) -> None:
        """Let the plugins store the result of a call.

        :raises HookError: one of them could not.
        """
        plan = self._plan("record_tool_result")
        if plan is not None:
            await self._run(plan, (call, result, ctx), lambda *new: record(plan, new))

    # --- a turn ---

    async def prepare_next_turn(self, turn: Turn, ctx: RunContext) -> TurnUpdate | None:
        """Return what all plugins together change; ``None`` when nobody implements the hook."""
        plan = self._plan("prepare_next_turn")
        if plan is None:
            return None

        async def inner(turn: Turn, ctx: RunContext) -> TurnUpdate:
            return await chain(cast("Plan", plan), TurnUpdate(), lambda state: (_updated(turn, state), ctx), _merge)

        return cast("TurnUpdate", await self._run(plan, (turn, ctx), inner))

    async def should_stop_after_turn(self, turn: Turn, ctx: RunContext) -> bool:
        """Return whether any plugin wants the run to end."""
        plan = self._plan("should_stop_after_turn")
        if plan is None:
            return False

        async def inner(turn: Turn, ctx: RunContext) -> bool:
            for implementation in cast("Plan", plan).implementations:
                if await ask(implementation, (turn.copy(), ctx)):
                    return True
            return False

        return bool(await self._run(plan, (turn, ctx), inner))

    async def record_message(self, message: AgentMessage, ctx: RunContext) -> None:
        """Let the plugins store a final message.

        :raises HookError: one of them could not.
        """
        plan = self._plan("record_message")
        if plan is not None:
            await self._run(plan, (message, ctx), lambda *new: record(plan, new))

    # --- what happened ---

    async def on_agent_start(self, event: AgentStartEvent, ctx: RunContext) -> None:
        """Tell the plugins that a run begins."""
        await self._notify("on_agent_start", (event, ctx), ctx)

    async def on_agent_end(self, event: AgentEndEvent, ctx: RunContext) -> None:
        """Tell the plugins that a run is over."""
        await self._notify("on_agent_end", (event, ctx), ctx)

    async def on_turn_start(self, event: TurnStartEvent, ctx: RunContext) -> None:
        """Tell the plugins that a turn begins."""
        await self._notify("on_turn_start", (event, ctx), ctx)

    async def on_turn_end(self, event: TurnEndEvent, ctx: RunContext) -> None:
        """Tell the plugins that a turn is over."""
        await self._notify("on_turn_end", (event, ctx), ctx)

    async def on_message_start(self, event: MessageStartEvent, ctx: RunContext) -> None:
        """Tell the plugins that a message enters the run."""
        await self._notify("on_message_start", (event, ctx), ctx)

    async def on_message_update(self, event: MessageUpdateEvent, ctx: RunContext) -> None:
        """Tell the plugins that the response has grown."""
        await self._notify("on_message_update", (event, ctx), ctx)

    async def on_message_end(self, event: MessageEndEvent, ctx: RunContext) -> None:
        """Tell the plugins that a message is final."""
        await self._notify("on_message_end", (event, ctx), ctx)

    async def on_tool_execution_start(self, event: ToolExecutionStartEvent, ctx: RunContext) -> None:
        """Tell the plugins that a tool call is taken up."""
        await self._notify("on_tool_execution_start", (event, ctx), ctx)

    async def on_tool_execution_update(self, event: ToolExecutionUpdateEvent, ctx: RunContext) -> None:
        """Tell the plugins that a tool reports progress."""
        await self._notify("on_tool_execution_update", (event, ctx), ctx)

    async def on_tool_execution_end(self, event: ToolExecutionEndEvent, ctx: RunContext) -> None:
        """Tell the plugins that a tool call is final."""
        await self._notify("on_tool_execution_end", (event, ctx), ctx)

    async def notify_event(self, event: AgentEvent, ctx: RunContext) -> None:
        """Call the ``on_*`` hook of an event."""
        await self._notify(f"on_{event.type}", (event, ctx), ctx)

    # --- trouble ---

    def plugin_error(self, failure: PluginFailure) -> None:
        """Tell the plugins about a failure; what they raise is logged."""
        plan = self._plan("plugin_error")
        for implementation in plan.implementations if plan is not None else ():
            try:
                implementation.call(failure)
            except Exception:
                log.exception("%s failed in hook plugin_error", implementation.owner)

    # --- calling ---

    def _plan(self, name: str) -> Plan | None:
        manager = self._manager
        if manager is not None and manager.generation != self._generation:
            self._plans.clear()
            self._generation = manager.generation
        plan = self._plans.get(name, _MISSING)
        if plan is _MISSING:
            plan = self._plans[name] = self._compile(name)
        return cast("Plan | None", plan)

    def _compile(self, name: str) -> Plan | None:
        own = self._callables.get(name)
        if self._manager is None:
            return own
        plan = self._manager.plan(name, self._without)
        if own is not None:
            plan = Plan(
                name,
                plan.arguments,
                own.implementations + plan.implementations,
                own.wrappers + plan.wrappers,
            )
        return plan if plan.implementations or plan.wrappers else None

    async def _run(self, plan: Plan, arguments: tuple[Any, ...], inner: Callable[..., Awaitable[T]]) -> T:
        if self._manager is not None and self._manager.monitors:
            return cast("T", await self._monitored(plan, arguments, inner))
        if plan.wrappers:
            return cast("T", await wrapped(plan, arguments, inner))
        return await inner(*arguments)

    async def _monitored(self, plan: Plan, arguments: tuple[Any, ...], inner: Callable[..., Awaitable[Any]]) -> Any:
        assert self._manager is not None
        monitors = list(self._manager.monitors)
        caller = getattr(self._manager.hook, plan.hook)
        given = dict(zip(plan.arguments, arguments, strict=True))
        for before, _ in monitors:
            before(plan.hook, caller.get_hookimpls(), given)
        value, failure = None, None
        try:
            value = await wrapped(plan, arguments, inner)
        except BaseException as error:
            failure = error

        def outcome() -> Any:
            if failure is not None:
                raise failure
            return value

        result = pluggy.Result.from_call(outcome)
        for _, after in monitors:
            after(result, plan.hook, caller.get_hookimpls(), given)
        return result.get_result()

    async def _chain(self, plan: Plan, value: T, *rest: Any) -> T:
        async def inner(value: T, *rest: Any) -> T:
            return await chain(plan, value, lambda state: (_copy(state), *rest), lambda _, answer: cast("T", answer))

        return await self._run(plan, (value, *rest), inner)

    async def _notify(self, name: str, arguments: tuple[Any, ...], ctx: RunContext) -> None:
        plan = self._plan(name)
        if plan is not None:
            await self._run(plan, arguments, lambda *new: notify(plan, new, ctx.failures, self.report))


def _copy(value: T) -> T:
    if isinstance(value, list):
        return cast("T", list(value))
    return cast("T", dict(value)) if isinstance(value, dict) else value


def _updated(turn: Turn, update: TurnUpdate) -> Turn:
    return turn.copy() if update.context is None else turn.copy(context=update.context)


def _merge(state: TurnUpdate, answer: Any) -> TurnUpdate:
    if not isinstance(answer, TurnUpdate):
        raise TypeError(f"expected TurnUpdate or None, got {type(answer).__name__}")
    messages = [*(state.messages or ()), *(answer.messages or ())]
    return TurnUpdate(
        context=state.context if answer.context is None else answer.context,
        model=state.model if answer.model is None else answer.model,
        thinking_level=state.thinking_level if answer.thinking_level is None else answer.thinking_level,
        messages=messages or None,
    )


def _from_callable(name: str, function: Callable[..., Any]) -> Plan:
    spec = getattr(hookspecs, name, None)
    contract = contract_of(spec)
    if contract is None or spec is None or contract.kind is Kind.REGISTER:
        raise TypeError(f"there is no hook '{name}' that a callable can implement")
    arguments = tuple(inspect.signature(spec).parameters)
    wanted = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in arguments and parameter.kind is not parameter.POSITIONAL_ONLY:
            wanted.append(parameter.name)
        elif not (parameter.name == "proceed" and takes_proceed(function)) and parameter.default is parameter.empty:
            raise TypeError(
                f"{name}: argument '{parameter.name}' is not one of the hook's ({', '.join(arguments)}), taken by name"
            )
    proceed = takes_proceed(function)
    is_async = inspect.iscoroutinefunction(function)
    if is_async and not contract.is_async:
        raise TypeError(f"{name} is called without await, but the callable is async")
    made = Implementation(name, APPLICATION, bind(function, arguments, wanted, proceed=proceed), is_async, function)
    return Plan(name, arguments, () if proceed else (made,), (made,) if proceed else ())


NO_HOOKS: Final = Hooks()
"""The facade over nothing."""

__all__ = ["APPLICATION", "NO_HOOKS", "HookError", "Hooks", "Owner"]
