"""The history as one API accepts it.

Every request is built from the same messages, whichever model wrote them. What a target would refuse is made right
here, on copies: calls and results that lost each other, messages of failed responses, thinking and signatures of
another model, call ids of another provider, images for a model that cannot see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pi_core import (
    AssistantMessage,
    ImageContent,
    Message,
    Model,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultMessage,
    UserMessage,
)

from ._text import short_hash

NO_RESULT: Final = "No result provided"
_USER_IMAGE: Final = "(image omitted: model does not support images)"
_TOOL_IMAGE: Final = "(tool image omitted: model does not support images)"


def _unchanged(call_id: str) -> str:
    return call_id


@dataclass(frozen=True, slots=True)
class HistoryRules:
    """What one API accepts.

    :param legal_id: the form of a call id that came from another model; ids the same model gave stay as they are.
    :param id_limit: most characters of an id that has to be made up because another call has the same one.
    :param call_part: the part of an id by which the target tells calls apart.
    """

    legal_id: Callable[[str], str] = _unchanged
    id_limit: int = 64
    call_part: Callable[[str], str] = _unchanged


def prepare_history(messages: Sequence[Message], model: Model, rules: HistoryRules | None = None) -> list[Message]:
    """Return the messages to build a request from.

    Afterwards every call is directly followed by exactly one result, every result has its call, and no two calls share
    an id. A call without a result got an error result; a result without its call is left out.

    :param messages: the history; nothing of it is changed.
    :param model: the target.
    """
    sees = "image" in model.input
    ids = _CallIds(messages, model, rules or HistoryRules())
    prepared: list[Message] = []
    for message, results in _turns(messages):
        if isinstance(message, AssistantMessage):
            if message.stop_reason in ("error", "aborted"):
                continue
            content, new_ids = _assistant_content(message, model, ids)
            prepared.append(message.model_copy(update={"content": content}))
            answered = _pair(message.tool_calls, new_ids, results)
            prepared.extend(result if sees else _without_images(result, _TOOL_IMAGE) for result in answered)
        elif isinstance(message, UserMessage):
            prepared.append(message if sees else _without_images(message, _USER_IMAGE))
    return prepared


def same_model(message: AssistantMessage, model: Model) -> bool:
    """Return whether the target itself wrote a message: same provider, API and model."""
    return (message.provider, message.api, message.model) == (model.provider, model.api, model.id)


def has_tool_traffic(messages: Iterable[Message]) -> bool:
    """Return whether a history has calls or results."""
    return any(
        isinstance(message, ToolResultMessage) or (isinstance(message, AssistantMessage) and message.tool_calls)
        for message in messages
    )


def _turns(messages: Sequence[Message]) -> Iterable[tuple[Message, list[ToolResultMessage]]]:
    """Each message but results; an assistant message comes with the results up to the next one.

    A user message between a call and its result thus ends up behind the result.
    """
    turns: list[tuple[Message, list[ToolResultMessage]]] = []
    results: list[ToolResultMessage] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            results.append(message)
            continue
        if isinstance(message, AssistantMessage):
            results = []
            turns.append((message, results))
        else:
            turns.append((message, []))
    return turns


def _assistant_content(message: AssistantMessage, model: Model, ids: _CallIds) -> tuple[list[Any], list[str]]:
    own = same_model(message, model)
    content: list[Any] = []
    new_ids: list[str] = []
    for block in message.content:
        if isinstance(block, ToolCallContent):
            new_ids.append(ids.assign(block.id, own))
            changes: dict[str, Any] = {"id": new_ids[-1]} if new_ids[-1] != block.id else {}
            if not own and block.thought_signature is not None:
                changes["thought_signature"] = None
            content.append(block.model_copy(update=changes) if changes else block)
        elif isinstance(block, ThinkingContent):
            if own and (block.redacted or block.thinking_signature or block.thinking.strip()):
                content.append(block)
        elif isinstance(block, TextContent):
            foreign = not own and block.text_signature is not None
            content.append(block.model_copy(update={"text_signature": None}) if foreign else block)
    return content, new_ids


def _pair(
    calls: Sequence[ToolCallContent], new_ids: Sequence[str], results: Sequence[ToolResultMessage]
) -> list[ToolResultMessage]:
    """One result per call in the order of the calls; calls that share an id take theirs in turn."""
    left = list(results)
    paired = []
    for call, new_id in zip(calls, new_ids, strict=True):
        position = next((at for at, result in enumerate(left) if result.tool_call_id == call.id), None)
        if position is None:
            content: list[Any] = [TextContent(text=NO_RESULT)]
            paired.append(
                ToolResultMessage(tool_call_id=new_id, tool_name=call.name, content=content, is_error=True, timestamp=0)
            )
            continue
        result = left.pop(position)
        paired.append(result if new_id == call.id else result.model_copy(update={"tool_call_id": new_id}))
    return paired


def _without_images(message: Any, placeholder: str) -> Any:
    if isinstance(message.content, str) or not any(isinstance(block, ImageContent) for block in message.content):
        return message
    content: list[Any] = []
    in_run = False
    for block in message.content:
        is_image = isinstance(block, ImageContent)
        if not is_image:
            content.append(block)
        elif not in_run:
            content.append(TextContent(text=placeholder))
        in_run = is_image
    return message.model_copy(update={"content": content})


class _CallIds:
    """Gives each call of a request an id the target accepts, the same ones for the same history every time."""

    def __init__(self, messages: Sequence[Message], model: Model, rules: HistoryRules) -> None:
        self._rules = rules
        self._taken: set[str] = set()
        self._kept = {
            rules.call_part(call.id)
            for message in messages
            if isinstance(message, AssistantMessage) and same_model(message, model)
            for call in message.tool_calls
        }

    def assign(self, call_id: str, own: bool) -> str:
        new_id = call_id if own else self._rules.legal_id(call_id)
        part = self._rules.call_part(new_id)
        if not part or part in self._taken or (not own and part in self._kept):
            new_id = part = self._distinct(part, call_id)
        self._taken.add(part)
        return new_id

    def _distinct(self, part: str, call_id: str) -> str:
        attempt = 1
        while True:
            attempt += 1
            tail = f"_{short_hash(f'{call_id}#{attempt}')[:8]}"
            candidate = part[: self._rules.id_limit - len(tail)] + tail
            if candidate not in self._taken and candidate not in self._kept:
                return candidate
