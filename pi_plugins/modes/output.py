"""What a run prints: the last answer, or every event as a JSON line. Diagnostics go to stderr."""

from __future__ import annotations

import datetime
import json
import os
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import click

from pi_core import (
    Agent,
    AgentEvent,
    AssistantMessage,
    ConfigError,
    MessageUpdateEvent,
    TextContent,
    ToolCallStartEvent,
)

TRUNCATED = "The answer was cut: the model reached its output token limit."
EMPTY = "The model gave no answer."


class Output(Protocol):
    """How a mode prints a run."""

    def begin(self) -> None:
        """Called before the first prompt."""

    def on_event(self, event: AgentEvent, signal: Any) -> None:
        """Called with every event."""

    def finish(self) -> int:
        """Called after the last prompt; returns the exit code."""


def judge(agent: Agent) -> tuple[int, str]:
    """Return the exit code of a finished run and, if it is not 0, why."""
    last = _last_answer(agent)
    if last is None:
        return (1, agent.state.error_message or EMPTY)
    if last.stop_reason in ("error", "aborted"):
        return (1, last.error_message or last.stop_reason)
    if last.stop_reason == "length":
        return (1, TRUNCATED)
    return (0, "") if last.text.strip() else (1, EMPTY)


def _last_answer(agent: Agent) -> AssistantMessage | None:
    last = agent.state.messages[-1] if agent.state.messages else None
    return last if isinstance(last, AssistantMessage) else None


class PrintOutput:
    """Prints the text of the last answer."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def begin(self) -> None:
        """Print nothing."""

    def on_event(self, event: AgentEvent, signal: Any) -> None:
        """Print nothing while the run goes on."""

    def finish(self) -> int:
        """Print the answer, and what is wrong with it on stderr."""
        last = _last_answer(self._agent)
        texts = [block.text for block in last.content if isinstance(block, TextContent)] if last is not None else []
        if not _write("".join(text + "\n" for text in texts if text)):
            return 0
        code, why = judge(self._agent)
        if why:
            click.echo(f"pi: {why}", err=True)
        return code


class JsonOutput:
    """Prints a header, then every event as one line of JSON; updates carry only what is new.

    A reader that goes away ends the run: nobody would see the rest.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._read = True

    def begin(self) -> None:
        """Print the header."""
        now = datetime.datetime.now(datetime.UTC)
        self._line(
            {
                "type": "session",
                "version": 3,
                "id": str(uuid.uuid4()),
                "timestamp": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "cwd": str(Path.cwd()),
            }
        )

    def on_event(self, event: AgentEvent, signal: Any) -> None:
        """Print the event."""
        self._line(update_json(event) if isinstance(event, MessageUpdateEvent) else event.to_json())

    def finish(self) -> int:
        """Print what is wrong with the answer on stderr."""
        last = _last_answer(self._agent)
        self._line({"type": "agent_settled", "aborted": last is not None and last.stop_reason == "aborted"})
        if not self._read:
            return 0
        code, why = judge(self._agent)
        if why:
            click.echo(f"pi: {why}", err=True)
        return code

    def _line(self, data: Mapping[str, Any]) -> None:
        line = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        # Half a surrogate pair has no UTF-8; its backslash form is the JSON escape.
        if self._read and not _write(line + "\n", "backslashreplace"):
            self._read = False
            self._agent.abort()


def update_json(event: MessageUpdateEvent) -> dict[str, Any]:
    """Return an update without the message so far: its delta, and id and name where a call starts."""
    update = event.assistant_message_event
    data = update.to_json()
    if isinstance(update, ToolCallStartEvent):
        data |= {"id": update.id, "toolName": update.name}
    return {"type": event.type, "assistantMessageEvent": data}


def _write(text: str, errors: str = "replace") -> bool:
    """Write to stdout at once; ``False`` when its reader has gone away.

    :param errors: what becomes of characters without a UTF-8 form.
    :raises ConfigError: there is no stdout, or it takes nothing.
    """
    if sys.stdout is None:
        raise ConfigError("There is no standard output to write to")
    try:
        sys.stdout.buffer.write(text.encode("utf-8", errors))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _drop_output()
        return False
    except OSError as error:
        _drop_output()
        raise ConfigError(f"The standard output cannot be written: {error.strerror}") from error
    return True


def _drop_output() -> None:
    # What is still buffered would fail again when the process ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
