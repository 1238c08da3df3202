"""A plugin for ``pi -e``: a model that streams text at a fixed rate, each piece with the time at which it was given."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator

from pi_core import Context, MessageAssembler, Model, StreamEvent, StreamOptions, hookimpl

NAME = "clockwork"
MODEL = Model(id=NAME, name="Clockwork", api=NAME, provider=NAME, context_window=1_000_000)
TICK_SECONDS = 0.01
END = "all was said"


class StreamPlugin:
    """Registers a model; ``PI_STREAM_DELTAS`` and ``PI_STREAM_RATE`` say how much it says, and how fast."""

    api = NAME

    @hookimpl
    def register_providers(self) -> list[StreamPlugin]:
        """Offer the model's provider."""
        return [self]

    @hookimpl
    async def resolve_model(self, name: str | None) -> Model | None:
        """Know the model by its name."""
        return MODEL if name == "clockwork/clockwork" else None

    async def stream(self, model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        """Stream words; a paragraph ends with every fiftieth."""
        total, rate = int(os.environ["PI_STREAM_DELTAS"]), int(os.environ["PI_STREAM_RATE"])
        assembler = MessageAssembler(model.api, model.provider, model.id)
        yield assembler.start()
        yield assembler.text_start(0)
        begun, given = time.monotonic(), 0
        while given < total:
            due = min(total, int((time.monotonic() - begun) * rate) + 1)
            for number in range(given, due):
                end = "\n\n" if number % 50 == 49 else " "
                yield assembler.text_delta(0, f"<{time.monotonic() * 1000:.0f}>{end}")
            given = due
            await asyncio.sleep(TICK_SECONDS)
        yield assembler.text_delta(0, END)
        yield assembler.text_end(0)
        yield assembler.done("stop")
