"""A provider and tools for the tests of durable runs.

The provider needs no memory: what it answers follows from the prompt, a JSON object, and from how many answers are in
the context. What is asked of it and what the tools do is written to files, which outlive the process.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from pi_dbos import idempotency_key

from pi_core import (
    AbortSignal,
    AssistantMessage,
    Context,
    Model,
    StreamEvent,
    StreamOptions,
    TextContent,
    Tool,
    ToolContext,
    UserMessage,
    hookimpl,
    tool,
)
from pi_core.testing import Call, Reply, Say, ScriptedProvider

FILES = Path(os.environ.get("PI_DURABLE_SITE", "."))
SLOW_SECONDS = float(os.environ.get("PI_DURABLE_SITE_SLOW", "0"))
"""How long a tool takes before its effect, and after it."""

MODEL = Model(id="steps", name="Steps", api="steps", provider="steps")


def write(file_name: str, /, **data: Any) -> None:
    """Append a line to a file in one write, so that lines of several processes do not mix."""
    with (FILES / file_name).open("ab", buffering=0) as file:
        file.write(json.dumps({**data, "pid": os.getpid()}).encode() + b"\n")


async def stage(name: str, signal: AbortSignal | None) -> None:
    """Say where this process is, and wait there if a test wants it to."""
    if (FILES / f"hold-{name}").exists():
        write("stages.jsonl", stage=name)
        while (FILES / f"hold-{name}").exists():
            if signal is not None and signal.aborted:
                return
            await asyncio.sleep(0.01)


def note(kind: str) -> Tool:
    """Make a tool that writes a line when it takes effect."""

    async def execute(text: str, context: ToolContext) -> str:
        """Write a note."""
        await stage(f"before-{text}", context.signal)
        await asyncio.sleep(SLOW_SECONDS)
        write("effects.jsonl", kind=kind, text=text, key=idempotency_key())
        await stage(f"after-{text}", context.signal)
        await asyncio.sleep(SLOW_SECONDS)
        return f"noted {text}"

    return tool(name=f"note_{kind}", replay="safe" if kind == "safe" else None)(execute)


class Steps:
    """The provider. A prompt is ``{"name": ..., "calls": [[kind, ...], ...]}``: the calls of each turn."""

    api = "steps"

    async def stream(self, model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        """Answer as the prompt says, then repeat what was said besides."""
        users = [_text(message) for message in context.messages if isinstance(message, UserMessage)]
        prompt = json.loads(users[0])
        turn = sum(isinstance(message, AssistantMessage) for message in context.messages)
        name = prompt["name"]
        write("requests.jsonl", name=name, turn=turn)
        await asyncio.sleep(prompt.get("delay", 0))
        await stage(f"answer-{name}-{turn}", options.signal)
        if turn == prompt.get("fails") and not (FILES / "repaired").exists():
            reply = Reply(error="the provider is down")
        elif turn < len(prompt["calls"]):
            calls = [
                Call(f"note_{kind}", {"text": f"{name}-{turn}-{n}"}) for n, kind in enumerate(prompt["calls"][turn])
            ]
            reply = Reply(Say(f"turn {turn}", chunks=["turn ", str(turn)]), *calls)
        else:
            reply = Reply(" ".join(["done", *users[1:]]))
        async for event in ScriptedProvider(reply).stream(model, context, options):
            yield event


class SitePlugin:
    """Offers the provider, its model and the tools."""

    @hookimpl
    def register_providers(self) -> list[Steps]:
        return [Steps()]

    @hookimpl
    def register_tools(self) -> list[Tool]:
        return [note(kind) for kind in ("safe", "keyed", "never")]

    @hookimpl
    async def resolve_model(self, name: str | None) -> Model | None:
        return MODEL if name == "steps/steps" else None


def _text(message: UserMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    return "".join(block.text for block in message.content if isinstance(block, TextContent))
