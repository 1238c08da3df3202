"""What every side of a comparison is given to do, and how one piece of work is measured."""

from __future__ import annotations

import asyncio
import gc
import json
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import median
from typing import Final

DELTA: Final = "abcd "
"""The text of one delta."""

PARALLEL_SECONDS: Final = 0.010
"""How long one of the tools that run side by side sleeps."""

CROWD_TURNS: Final = 20
"""How many turns each of many agents makes before its answer."""


@dataclass(slots=True)
class Work:
    """Something to be measured.

    :param run: does it; everything that is not to be measured was made before.
    :param check: raises AssertionError when it was not done as it should.
    :param warm_ups: how often it is done before the clock starts.
    :param repeat: how often it is done on the clock; the medians count.
    :param close: lets go of what the work holds.
    """

    run: Callable[[], Awaitable[object]]
    check: Callable[[], None]
    warm_ups: int = 0
    repeat: int = 1
    close: Callable[[], Awaitable[object]] | None = None


def argument_deltas(n: int) -> list[str]:
    """Return the JSON text of the arguments of a ``write`` call in ``n`` pieces of 5 characters."""
    frame = json.dumps({"path": "notes.txt", "content": ""})
    text = json.dumps({"path": "notes.txt", "content": DELTA * n})[: len(DELTA) * n - 2] + frame[-2:]
    return [text[start : start + len(DELTA)] for start in range(0, len(text), len(DELTA))]


def measure(work: Work, *, memory: bool = False) -> dict[str, float]:
    """Do the work in an event loop of its own and return CPU and wall time in seconds.

    Garbage is collected before each run, and the collector stays on during it.

    :param memory: trace allocations instead (the times then mean nothing): ``peak`` and ``kept`` are bytes beyond what
        was there before.
    """

    async def timed() -> tuple[float, float]:
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        await work.run()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        work.check()
        return cpu, wall

    async def main() -> dict[str, float]:
        for _ in range(work.warm_ups):
            await timed()
        times = [await timed() for _ in range(work.repeat)]
        if work.close is not None:
            await work.close()
        return {"cpu_s": median(cpu for cpu, _ in times), "wall_s": median(wall for _, wall in times)}

    async def traced() -> dict[str, float]:
        gc.collect()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            await work.run()
            _, peak = tracemalloc.get_traced_memory()
            gc.collect()
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        work.check()
        return {"peak": peak - before, "kept": kept - before}

    return asyncio.run(traced() if memory else main())
