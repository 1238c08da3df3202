"""What implementations are given and what they may answer: copies of arguments, checks of answers.

A wrong answer is an exception of the plugin that gave it; without the check it would come out somewhere else, nameless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, get_args

from .context import AgentContext, Turn, TurnUpdate
from .events import (
    AgentEndEvent,
    MessageEndEvent,
    MessageStartEvent,
    MessageUpdateEvent,
    ToolExecutionEndEvent,
    ToolExecutionStartEvent,
    ToolExecutionUpdateEvent,
    TurnEndEvent,
)
from .messages import (
    AgentMessage,
    AssistantMessage,
    CustomMessage,
    ThinkingLevel,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from .providers import Context, Model, StreamOptions
from .tools import UNSET, Block, ReplaceArguments, Tool, ToolResult, ToolResultPatch

Check = Callable[[Any], Any]

_FOR_MODELS: Final = (UserMessage, AssistantMessage, ToolResultMessage)
_MESSAGES: Final = (*_FOR_MODELS, CustomMessage)
_THINKING_LEVELS: Final = get_args(ThinkingLevel)


# --- copies -------------------------------------------------------------------------------------------------------


def copied(value: Any) -> Any:
    """Return a copy that may be edited without effect: of lists, of data made of lists and mappings, and of records
    that hold such; anything else is shared, and so is data nested too deep to be copied."""
    make = copier_of(type(value))
    return value if make is None else make(value)


def _data(value: Any) -> Any:
    try:
        return _deep(value)
    except RecursionError:
        return value


def _deep(value: Any) -> Any:
    if type(value) is dict:
        return {key: _deep(item) for key, item in value.items()}
    return list(map(_deep, value)) if type(value) is list else value


def _own_list(value: Any) -> Any:
    return list(value) if type(value) is list else value


def _result(result: ToolResult) -> ToolResult:
    # Past the constructor; every implementation of after_tool_call gets a copy.
    copy: ToolResult = object.__new__(ToolResult)
    copy.content = part if (part := result.content) is None else [*part]
    copy.details = part if (part := result.details) is None or type(part) not in _NESTED else _data(part)
    copy.structured_content = (
        part if (part := result.structured_content) is UNSET or type(part) not in _NESTED else _data(part)
    )
    copy.usage, copy.is_error, copy.terminate = result.usage, result.is_error, result.terminate
    return copy


_NESTED: Final = frozenset({dict, list})


_COPIES: Final[Mapping[type, Callable[[Any], Any]]] = {
    dict: _data,
    list: list,
    ToolResult: _result,
    Turn: Turn.copy,
    Context: lambda context: replace(context, messages=_own_list(context.messages), tools=_own_list(context.tools)),
    StreamOptions: lambda options: options.replace(headers=_data(options.headers), metadata=_data(options.metadata)),
    AgentEndEvent: lambda event: AgentEndEvent(list(event.messages)),
    TurnEndEvent: lambda event: TurnEndEvent(event.message, event.tool_results),
    MessageStartEvent: lambda event: MessageStartEvent(event.given),
    MessageUpdateEvent: lambda event: MessageUpdateEvent(event.assistant_message_event),
    MessageEndEvent: lambda event: MessageEndEvent(event.message),
    ToolExecutionStartEvent: lambda event: replace(event, args=_data(event.args)),
    ToolExecutionUpdateEvent: lambda event: replace(
        event, args=_data(event.args), partial_result=_result(event.partial_result)
    ),
    ToolExecutionEndEvent: lambda event: replace(event, result=_result(event.result)),
}
copier_of: Final = _COPIES.get
"""Returns what :func:`copied` copies a type with, ``None`` for what is shared."""


# --- answers ------------------------------------------------------------------------------------------------------


def check_of(hook: str) -> Check | None:
    """Return what checks an answer that is not ``None``: it returns the answer or raises :class:`TypeError`."""
    return _ANSWERS.get(hook)


def wrapper_check_of(hook: str) -> Check | None:
    """Return what checks the answer of a wrapper, which gives what all implementations together do."""
    return _WRAPPED.get(hook)


def _one(*kinds: type) -> Check:
    def check(answer: Any) -> Any:
        if not isinstance(answer, kinds):
            raise TypeError(f"expected {' or '.join(kind.__name__ for kind in kinds)}, got {_kind(answer)}")
        return answer

    return check


def _list_of(*kinds: type) -> Check:
    exact = frozenset(kinds)

    def check(answer: Any) -> list[Any]:
        if type(answer) is not list and (not isinstance(answer, Sequence) or isinstance(answer, str)):
            raise TypeError(f"expected a list of messages, got {_kind(answer)}")
        found = set(map(type, answer))
        if not found <= exact:
            for kind in found:
                if not issubclass(kind, kinds):
                    known = ", ".join(known.__name__ for known in kinds)
                    raise TypeError(f"expected a list of messages ({known}), got one that holds {kind.__name__}")
        return list(answer)

    return check


def _messages(answer: Any) -> list[AgentMessage]:
    messages = [answer] if isinstance(answer, _MESSAGES) else answer
    if not isinstance(messages, Iterable) or isinstance(messages, str):
        raise TypeError(f"expected messages, got {_kind(answer)}")
    found: list[AgentMessage] = _list_of(*_MESSAGES)(list(messages))
    return found


def _stream(answer: Any) -> Any:
    if not hasattr(type(answer), "__aiter__"):
        raise TypeError(f"expected a stream of events, got {_kind(answer)}")
    return answer


def _headers(answer: Any) -> dict[str, str | None]:
    if not isinstance(answer, Mapping):
        raise TypeError(f"expected a mapping of headers, got {_kind(answer)}")
    for name, value in answer.items():
        if not isinstance(name, str) or not isinstance(value, str | None):
            raise TypeError(f"expected texts as headers, got {name!r}: {value!r}")
    return dict(answer)


def _outcome(answer: Any) -> Any:
    match answer:
        case (ToolResult(), bool()):
            return answer
    raise TypeError(
        f"a wrapper gives what proceed() or yield gave, a ToolResult and whether it is an error; got {_kind(answer)}"
    )


def _payload(answer: Any) -> Any:
    if answer is None:
        raise TypeError("expected a payload, got None: a wrapper returns what counts")
    return answer


def _fields(record: Any, **kinds: type) -> None:
    """Check the fields of a record that have a value."""
    for name, kind in kinds.items():
        value = getattr(record, name)
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"{_kind(record)}.{name}: expected {kind.__name__}, got {_kind(value)}")


def _verdict(answer: Any) -> Any:
    if isinstance(answer, Block):
        _fields(answer, reason=str, terminate=bool)
        return answer
    return _one(Block, ReplaceArguments)(answer)


def _patch(answer: Any) -> Any:
    _fields(_one(ToolResultPatch)(answer), usage=Usage, is_error=bool, terminate=bool)
    return answer


def _update(answer: Any) -> Any:
    _fields(_one(TurnUpdate)(answer), context=AgentContext, model=Model)
    level, context = answer.thinking_level, answer.context
    if level is not None and level not in _THINKING_LEVELS:
        raise TypeError(f"TurnUpdate.thinking_level: expected {' or '.join(_THINKING_LEVELS)}, got {level!r}")
    if answer.messages is not None:
        _list_of(*_MESSAGES)(answer.messages)
    if context is not None:
        _fields(context, system_prompt=str, tools=Sequence)
        _list_of(*_MESSAGES)(context.messages)
        for tool in context.tools:
            _one(Tool)(tool)
    return answer


def _or_none(check: Check) -> Check:
    return lambda answer: None if answer is None else check(answer)


def _kind(answer: Any) -> str:
    return "None" if answer is None else type(answer).__name__


_ANSWERS: Final[Mapping[str, Check]] = {
    "resolve_model": _one(Model),
    "steering_messages": _messages,
    "follow_up_messages": _messages,
    "transform_context": _list_of(*_MESSAGES),
    "convert_to_llm": _list_of(*_FOR_MODELS),
    "get_api_key": _one(str),
    "stream": _stream,
    "provider_headers": _headers,
    "before_tool_call": _verdict,
    "execute_tool": _one(ToolResult),
    "after_tool_call": _patch,
    "prepare_next_turn": _update,
}
_WRAPPED: Final[Mapping[str, Check]] = {
    **_ANSWERS,
    **{
        hook: _or_none(_ANSWERS[hook])
        for hook in ("resolve_model", "convert_to_llm", "get_api_key", "prepare_next_turn")
    },
    "provider_payload": _payload,
    "after_tool_call": _outcome,
}
