"""Signals that end a mode: the first one aborts and lets it close in order, the second one ends the process at once."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129} if hasattr(signal, "SIGHUP") else {}


@contextmanager
def stopping_on_signals(stop: Callable[[], None], *, last: Callable[[], None] | None = None) -> Iterator[list[int]]:
    """Call ``stop`` on the first signal, and end the process at once on the second, even when nothing else goes on.

    Yields the exit code of the signal that came, in a list.

    :param last: called before the process ends at once.
    """
    received: list[int] = []
    loop = asyncio.get_running_loop()

    def handle(number: int, frame: FrameType | None) -> None:
        code = _EXIT_CODES[signal.Signals(number)]
        if received:
            if last is not None:
                last()
            os._exit(code)
        received.append(code)
        loop.call_soon_threadsafe(stop)

    before = {number: signal.signal(number, handle) for number in _EXIT_CODES}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
