"""The history as input items of the responses API."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pi_core import (
    AssistantMessage,
    Context,
    ImageContent,
    Model,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultMessage,
)

from ._grammar import free_text
from ._history import HistoryRules, prepare_history, same_model
from ._images import ImageRules, omit_images
from ._text import clean, short_hash

HOSTED_ITEMS: Final = "hostedItems"
"""The field of a message with the items that tools of the server left in it, each with how many blocks precede it."""

_ID_LIMIT: Final = 64
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]")
_PAIRED: Final = frozenset({"openai", "openai-codex", "opencode"})
_PHASES: Final = frozenset({"commentary", "final_answer"})
_NO_OUTPUT: Final = "(no tool output)"
_IMAGES: Final = ImageRules(
    types=("image/jpeg", "image/png", "image/gif", "image/webp"),
    max_size=50 << 20,
    max_per_request=500,
    max_request_bytes=50 << 20,
)


@dataclass(frozen=True, slots=True)
class InputRules:
    """How items are made.

    :param grammar_tools: for tools whose argument is one free text: the name of that argument, by tool.
    :param effort: how much the model shall think about this answer, for models that are told so between the items.
    :param plain: leave out reasoning and the ids of items; a server that cannot read them refuses the request.
    """

    grammar_tools: Mapping[str, str]
    effort: str | None = None
    plain: bool = False


def build_input(context: Context, model: Model, rules: InputRules, *, system_role: str) -> list[dict[str, Any]]:
    """Return the input items of a request."""
    legal = HistoryRules(lambda call_id: legal_id(call_id, model), _ID_LIMIT, call_part)
    prepared = omit_images(prepare_history(context.messages, model, legal), model, _IMAGES)
    items: list[dict[str, Any]] = []
    if context.system_prompt:
        items.append({"role": system_role, "content": clean(context.system_prompt)})
    maker = _Maker(model, rules)
    for message in prepared:
        if isinstance(message, ToolResultMessage):
            items.append(maker.result(message))
        elif isinstance(message, AssistantMessage):
            items += maker.assistant(message)
        elif content := _user(message.content):
            items.append({"role": "user", "content": content})
            maker.position += 1
    if rules.effort is not None:
        items.append(_effort(rules.effort))
    return items


def legal_id(call_id: str, model: Model) -> str:
    """Return the form of a foreign call id that the API accepts.

    An id is ``call`` or ``call|item``. The item keeps an id of its own only at OpenAI's own servers.
    """
    call, bar, item = call_id.partition("|")
    if not bar or model.provider not in _PAIRED:
        return _safe(call_id)
    return f"{_safe(call)}|fc_{short_hash(item)}"


def call_part(call_id: str) -> str:
    """Return the part of an id that names the call."""
    return call_id.partition("|")[0]


def text_signature(item_id: str, phase: Any) -> str | None:
    """Return what a text block keeps of its item; ``None`` when there is nothing to keep."""
    known = {"phase": phase} if isinstance(phase, str) and phase in _PHASES else {}
    if not item_id and not known:
        return None
    return json.dumps({"v": 1, "id": item_id, **known}, ensure_ascii=False, separators=(",", ":"))


class _Maker:
    """Makes the items of assistant messages and results.

    :ivar position: number of the message, which names the items that have no id of their own.
    """

    def __init__(self, model: Model, rules: InputRules) -> None:
        self.position = 0
        self._model = model
        self._rules = rules
        self._ids: set[str] = set()
        self._free_text_calls: set[str] = set()

    def assistant(self, message: AssistantMessage) -> list[dict[str, Any]]:
        """Return the items of a response."""
        own = same_model(message, self._model)
        reasoning, complete = self._reasoning(message)
        # A server that remembers its ids wants the reasoning back that came with them.
        keeps_ids = complete and not self._rules.plain
        hosted = _hosted(message) if own and keeps_ids else []
        items: list[dict[str, Any]] = []
        texts = 0
        for at, block in enumerate(message.content):
            items += [item for before, item in hosted if before == at]
            if isinstance(block, ThinkingContent):
                items += [reasoning[at]] if keeps_ids and at in reasoning else []
            elif isinstance(block, TextContent):
                if block.text.strip() or block.text_signature:
                    items.append(self._text(block, texts, keeps_ids))
                texts += 1
            elif isinstance(block, ToolCallContent):
                items.append(self._call(block, message, keeps_ids))
        items += [item for before, item in hosted if before >= len(message.content)]
        items = _with_their_items(items)
        if not items:
            return []
        self.position += 1
        if self._rules.effort is not None and own and message.provider_thinking_level:
            items.insert(0, _effort(message.provider_thinking_level))
        return items

    def result(self, message: ToolResultMessage) -> dict[str, Any]:
        """Return the item of a tool result."""
        self.position += 1
        call_id = call_part(message.tool_call_id)
        kind = "custom_tool_call_output" if call_id in self._free_text_calls else "function_call_output"
        return {"type": kind, "call_id": call_id, "output": _output(message.content)}

    def _reasoning(self, message: AssistantMessage) -> tuple[dict[int, dict[str, Any]], bool]:
        """The reasoning items of a message by block, and whether they are all that it had.

        Without its encrypted or plain content an item is a mere name, which the server does not know: nothing is stored
        there.
        """
        found: dict[int, dict[str, Any]] = {}
        complete = True
        for at, block in enumerate(message.content):
            if not isinstance(block, ThinkingContent) or not block.thinking_signature:
                continue
            item = _object(block.thinking_signature)
            item_id = item.get("id")
            usable = item.get("type") == "reasoning" and bool(item.get("encrypted_content") or item.get("content"))
            if not usable or item_id in self._ids:
                complete = False
                continue
            if isinstance(item_id, str):
                self._ids.add(item_id)
            found[at] = item
        return found, complete

    def _text(self, block: TextContent, number: int, keeps_ids: bool) -> dict[str, Any]:
        item_id, phase = _signed(block.text_signature)
        if len(item_id) > _ID_LIMIT:
            item_id = f"msg_{short_hash(item_id)}"
        if not keeps_ids or not item_id or item_id in self._ids:
            item_id = f"msg_pi_{self.position}" + (f"_{number}" if number else "")
        self._ids.add(item_id)
        item: dict[str, Any] = {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": clean(block.text), "annotations": []}],
            "status": "completed",
            "id": item_id,
        }
        if phase is not None:
            item["phase"] = phase
        return item

    def _call(self, block: ToolCallContent, message: AssistantMessage, keeps_ids: bool) -> dict[str, Any]:
        call_id, _, item_id = block.id.partition("|")
        argument = self._rules.grammar_tools.get(block.name)
        made: dict[str, Any] = {"type": "function_call" if argument is None else "custom_tool_call"}
        model = self._model
        other = (message.provider, message.api) == (model.provider, model.api) and message.model != model.id
        prefix = "fc_" if argument is None else "ctc_"
        if keeps_ids and not other and item_id.startswith(prefix) and len(item_id) <= _ID_LIMIT:
            if item_id not in self._ids:
                made["id"] = item_id
            self._ids.add(item_id)
        made |= {"call_id": call_id, "name": block.name}
        if argument is None:
            arguments = json.dumps(block.arguments, ensure_ascii=False, separators=(",", ":"), default=str)
            made["arguments"] = clean(arguments)
            if block.namespace is not None and same_model(message, model):
                made["namespace"] = block.namespace
        else:
            self._free_text_calls.add(call_id)
            made["input"] = clean(free_text(block.arguments, argument))
        return made


def _with_their_items(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items without reasoning that nothing follows: the server refuses it without what it led to."""
    end = len(items)
    while end and items[end - 1].get("type") == "reasoning":
        end -= 1
    return items[:end]


def _hosted(message: AssistantMessage) -> list[tuple[int, dict[str, Any]]]:
    entries = (message.model_extra or {}).get(HOSTED_ITEMS)
    return [
        (entry["before"], entry["item"])
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict) and isinstance(entry.get("item"), dict) and isinstance(entry.get("before"), int)
    ]


def _signed(signature: str | None) -> tuple[str, str | None]:
    """Id and phase of a text's item; histories of old have the bare id."""
    known = _object(signature or "")
    if known.get("v") == 1 and isinstance(known.get("id"), str):
        phase = known.get("phase")
        return known["id"], phase if isinstance(phase, str) and phase in _PHASES else None
    return signature or "", None


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _safe(call_id: str) -> str:
    return _UNSAFE.sub("_", call_id)[:_ID_LIMIT].rstrip("_") or "call"


def _effort(word: str) -> dict[str, Any]:
    return {"type": "configuration_update", "reasoning": {"effort": word}}


def _user(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "input_text", "text": clean(content)}]
    parts = []
    for block in content:
        if isinstance(block, ImageContent):
            parts.append(_image(block))
        elif isinstance(block, TextContent):
            parts.append({"type": "input_text", "text": clean(block.text)})
    return parts


def _image(block: ImageContent) -> dict[str, Any]:
    url = f"data:{block.mime_type};base64,{block.data}"
    return {"type": "input_image", "detail": "auto", "image_url": url}


def _output(content: Sequence[Any]) -> Any:
    text = "\n".join(clean(block.text) for block in content if isinstance(block, TextContent))
    images = [_image(block) for block in content if isinstance(block, ImageContent)]
    if images:
        return [*([{"type": "input_text", "text": text}] if text else []), *images]
    return text or _NO_OUTPUT
