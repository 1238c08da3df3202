"""The lines of a session file: objects to bytes, and bytes to objects, damaged ones among them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from pydantic_core import PydanticSerializationError, from_json

from pi_core import WireModel

Found: TypeAlias = tuple[int, dict[str, Any] | None, str | None]
"""Number of a line, a record in it, and what is wrong with the line."""

_START: Final = re.compile(rb'\{\s*"type"\s*:\s*"[^"\\]*"\s*,\s*"(?:version"|id"\s*:\s*"[^"\\]*"\s*,\s*"parentId")\s*:')
_JUNK: Final = b"\0 \t\r\n"
_BOM: Final = b"\xef\xbb\xbf"


def encode(record: Mapping[str, Any]) -> bytes:
    """Return the line of a record, with its end.

    Halves of surrogate pairs become U+FFFD, since UTF-8 has no form for them, and numbers that JSON does not know
    become null.
    """
    try:
        text = _dump(record)
    except ValueError:
        text = _dump(_finite(record))
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return _whole(text).encode() + b"\n"


def json_of(model: WireModel) -> dict[str, Any]:
    """Return the JSON form of an object, also of one with halves of surrogate pairs in the keys of a mapping."""
    try:
        return model.to_json()
    except PydanticSerializationError:
        text = json.dumps(model.model_dump(exclude_none=True), ensure_ascii=False, default=str)
        return cast("dict[str, Any]", json.loads(_whole(text)))


def decode(data: bytes) -> Iterator[Found]:
    """Return the records of a file, line by line; empty lines have none.

    Of a damaged line every whole record is found: one after a torn one, after NUL bytes, or two in one line.
    """
    for number, line in enumerate(data.removeprefix(_BOM).split(b"\n"), 1):
        if not line or line.isspace():
            continue
        try:
            record = from_json(line)
        except ValueError:
            yield from _damaged(number, line)
            continue
        if isinstance(record, dict):
            yield number, record, None
        else:
            yield number, None, "is no JSON object; it is skipped"


def first_record(line: bytes) -> dict[str, Any] | None:
    """Return the record in the first line of a file; ``None`` if it is none."""
    return _lenient(line.removeprefix(_BOM))


def _damaged(number: int, line: bytes) -> Iterator[Found]:
    whole = _lenient(line)
    if whole is not None:
        yield number, whole, None
        return
    starts = [0, *(match.start() for match in _START.finditer(line))]
    pieces = [line[start:end] for start, end in zip(starts, [*starts[1:], len(line)], strict=True) if start < end]
    found = [record for record in map(_lenient, pieces) if record is not None]
    lost = len(pieces) - len(found)
    text = "is damaged and skipped" if not found else "holds more than one record" if not lost else "is damaged"
    saved = f"; {len(found)} whole record{'s' * (len(found) > 1)} in it {'are' if len(found) > 1 else 'is'} used"
    yield number, None, text + saved * bool(found)
    for record in found:
        yield number, record, None


def _lenient(piece: bytes) -> dict[str, Any] | None:
    """Read what strict JSON refuses: halves of surrogate pairs, bytes that are not UTF-8, NUL bytes around it."""
    try:
        record = json.loads(piece.strip(_JUNK).decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    return cast("dict[str, Any]", json.loads(_whole(json.dumps(record, ensure_ascii=False))))


def _dump(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _whole(text: str) -> str:
    """Return text that UTF-8 can hold."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
