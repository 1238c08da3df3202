"""The public API of the agent runtime.

``import pi_core`` is free: each name is imported when it is first used.
"""

# Layers, each built on those below it:
#   cli                 the command line
#   build, _loader      configuration and installed plugins -> hooks -> an agent
#   agent               transcript, queues, subscribers, one run at a time
#   loop, batch         the double loop and the tool batch: functions without state
#   hooks               the typed facade; _dispatch and _manager drive pluggy
#   hookspecs, markers  every hook and its contract
#   tools, providers, context, streams, events, messages, errors   the vocabulary

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._build_file import BuildSettings as BuildSettings
    from ._requests import convert_to_llm as convert_to_llm
    from ._tracing import HookTrace as HookTrace
    from ._tracing import Tracer as Tracer
    from .agent import Agent as Agent
    from .agent import AgentState as AgentState
    from .agent import MessageQueue as MessageQueue
    from .agent import Subscriber as Subscriber
    from .assembler import MessageAssembler as MessageAssembler
    from .batch import run_tool_call as run_tool_call
    from .build import Build as Build
    from .commands import Command as Command
    from .completion import ResponseStream as ResponseStream
    from .completion import complete as complete
    from .completion import complete_sync as complete_sync
    from .completion import stream as stream
    from .context import AbortController as AbortController
    from .context import AbortSignal as AbortSignal
    from .context import AgentContext as AgentContext
    from .context import RunActions as RunActions
    from .context import RunContext as RunContext
    from .context import SelectionContext as SelectionContext
    from .context import Stash as Stash
    from .context import StashKey as StashKey
    from .context import Turn as Turn
    from .context import TurnUpdate as TurnUpdate
    from .errors import AgentBusyError as AgentBusyError
    from .errors import BuildError as BuildError
    from .errors import ConfigError as ConfigError
    from .errors import ContinueError as ContinueError
    from .errors import HookError as HookError
    from .errors import PiError as PiError
    from .errors import PluginConflictError as PluginConflictError
    from .errors import PluginError as PluginError
    from .errors import PluginFailure as PluginFailure
    from .errors import PluginLoadError as PluginLoadError
    from .errors import ToolArgumentsError as ToolArgumentsError
    from .events import AgentEndEvent as AgentEndEvent
    from .events import AgentEvent as AgentEvent
    from .events import AgentStartEvent as AgentStartEvent
    from .events import DoneEvent as DoneEvent
    from .events import ErrorEvent as ErrorEvent
    from .events import MessageEndEvent as MessageEndEvent
    from .events import MessageStartEvent as MessageStartEvent
    from .events import MessageUpdateEvent as MessageUpdateEvent
    from .events import StartEvent as StartEvent
    from .events import StreamEvent as StreamEvent
    from .events import TextDeltaEvent as TextDeltaEvent
    from .events import TextEndEvent as TextEndEvent
    from .events import TextStartEvent as TextStartEvent
    from .events import ThinkingDeltaEvent as ThinkingDeltaEvent
    from .events import ThinkingEndEvent as ThinkingEndEvent
    from .events import ThinkingStartEvent as ThinkingStartEvent
    from .events import ToolCallDeltaEvent as ToolCallDeltaEvent
    from .events import ToolCallEndEvent as ToolCallEndEvent
    from .events import ToolCallStartEvent as ToolCallStartEvent
    from .events import ToolExecutionEndEvent as ToolExecutionEndEvent
    from .events import ToolExecutionStartEvent as ToolExecutionStartEvent
    from .events import ToolExecutionUpdateEvent as ToolExecutionUpdateEvent
    from .events import TurnEndEvent as TurnEndEvent
    from .events import TurnStartEvent as TurnStartEvent
    from .events import UpdateEvent as UpdateEvent
    from .hooks import Hooks as Hooks
    from .hooks import Owner as Owner
    from .loop import AgentLoopConfig as AgentLoopConfig
    from .loop import agent_loop as agent_loop
    from .loop import agent_loop_continue as agent_loop_continue
    from .loop import run_agent_loop as run_agent_loop
    from .loop import run_agent_loop_continue as run_agent_loop_continue
    from .markers import Contract as Contract
    from .markers import Kind as Kind
    from .markers import OnError as OnError
    from .markers import contract_of as contract_of
    from .markers import hookimpl as hookimpl
    from .markers import hookspec as hookspec
    from .messages import AgentMessage as AgentMessage
    from .messages import AssistantMessage as AssistantMessage
    from .messages import Cost as Cost
    from .messages import CustomMessage as CustomMessage
    from .messages import ErrorDetails as ErrorDetails
    from .messages import ImageContent as ImageContent
    from .messages import Message as Message
    from .messages import OpaqueContent as OpaqueContent
    from .messages import StopReason as StopReason
    from .messages import TextContent as TextContent
    from .messages import ThinkingContent as ThinkingContent
    from .messages import ThinkingLevel as ThinkingLevel
    from .messages import ToolCallContent as ToolCallContent
    from .messages import ToolResultMessage as ToolResultMessage
    from .messages import Usage as Usage
    from .messages import UserMessage as UserMessage
    from .messages import WireModel as WireModel
    from .messages import now_ms as now_ms
    from .messages import parse_message as parse_message
    from .messages import user_message as user_message
    from .partial_json import ArgumentsParser as ArgumentsParser
    from .partial_json import parse_arguments as parse_arguments
    from .plugin import TypedPlugin as TypedPlugin
    from .providers import Context as Context
    from .providers import Model as Model
    from .providers import ModelCost as ModelCost
    from .providers import ModelCostTier as ModelCostTier
    from .providers import Provider as Provider
    from .providers import ProviderResponse as ProviderResponse
    from .providers import StreamFunction as StreamFunction
    from .providers import StreamOptions as StreamOptions
    from .providers import get_default_stream as get_default_stream
    from .providers import set_default_stream as set_default_stream
    from .streams import AssistantStream as AssistantStream
    from .streams import EventStream as EventStream
    from .tools import UNSET as UNSET
    from .tools import Block as Block
    from .tools import ReplaceArguments as ReplaceArguments
    from .tools import Tool as Tool
    from .tools import ToolCall as ToolCall
    from .tools import ToolCallOutcome as ToolCallOutcome
    from .tools import ToolContext as ToolContext
    from .tools import ToolResult as ToolResult
    from .tools import ToolResultPatch as ToolResultPatch
    from .tools import tool as tool

__version__ = "0.1.0"

_HOMES = {
    "_build_file": ("BuildSettings",),
    "_requests": ("convert_to_llm",),
    "_tracing": (
        "HookTrace",
        "Tracer",
    ),
    "agent": (
        "Agent",
        "AgentState",
        "MessageQueue",
        "Subscriber",
    ),
    "assembler": ("MessageAssembler",),
    "batch": ("run_tool_call",),
    "build": ("Build",),
    "commands": ("Command",),
    "completion": (
        "ResponseStream",
        "complete",
        "complete_sync",
        "stream",
    ),
    "context": (
        "AbortController",
        "AbortSignal",
        "AgentContext",
        "RunActions",
        "RunContext",
        "SelectionContext",
        "Stash",
        "StashKey",
        "Turn",
        "TurnUpdate",
    ),
    "errors": (
        "AgentBusyError",
        "BuildError",
        "ConfigError",
        "ContinueError",
        "HookError",
        "PiError",
        "PluginConflictError",
        "PluginError",
        "PluginFailure",
        "PluginLoadError",
        "ToolArgumentsError",
    ),
    "events": (
        "AgentEndEvent",
        "AgentEvent",
        "AgentStartEvent",
        "DoneEvent",
        "ErrorEvent",
        "MessageEndEvent",
        "MessageStartEvent",
        "MessageUpdateEvent",
        "StartEvent",
        "StreamEvent",
        "TextDeltaEvent",
        "TextEndEvent",
        "TextStartEvent",
        "ThinkingDeltaEvent",
        "ThinkingEndEvent",
        "ThinkingStartEvent",
        "ToolCallDeltaEvent",
        "ToolCallEndEvent",
        "ToolCallStartEvent",
        "ToolExecutionEndEvent",
        "ToolExecutionStartEvent",
        "ToolExecutionUpdateEvent",
        "TurnEndEvent",
        "TurnStartEvent",
        "UpdateEvent",
    ),
    "hooks": (
        "Hooks",
        "Owner",
    ),
    "loop": (
        "AgentLoopConfig",
        "agent_loop",
        "agent_loop_continue",
        "run_agent_loop",
        "run_agent_loop_continue",
    ),
    "markers": (
        "Contract",
        "Kind",
        "OnError",
        "contract_of",
        "hookimpl",
        "hookspec",
    ),
    "messages": (
        "AgentMessage",
        "AssistantMessage",
        "Cost",
        "CustomMessage",
        "ErrorDetails",
        "ImageContent",
        "Message",
        "OpaqueContent",
        "StopReason",
        "TextContent",
        "ThinkingContent",
        "ThinkingLevel",
        "ToolCallContent",
        "ToolResultMessage",
        "Usage",
        "UserMessage",
        "WireModel",
        "now_ms",
        "parse_message",
        "user_message",
    ),
    "partial_json": (
        "ArgumentsParser",
        "parse_arguments",
    ),
    "plugin": ("TypedPlugin",),
    "providers": (
        "Context",
        "Model",
        "ModelCost",
        "ModelCostTier",
        "Provider",
        "ProviderResponse",
        "StreamFunction",
        "StreamOptions",
        "get_default_stream",
        "set_default_stream",
    ),
    "streams": (
        "AssistantStream",
        "EventStream",
    ),
    "tools": (
        "Block",
        "ReplaceArguments",
        "Tool",
        "ToolCall",
        "ToolCallOutcome",
        "ToolContext",
        "ToolResult",
        "ToolResultPatch",
        "UNSET",
        "tool",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _HOME_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'pi_core' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{module}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF])


__all__ = [
    "UNSET",
    "AbortController",
    "AbortSignal",
    "Agent",
    "AgentBusyError",
    "AgentContext",
    "AgentEndEvent",
    "AgentEvent",
    "AgentLoopConfig",
    "AgentMessage",
    "AgentStartEvent",
    "AgentState",
    "ArgumentsParser",
    "AssistantMessage",
    "AssistantStream",
    "Block",
    "Build",
    "BuildError",
    "BuildSettings",
    "Command",
    "ConfigError",
    "Context",
    "ContinueError",
    "Contract",
    "Cost",
    "CustomMessage",
    "DoneEvent",
    "ErrorDetails",
    "ErrorEvent",
    "EventStream",
    "HookError",
    "HookTrace",
    "Hooks",
    "ImageContent",
    "Kind",
    "Message",
    "MessageAssembler",
    "MessageEndEvent",
    "MessageQueue",
    "MessageStartEvent",
    "MessageUpdateEvent",
    "Model",
    "ModelCost",
    "ModelCostTier",
    "OnError",
    "OpaqueContent",
    "Owner",
    "PiError",
    "PluginConflictError",
    "PluginError",
    "PluginFailure",
    "PluginLoadError",
    "Provider",
    "ProviderResponse",
    "ReplaceArguments",
    "ResponseStream",
    "RunActions",
    "RunContext",
    "SelectionContext",
    "StartEvent",
    "Stash",
    "StashKey",
    "StopReason",
    "StreamEvent",
    "StreamFunction",
    "StreamOptions",
    "Subscriber",
    "TextContent",
    "TextDeltaEvent",
    "TextEndEvent",
    "TextStartEvent",
    "ThinkingContent",
    "ThinkingDeltaEvent",
    "ThinkingEndEvent",
    "ThinkingLevel",
    "ThinkingStartEvent",
    "Tool",
    "ToolArgumentsError",
    "ToolCall",
    "ToolCallContent",
    "ToolCallDeltaEvent",
    "ToolCallEndEvent",
    "ToolCallOutcome",
    "ToolCallStartEvent",
    "ToolContext",
    "ToolExecutionEndEvent",
    "ToolExecutionStartEvent",
    "ToolExecutionUpdateEvent",
    "ToolResult",
    "ToolResultMessage",
    "ToolResultPatch",
    "Tracer",
    "Turn",
    "TurnEndEvent",
    "TurnStartEvent",
    "TurnUpdate",
    "TypedPlugin",
    "UpdateEvent",
    "Usage",
    "UserMessage",
    "WireModel",
    "agent_loop",
    "agent_loop_continue",
    "complete",
    "complete_sync",
    "contract_of",
    "convert_to_llm",
    "get_default_stream",
    "hookimpl",
    "hookspec",
    "now_ms",
    "parse_arguments",
    "parse_message",
    "run_agent_loop",
    "run_agent_loop_continue",
    "run_tool_call",
    "set_default_stream",
    "stream",
    "tool",
    "user_message",
]
