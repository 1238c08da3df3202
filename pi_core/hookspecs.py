"""Every hook, in call order; the docstrings are the reference.

An implementation takes only the arguments it wants, by name. Where a hook is declared ``async``, an implementation may
be ``def`` or ``async def``. Plugins are called in the order the build names them, the rest by plugin name;
``tryfirst`` and ``trylast`` work as in pluggy. Hooks get copies of lists and arguments: what they return counts, what
they edit in place does not. Messages are shared and stay as they are; ``message.model_copy(update=...)`` makes a
changed one. ``ctx`` is the :class:`~pi_core.RunContext` of the current run.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .markers import Kind, OnError, hookspec

if TYPE_CHECKING:
    from .commands import Command
    from .context import RunContext, SelectionContext, Turn, TurnUpdate
    from .errors import PluginFailure
    from .events import (
        AgentEndEvent,
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
    from .messages import AgentMessage, CustomMessage, Message, ToolCallContent, ToolResultMessage
    from .providers import Context, Model, Provider, StreamOptions
    from .tools import Block, ReplaceArguments, Tool, ToolCall, ToolResult, ToolResultPatch

# --- build time ---------------------------------------------------------------------------------------------------


@hookspec(Kind.REGISTER)
def register_hookspecs() -> Iterable[object]:  # type: ignore[empty-body]
    """Called before every other hook, to let a plugin offer hooks of its own to other plugins.

    :returns: modules or classes whose functions are marked with :func:`~pi_core.hookspec`.
    """


@hookspec(Kind.NOTIFY, on_error=OnError.FAIL_BUILD, wrappers=False, copies=["options"])
def configure(options: Any) -> None:
    """Called once by a build, with the plugin's own options, before it contributes anything; no other plugin sees them.

    A plugin object that is passed to an agent is not configured: the application made it as it wants it.

    :param options: an instance of the plugin's ``Options`` class (a pydantic model) when it has one, else the mapping
        that the build or the settings give; empty when they give nothing.
    """


@hookspec(Kind.REGISTER)
def register_providers() -> Iterable[Provider]:  # type: ignore[empty-body]
    """Called when a build collects providers.

    :returns: providers, each for one ``api``. Two owners of one api are a conflict.
    """


@hookspec(Kind.REGISTER)
def register_tools() -> Iterable[Tool]:  # type: ignore[empty-body]
    """Called when a build collects tools.

    :returns: tools. Two owners of one name are a conflict; ``owner/name`` always names one.
    """


@hookspec(Kind.REGISTER)
def register_message_types() -> Iterable[type[CustomMessage]]:  # type: ignore[empty-body]
    """Called when a build collects custom message types.

    :returns: subclasses of :class:`~pi_core.CustomMessage`, each with a role of its own.
    """


@hookspec(Kind.REGISTER)
def register_commands() -> Iterable[Command]:  # type: ignore[empty-body]
    """Called when the command line collects sub-commands of ``pi``.

    :returns: commands; the click object of each is made only when it is run.
    """


# --- choosing a model ---------------------------------------------------------------------------------------------


@hookspec(Kind.FIRST)
async def resolve_model(name: str | None, ctx: SelectionContext) -> Model | None:
    """Called to turn a model name into a model, and with ``None`` for a default when none was named.

    :param name: ``provider/id``, an id, or a pattern.
    :param ctx: what the choice is made with; ``ctx.notice`` tells the user what was chosen for them.
    :returns: the model, or ``None`` when the name means nothing to this plugin.
    """


# --- the queues ---------------------------------------------------------------------------------------------------


@hookspec(Kind.COLLECT)
async def steering_messages(ctx: RunContext) -> Iterable[AgentMessage] | AgentMessage | None:
    """Called at each poll for steering: when the run starts and after each turn, after the agent's own queue.

    :returns: messages to put in before the next request. A wrapper gets and gives the list of all of them.
    """


@hookspec(Kind.COLLECT)
async def follow_up_messages(ctx: RunContext) -> Iterable[AgentMessage] | AgentMessage | None:
    """Called when the run would stop, after the agent's own queue.

    :returns: messages that make it go on.
    """


# --- a request ----------------------------------------------------------------------------------------------------


@hookspec(Kind.CHAIN)
async def transform_context(messages: list[AgentMessage], ctx: RunContext) -> list[AgentMessage] | None:
    """Called before every request, to change which messages it is built from.

    :param messages: the agent's messages, oldest first; each implementation gets the previous one's.
    :returns: the messages of this request; the transcript stays as it is.
    """


@hookspec(Kind.FIRST, copies=["messages"])
async def convert_to_llm(messages: list[AgentMessage], ctx: RunContext) -> list[Message] | None:
    """Called before every request, after ``transform_context``, to turn the agent's messages into a model's.

    The core's own implementation, which comes last, keeps user, assistant and tool result messages and asks each
    custom message's ``to_llm()``.

    :returns: the messages of the request.
    """


@hookspec(Kind.FIRST)
async def get_api_key(provider: str, ctx: RunContext) -> str | None:
    """Called before every request for the key of the model's provider.

    :returns: the key; without one the agent's own is used.
    """


@hookspec(Kind.FIRST, copies=["context", "options"])
async def stream(
    model: Model, context: Context, options: StreamOptions, ctx: RunContext
) -> AsyncIterable[StreamEvent] | None:
    """Called to make the request. The core's own implementation, which comes last, asks the provider of ``model.api``.

    Retries, caches, rate limits and recorders are wrappers here: ``await proceed()`` gives the stream, and
    ``await proceed(model=..., options=...)`` makes another request than the one that was asked for.

    :returns: the events of the response.
    """


@hookspec(Kind.CHAIN, on_error=OnError.ERROR_MESSAGE)
async def provider_headers(
    headers: dict[str, str | None], model: Model, ctx: RunContext
) -> Mapping[str, str | None] | None:
    """Called by a provider with the merged headers of a request.

    :param headers: without the credentials' own; names are compared without case.
    :returns: the headers to send; ``None`` as a value deletes one.
    """


@hookspec(Kind.CHAIN, on_error=OnError.ERROR_MESSAGE)
async def provider_payload(payload: Any, model: Model, ctx: RunContext) -> Any:
    """Called by a provider with the JSON body about to be sent.

    :returns: the body to send, ``None`` for this one.
    """


@hookspec(Kind.NOTIFY, copies=["headers"])
async def provider_response(status: int, headers: Mapping[str, str], model: Model, ctx: RunContext) -> None:
    """Called by a provider with status and headers of a response, before its body is read."""


# --- a tool call --------------------------------------------------------------------------------------------------


@hookspec(Kind.GUARD)
async def before_tool_call(call: ToolCall, ctx: RunContext) -> Block | ReplaceArguments | None:
    """Called before a call is executed, after its arguments were validated.

    :param call: the call with its message, raw and validated arguments.
    :returns: :class:`~pi_core.Block` to refuse it, :class:`~pi_core.ReplaceArguments` to go on with others (validated
        again, seen by the next plugin and the tool), ``None`` for no objection.
    """


@hookspec(Kind.FIRST, on_error=OnError.ERROR_RESULT)
async def execute_tool(call: ToolCall, ctx: RunContext) -> ToolResult | None:
    """Called to execute a call. The core's own implementation, which comes last, runs the tool.

    Timeouts, sandboxes, caches, remote and durable execution are wrappers here.

    :returns: the result.
    """


@hookspec(Kind.CHAIN, on_error=OnError.ERROR_RESULT, copies=["result"])
async def after_tool_call(
    call: ToolCall, result: ToolResult, is_error: bool, ctx: RunContext
) -> ToolResultPatch | None:
    """Called when a call was executed, also when the tool raised, before its end event.

    :param result: the result with the patches of earlier plugins.
    :param is_error: whether it counts as a failure.
    :returns: the fields to replace. A wrapper gets and gives the whole outcome: the result, and whether it is an error.
    """


@hookspec(Kind.RECORD)
async def record_tool_result(call: ToolCallContent, result: ToolResultMessage, ctx: RunContext) -> None:
    """Called as each call of a batch is final, before its end event and in the order the calls finish.

    What it stores survives a run that dies before the batch is complete.

    :param call: the call as the model made it.
    :param result: the message that enters the transcript when the batch is done.
    """


# --- a turn -------------------------------------------------------------------------------------------------------


@hookspec(Kind.CHAIN)
async def prepare_next_turn(turn: Turn, ctx: RunContext) -> TurnUpdate | None:
    """Called between two turns, and only when another one follows.

    :param turn: the completed turn; each implementation sees the context the previous ones made.
    :returns: what changes for the rest of the run, and messages for the next turn.
    """


@hookspec(Kind.FIRST, copies=["turn"])
async def should_stop_after_turn(turn: Turn, ctx: RunContext) -> bool | None:
    """Called after every turn that neither failed nor was aborted.

    :returns: ``True`` to end the run and leave the queues as they are. The first ``True`` counts.
    """


@hookspec(Kind.RECORD)
async def record_message(message: AgentMessage, ctx: RunContext) -> None:
    """Called with every final message before ``message_end`` is announced: what persists the transcript."""


# --- what happened ------------------------------------------------------------------------------------------------


@hookspec(Kind.NOTIFY)
async def on_agent_start(event: AgentStartEvent, ctx: RunContext) -> None:
    """Called when a run begins."""


@hookspec(Kind.NOTIFY)
async def on_agent_end(event: AgentEndEvent, ctx: RunContext) -> None:
    """Called when a run is over, with the messages it produced."""


@hookspec(Kind.NOTIFY)
async def on_turn_start(event: TurnStartEvent, ctx: RunContext) -> None:
    """Called when a turn begins."""


@hookspec(Kind.NOTIFY)
async def on_turn_end(event: TurnEndEvent, ctx: RunContext) -> None:
    """Called when a turn is over, with its response and tool results."""


@hookspec(Kind.NOTIFY)
async def on_message_start(event: MessageStartEvent, ctx: RunContext) -> None:
    """Called when a message enters the run."""


@hookspec(Kind.NOTIFY)
async def on_message_update(event: MessageUpdateEvent, ctx: RunContext) -> None:
    """Called for every piece of a streamed response; an implementation that needs no await should be a plain def."""


@hookspec(Kind.NOTIFY)
async def on_message_end(event: MessageEndEvent, ctx: RunContext) -> None:
    """Called when a message is final."""


@hookspec(Kind.NOTIFY)
async def on_tool_execution_start(event: ToolExecutionStartEvent, ctx: RunContext) -> None:
    """Called when a tool call is taken up, before its arguments are validated."""


@hookspec(Kind.NOTIFY)
async def on_tool_execution_update(event: ToolExecutionUpdateEvent, ctx: RunContext) -> None:
    """Called when a running tool reports progress."""


@hookspec(Kind.NOTIFY)
async def on_tool_execution_end(event: ToolExecutionEndEvent, ctx: RunContext) -> None:
    """Called when a tool call is final, in the order the calls finish."""


# --- trouble ------------------------------------------------------------------------------------------------------


@hookspec(Kind.NOTIFY, on_error=OnError.LOG, wrappers=False)
def plugin_error(failure: PluginFailure) -> None:
    """Called when an implementation of a hook raised and the run went on without it, or its call was blocked."""
