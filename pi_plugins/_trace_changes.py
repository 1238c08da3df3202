"""What an implementation changed, as bounded JSON without secrets, and a trace as lines to read."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from pi_core import UNSET, HookTrace, Kind, contract_of, hookspecs

from .config.secrets import MASK, is_secret_name, without_secrets

_MOST_ITEMS = 20


def change(trace: HookTrace, max_chars: int) -> Any:
    """Return what the answer of an implementation changes; ``None`` when it changes nothing."""
    if trace.answer is None or hasattr(trace.answer, "__aiter__"):
        return None
    contract = contract_of(getattr(hookspecs, trace.hook, None))
    if trace.wrapper or contract is None or contract.kind is not Kind.CHAIN or trace.hook not in _FOLDED:
        return _named(trace.hook, trace.answer, max_chars)
    before = next(iter(trace.arguments.values()), None)
    return _difference(before, trace.answer, max_chars)


_FOLDED = frozenset({"transform_context", "provider_headers", "provider_payload"})


def _difference(before: Any, after: Any, max_chars: int) -> Any:
    if isinstance(before, list) and isinstance(after, list):
        kept = {id(item) for item in before}
        left = {id(item) for item in after}
        removed = [shown(item, max_chars) for item in before if id(item) not in left]
        added = [shown(item, max_chars) for item in after if id(item) not in kept]
        if not removed and not added:
            return None if len(before) == len(after) else {"items": [len(before), len(after)]}
        return {"removed": _few(removed), "added": _few(added)}
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        changed = {}
        for name in [*before, *(name for name in after if name not in before)]:
            old, new = before.get(name, UNSET), after.get(name, UNSET)
            if old is not new and old != new:
                changed[name] = [_named(name, old, max_chars), _named(name, new, max_chars)]
        return changed or None
    return None if before is after or before == after else [shown(before, max_chars), shown(after, max_chars)]


def _few(items: list[Any]) -> list[Any]:
    return items if len(items) <= _MOST_ITEMS else [*items[:_MOST_ITEMS], f"... and {len(items) - _MOST_ITEMS} more"]


def _named(name: str, value: Any, max_chars: int) -> Any:
    if value is UNSET:
        return None
    return MASK if value is not None and is_secret_name(name) else shown(value, max_chars)


def shown(value: Any, max_chars: int, depth: int = 6) -> Any:
    """Return a value as JSON that may be shown: secrets masked, texts cut, and not too deep."""
    if isinstance(value, str):
        text = without_secrets(value)
        return text if len(text) <= max_chars else f"{text[:max_chars]}... ({len(text)} characters)"
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth == 0:
        return "..."
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="python", by_alias=True, exclude_none=True)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        value = {name: item for name, item in fields if item is not None and item is not UNSET}
    if isinstance(value, Mapping):
        items = [(str(name), item) for name, item in list(value.items())[:_MOST_ITEMS]]
        return {
            name: MASK if item is not None and is_secret_name(name) else shown(item, max_chars, depth - 1)
            for name, item in items
        }
    if isinstance(value, list | tuple):
        return _few([shown(item, max_chars, depth - 1) for item in value[: _MOST_ITEMS + 1]])
    return shown(f"<{type(value).__name__}>", max_chars)


def timeline(path: Path, *, only_changes: bool = False) -> Iterator[str]:
    """Yield a trace as lines to read; a damaged line is named and passed over."""
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                entry = json.loads(line)
                text = _row(entry)
            except (ValueError, TypeError, KeyError) as error:
                yield f"line {number} is damaged: {error}"
                continue
            if not only_changes or "changed" in entry or "error" in entry:
                yield text


def _row(entry: Mapping[str, Any]) -> str:
    wrapper = " (wrapper)" if entry.get("wrapper") else ""
    row = f"{entry['at']:>12.3f} ms  {entry['hook']:<24} {entry['plugin']:<20} {entry['ms']:>10.3f} ms{wrapper}"
    if "error" in entry:
        return f"{row}\n{'':>16}raised {entry['error']}"
    if "changed" in entry:
        return f"{row}\n{'':>16}{json.dumps(entry['changed'], ensure_ascii=False)}"
    return row
