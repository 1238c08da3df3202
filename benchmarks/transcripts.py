"""Session files: reading one of ``n`` messages beside parsing its lines, and adding ``n`` messages to one."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pi_core import AgentMessage, AssistantMessage, TextContent, ToolCallContent, ToolResultMessage, Usage, user_message
from pi_plugins.sessions import Session

from .work import Work


def talk(n: int) -> list[AgentMessage]:
    """Return ``n`` messages: prompts, calls, results and answers in turn."""
    made = {"api": "openai-completions", "provider": "local", "model": "m", "usage": Usage(input=100, output=5)}
    call = ToolCallContent(id="call_1", name="bash", arguments={"command": "git status --short"})
    text = TextContent(text="Working on it: the tests come next. " * 3)
    pattern: list[AgentMessage] = [
        user_message("run the tests and tell me what fails " * 4),
        AssistantMessage.model_validate({**made, "content": [text, call], "stop_reason": "toolUse"}),
        ToolResultMessage(tool_call_id="call_1", tool_name="bash", content=[TextContent(text=" M a.py\n" * 20)]),
        AssistantMessage.model_validate({**made, "content": [text]}),
    ]
    return [pattern[number % 4] for number in range(n)]


def _written(n: int) -> tuple[Path, Path]:
    folder = Path(tempfile.mkdtemp(prefix="pi-benchmark-"))
    with Session.create("/work", directory=folder) as session:
        for message in talk(n):
            session.append_message(message)
    assert session.path is not None
    return folder, session.path


def _removing(folder: Path) -> Callable[[], Any]:
    async def close() -> None:
        shutil.rmtree(folder)

    return close


def read(n: int) -> Work:
    """Open a session of ``n`` messages and ask what the model reads of it."""
    folder, path = _written(n)
    found: list[int] = []

    async def run() -> None:
        found.append(len(Session.open(path, read_only=True).projection().messages))

    def check() -> None:
        assert found[-1] >= n, found

    return Work(run, check, warm_ups=1, repeat=3, close=_removing(folder))


def lines(n: int) -> Work:
    """Read the file of such a session and parse each line."""
    folder, path = _written(n)
    found: list[int] = []

    async def run() -> None:
        with path.open("rb") as file:
            found.append(len([json.loads(line) for line in file]))

    def check() -> None:
        assert found[-1] == n + 1, found

    return Work(run, check, warm_ups=1, repeat=3, close=_removing(folder))


def append(n: int) -> Work:
    """Add ``n`` messages to a new session, each of them written before the next."""
    folder = Path(tempfile.mkdtemp(prefix="pi-benchmark-"))
    messages = talk(n)
    made: list[Session] = []

    async def run() -> None:
        session = Session.create("/work", directory=folder)
        made.append(session)
        for message in messages:
            session.append_message(message)
        session.close()

    def check() -> None:
        assert len(made[-1].entries) == n, len(made[-1].entries)

    return Work(run, check, warm_ups=1, close=_removing(folder))


CASES = {"read": read, "lines": lines, "append": append}
