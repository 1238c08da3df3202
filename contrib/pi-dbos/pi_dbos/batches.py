"""Batches: a run for each line of a JSONL file."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pi_core import AgentMessage, ConfigError, parse_message, user_message

from ._locks import LockedBuild
from .runs import Runs

_POLL_SECONDS: Final = 0.5
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Task:
    """A line of the file.

    :param name: unique in the file; the number of its line by default.
    :param model: in place of the build's.
    """

    name: str
    messages: list[AgentMessage]
    model: str | None = None


def read_tasks(path: Path) -> list[Task]:
    """Read the tasks of a JSONL file.

    A line is a text, or an object with ``prompt`` (a text) or ``messages``, and perhaps ``id`` and ``model``.

    :raises ConfigError: the file cannot be read, or a line is wrong; names it.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    found = [_task(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise ConfigError(f"{path} has no line with a task")
    for name, count in Counter(task.name for task in found).items():
        if count > 1:
            raise ConfigError(f"{path}: the id '{name}' is there {count} times")
    return found


def start_batch(runs: Runs, name: str, tasks: list[Task], build: LockedBuild) -> list[str]:
    """Start a run for each task and return the ids; those that were started before under this name stay what they are.

    :param name: of the batch; the ids begin with it.
    :raises ConfigError: the name has other characters than letters, digits, dots, dashes and underscores.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(f"The name of a batch has letters, digits, dots, dashes and underscores, got '{name}'")
    return [runs.start(task.messages, build, run_id=f"{name}:{task.name}", model=task.model) for task in tasks]


def watch_batch(runs: Runs, name: str, report: Callable[[Counter[str]], None]) -> Counter[str]:
    """Report how many runs of a batch are in which state until all have ended, and return that.

    :param report: called at first and after each change.
    """
    before: Counter[str] | None = None
    while True:
        found = runs.find(prefix=f"{name}:")
        states: Counter[str] = Counter(run.state for run in found)
        if states != before:
            report(states)
            before = states
        if all(run.over for run in found):
            return states
        time.sleep(_POLL_SECONDS)


def _task(path: Path, number: int, line: str) -> Task:
    try:
        data: Any = json.loads(line)
    except ValueError as error:
        raise ConfigError(f"{path}, line {number} is not JSON: {error}") from None
    if isinstance(data, str):
        data = {"prompt": data}
    if not isinstance(data, dict):
        raise ConfigError(f"{path}, line {number}: expected a text or an object, got {type(data).__name__}")
    if unknown := sorted(set(data) - {"id", "prompt", "messages", "model"}):
        raise ConfigError(f"{path}, line {number}: unknown key '{unknown[0]}'; there are id, prompt, messages, model")
    for key in ("id", "prompt", "model"):
        if not isinstance(data.get(key, ""), str):
            raise ConfigError(f"{path}, line {number}, {key}: expected a text")
    return Task(data.get("id") or str(number), list(_messages(path, number, data)), data.get("model"))


def _messages(path: Path, number: int, data: dict[str, Any]) -> Iterator[AgentMessage]:
    given = data.get("messages")
    if (given is None) == ("prompt" not in data):
        raise ConfigError(f"{path}, line {number}: give either prompt or messages")
    if given is None:
        yield user_message(data["prompt"])
        return
    if not isinstance(given, list) or not given:
        raise ConfigError(f"{path}, line {number}, messages: expected a list with a message")
    for position, message in enumerate(given):
        try:
            yield parse_message(message)
        except (AttributeError, ValueError) as error:
            raise ConfigError(f"{path}, line {number}, messages[{position}] is no message: {error}") from None
