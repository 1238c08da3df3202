"""Golden event sequences: what a run is expected to tell, kept in JSON files beside the tests."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from ..events import AgentEvent, MessageUpdateEvent

_MASKED: Final = ("timestamp", "durationMs")
_DATA: Final = ("args", "arguments", "details")
_SHOWN_LINES: Final = 60


def event_records(events: Iterable[AgentEvent]) -> list[dict[str, Any]]:
    """Return the JSON form of events for comparison: times and durations are 0, updates carry only what is new.

    Arguments of calls and details of results are kept as they are.
    """
    records = []
    for event in events:
        record = event.to_json()
        if isinstance(event, MessageUpdateEvent):
            del record["message"]
        records.append(_masked(record))
    return records


def _masked(value: Any) -> Any:
    if isinstance(value, list):
        return [_masked(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: 0 if key in _MASKED else item if key in _DATA else _masked(item) for key, item in value.items()}


class Golden:
    """Compares events with those in files.

    :param folder: where the files are.
    :param name: what a file is called when nothing else is said; a second one of that test ends in ``-2``.
    :param update: write the files instead of comparing.
    """

    def __init__(self, folder: Path, name: str, *, update: bool = False) -> None:
        self.folder = folder
        self.update = update
        self._name = name
        self._unnamed = 0

    def __call__(self, events: Iterable[AgentEvent], name: str | None = None) -> None:
        """Compare events with a file.

        :param name: of the file, without ``.json``.
        :raises AssertionError: they differ, or there is no file.
        """
        if name is None:
            self._unnamed += 1
            name = self._name if self._unnamed == 1 else f"{self._name}-{self._unnamed}"
        path = self.folder / f"{name}.json"
        text = json.dumps(event_records(events), indent=1, ensure_ascii=False, sort_keys=True, default=str) + "\n"
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.is_file():
            raise AssertionError(f"there is no golden {path}; write it with: pytest --update-goldens")
        golden = path.read_text(encoding="utf-8")
        if text != golden:
            raise AssertionError(f"the events differ from {path}:\n{_difference(golden, text)}")


def _difference(golden: str, text: str) -> str:
    lines = list(difflib.unified_diff(golden.splitlines(), text.splitlines(), "golden", "this run", lineterm="", n=4))
    left_out = len(lines) - _SHOWN_LINES
    shown = lines[:_SHOWN_LINES] + ([f"... {left_out} more lines"] if left_out > 0 else [])
    return "\n".join([*shown, "when this is what you want: pytest --update-goldens"])
