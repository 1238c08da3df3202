"""A plugin whose model plays a script that waits where the test says so: for files that the test makes.

The script is a JSON list of replies; a reply is a list of steps: ``{"text"}``, ``{"thinking"}``,
``{"call", "arguments"}``, ``{"gate": NAME}``, which waits for the file ``NAME``,
``{"repeat", "times", "burst", "pause"}`` and ``{"error", "status"}``. A text may be a list of parts that are streamed,
gates among them.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from pi_core import (
    Context,
    ErrorDetails,
    MessageAssembler,
    Model,
    StreamEvent,
    StreamOptions,
    Usage,
    hookimpl,
)

_PROVIDER, _, _ID = os.environ.get("PI_STAGE_MODEL", "stage/stage").partition("/")
MODEL = Model(
    id=_ID, name="Stage", api="stage", provider=_PROVIDER, reasoning=True, context_window=100_000, max_tokens=4096
)


class StagePlugin:
    """Registers the model ``stage/stage``, under the name of ``PI_STAGE_MODEL``."""

    api = "stage"

    def __init__(self) -> None:
        self._played = 0
        self._replies = json.loads(Path(os.environ["PI_STAGE"]).read_text(encoding="utf-8"))

    @hookimpl
    def register_providers(self) -> list[StagePlugin]:
        return [self]

    @hookimpl
    async def resolve_model(self, name: str | None) -> Model | None:
        return MODEL if name == f"{_PROVIDER}/{_ID}" else None

    async def stream(self, model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        replies = self._replies
        steps = replies[self._played] if self._played < len(replies) else [{"error": "The script is over"}]
        self._played += 1
        assembler = MessageAssembler(model.api, model.provider, model.id)
        yield assembler.start()
        called = False
        failed: StreamEvent | None = None
        for step in steps:
            if "gate" in step:
                if not await self._opened(step["gate"], options):
                    yield assembler.error("Request was aborted", aborted=True)
                    return
            elif "error" in step:
                details = ErrorDetails(status=step.get("status"))
                failed = assembler.error(step["error"], error_details=details)
            else:
                called = called or "call" in step
                async for event in self._events(assembler, step, options):
                    yield event
                if options.signal is not None and options.signal.aborted:
                    yield assembler.error("Request was aborted", aborted=True)
                    return
        usage = Usage(input=1200, output=80, total_tokens=1280)
        yield failed or assembler.done("toolUse" if called else "stop", usage=usage)

    @staticmethod
    async def _opened(name: str, options: StreamOptions) -> bool:
        while not os.path.exists(name):  # noqa: ASYNC240 - a moment only
            if options.signal is not None and options.signal.aborted:
                return False
            await asyncio.sleep(0.01)
        return True

    async def _events(
        self, assembler: MessageAssembler, step: dict[str, Any], options: StreamOptions
    ) -> AsyncIterator[StreamEvent]:
        index = assembler.next_index
        if "text" in step or "repeat" in step:
            yield assembler.text_start(index)
            for part in step["text"] if isinstance(step.get("text"), list) else [step.get("text", "")]:
                if isinstance(part, str):
                    yield assembler.text_delta(index, part)
                elif not await self._opened(part["gate"], options):
                    return
            for number in range(step.get("times", 0)):
                yield assembler.text_delta(index, step["repeat"].replace("%d", str(number)))
                if number % step.get("burst", 1) == 0:
                    await asyncio.sleep(step.get("pause", 0))
            yield assembler.text_end(index)
        elif "thinking" in step:
            yield assembler.thinking_start(index)
            yield assembler.thinking_delta(index, step["thinking"])
            yield assembler.thinking_end(index)
        else:
            yield assembler.toolcall_start(index, step.get("id") or f"call_{index}", step["call"])
            yield assembler.toolcall_delta(index, json.dumps(step.get("arguments", {})))
            yield assembler.toolcall_end(index)
