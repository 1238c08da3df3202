"""What a run prints: the last answer, or every event as a JSON line. Diagnostics go to stderr."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Protocol

import click

from pi_core import AssistantMessage, ConfigError, MessageEndEvent, TextContent
from pi_plugins.coding_agent import AgentSession, SessionEvent, event_json
from pi_plugins.coding_agent.events import NoticeEvent

from ._stdout import json_line, write_all

TRUNCATED = "The answer was cut: the model reached its output token limit."
EMPTY = "The model gave no answer."


class Output(Protocol):
    """How a mode prints the runs of a session."""

    def begin(self) -> None:
        """Called before the first prompt."""

    def on_event(self, event: SessionEvent) -> None:
        """Called with every event."""

    def finish(self) -> int:
        """Called after the last prompt; returns the exit code."""


class _Judge:
    """Remembers the last answer, and says what the exit code is.

    Where no model was asked it is that of the commands: 1 if one of them failed.
    """

    def __init__(self, session: AgentSession) -> None:
        self.session = session
        self.last: AssistantMessage | None = None
        self.asked = False
        self.failed = False

    def see(self, event: SessionEvent) -> None:
        """Take note of an event."""
        if event.type == "agent_start":
            self.asked, self.last = True, None
        elif isinstance(event, MessageEndEvent) and isinstance(event.message, AssistantMessage):
            self.last = event.message
        elif isinstance(event, NoticeEvent) and event.level == "error":
            self.failed = True

    def verdict(self) -> tuple[int, str]:
        """Return the exit code and, if it is not 0, why."""
        last = self.last
        if not self.asked:
            return int(self.failed), ""
        if last is None:
            return 1, self.session.agent.state.error_message or EMPTY
        if last.stop_reason in ("error", "aborted"):
            return 1, last.error_message or last.stop_reason
        if last.stop_reason == "length":
            return 1, TRUNCATED
        return (0, "") if last.text.strip() else (1, EMPTY)

    def finish(self) -> int:
        """Say on stderr what is wrong with the answer, and return the exit code."""
        code, why = self.verdict()
        if why:
            click.echo(f"pi: {why}", err=True)
        return code


class PrintOutput:
    """Prints the text of the last answer; what plugins and commands tell the user goes to stderr."""

    def __init__(self, session: AgentSession) -> None:
        self._judge = _Judge(session)

    def begin(self) -> None:
        """Print nothing."""

    def on_event(self, event: SessionEvent) -> None:
        """Print what the user should read at once."""
        self._judge.see(event)
        match event.type:
            case "extension_error":
                click.echo(f"pi: plugin '{event.plugin}', hook {event.hook}: {event.error}", err=True)  # type: ignore[union-attr]
            case "notice":
                click.echo(event.text, err=event.level != "info")  # type: ignore[union-attr]

    def finish(self) -> int:
        """Print the answer, and what is wrong with it on stderr."""
        last = self._judge.last
        blocks = [] if last is None else [block.text for block in last.content if isinstance(block, TextContent)]
        if sys.stdout is None:
            raise ConfigError("There is no standard output to write to")
        text = "".join(text + "\n" for text in blocks if text)
        if not write_all(sys.stdout.fileno(), text.encode("utf-8", "replace")):
            return 0
        return self._judge.finish()


class JsonOutput:
    """Prints a header, then every event as one line of JSON; updates carry only what is new.

    A reader that goes away ends the run: nobody would see the rest.

    :param descriptor: where the lines go.
    """

    def __init__(self, session: AgentSession, descriptor: int) -> None:
        self._judge = _Judge(session)
        self._session = session
        self._descriptor = descriptor
        self._read = True

    def begin(self) -> None:
        """Print the header."""
        self._line(self._session.store.header.to_json())

    def on_event(self, event: SessionEvent) -> None:
        """Print the event."""
        self._judge.see(event)
        self._line(event_json(event))

    def finish(self) -> int:
        """Print what is wrong with the answer on stderr."""
        return self._judge.finish() if self._read else 0

    def _line(self, data: Mapping[str, Any]) -> None:
        if self._read and not write_all(self._descriptor, json_line(data)):
            self._read = False
            self._session.abort()
