"""A session as people read it: one item for each entry that says something, in the order of the present branch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pi_core import (
    AgentMessage,
    AssistantMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultMessage,
    UserMessage,
)

from .bodies import BranchSummary, Compaction, CustomText, ModelChange, SessionName, ThinkingLevelChange
from .entries import Entry

PartKind: TypeAlias = Literal["text", "thinking", "code", "image", "error"]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of an item.

    :param kind: ``text`` is Markdown, ``code`` is shown as it is.
    :param image: of kind ``image``.
    """

    kind: PartKind
    text: str = ""
    image: ImageContent | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """What one entry says.

    :param kind: ``user``, ``assistant``, ``tool``, ``summary``, ``note`` or ``other``.
    :param title: who or what it is.
    """

    entry: Entry
    kind: str
    title: str
    parts: list[Part] = field(default_factory=list)


def items(path: Iterable[Entry]) -> Iterator[Item]:
    """Return what the entries of a path say. Nothing is left out because the model does not read it."""
    for entry in path:
        body = entry.body
        if entry.message is not None:
            item = _message(entry, entry.message)
            if item is not None:
                yield item
        elif isinstance(body, Compaction):
            yield Item(entry, "summary", "Summary of what was before", [Part("text", body.summary)])
        elif isinstance(body, BranchSummary):
            yield Item(entry, "summary", "Summary of a branch that was left", [Part("text", body.summary)])
        elif isinstance(body, CustomText):
            if body.display:
                yield Item(entry, "other", body.custom_type, list(_blocks(body.content)))
        elif isinstance(body, ModelChange):
            yield Item(entry, "note", f"Model: {body.provider}/{body.model_id}")
        elif isinstance(body, ThinkingLevelChange):
            yield Item(entry, "note", f"Thinking level: {body.thinking_level}")
        elif isinstance(body, SessionName) and body.name:
            yield Item(entry, "note", f"Name: {body.name}")


def _message(entry: Entry, message: AgentMessage) -> Item | None:
    if isinstance(message, UserMessage):
        return Item(entry, "user", "User", list(_blocks(message.content)))
    if isinstance(message, AssistantMessage):
        parts = list(_blocks(message.content))
        if message.error_message:
            parts.append(Part("error", message.error_message))
        return Item(entry, "assistant", f"{message.provider}/{message.model}", parts)
    if isinstance(message, ToolResultMessage):
        parts = [Part("error" if message.is_error else "code", one.text, one.image) for one in _blocks(message.content)]
        return Item(entry, "tool", f"Result of {message.tool_name}", [_as_image(part) for part in parts])
    if message.role == "system":
        return None
    return Item(entry, "other", message.role, [Part("text", message.to_text())])


def _as_image(part: Part) -> Part:
    return part if part.image is None else Part("image", part.text, part.image)


def _blocks(content: str | Sequence[Any]) -> Iterator[Part]:
    blocks: Sequence[Any] = [TextContent(text=content)] if isinstance(content, str) else content
    for block in blocks:
        if isinstance(block, dict):
            yield Part("text" if block.get("type") == "text" else "code", str(block.get("text") or json.dumps(block)))
        elif isinstance(block, TextContent):
            yield Part("text", block.text)
        elif isinstance(block, ThinkingContent):
            if block.thinking:
                yield Part("thinking", block.thinking)
        elif isinstance(block, ImageContent):
            yield Part("image", block.mime_type, block)
        elif isinstance(block, ToolCallContent):
            yield Part("code", f"{block.name} {json.dumps(block.arguments, ensure_ascii=False, indent=2)}")
        else:
            yield Part("code", json.dumps(block.to_json(), ensure_ascii=False))
