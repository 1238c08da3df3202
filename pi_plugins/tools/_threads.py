"""File work in threads: it ends early when nobody wants it any more, and a call never ends before its thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from pi_core import AbortSignal

from ._errors import ABORTED, ToolError

T = TypeVar("T")

_PATIENCE_SECONDS = 5.0


class Stop:
    """Says whether work is still wanted; readable from any thread."""

    __slots__ = ("_cancelled", "_signal")

    def __init__(self, signal: AbortSignal | None) -> None:
        self._signal = signal
        self._cancelled = threading.Event()

    @property
    def requested(self) -> bool:
        """Whether the run was aborted or the call was cancelled."""
        return self._cancelled.is_set() or (self._signal is not None and self._signal.aborted)

    def request(self) -> None:
        """Ask the work to end."""
        self._cancelled.set()

    def check(self) -> None:
        """Raise when the work is no longer wanted.

        :raises ToolError: always with the text every aborted call has.
        """
        if self.requested:
            raise ToolError(ABORTED)


async def in_thread(function: Callable[[], T], stop: Stop) -> T:
    """Run ``function`` in a thread; a cancelled call asks it to stop and waits, so that nothing happens later.

    The wait has an end, and the thread does not keep the process alive: a file system may hang for ever.
    """
    stop.check()
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def work() -> None:
        try:
            value = function()
        except BaseException as error:
            _tell(loop, outcome.set_exception, error)
        else:
            _tell(loop, outcome.set_result, value)

    threading.Thread(target=work, name="pi-tool-files", daemon=True).start()
    try:
        return await asyncio.shield(outcome)
    except asyncio.CancelledError:
        stop.request()
        outcome.add_done_callback(asyncio.Future.exception)
        await asyncio.wait({outcome}, timeout=_PATIENCE_SECONDS)
        raise


def _tell(loop: asyncio.AbstractEventLoop, settle: Callable[[Any], None], value: Any) -> None:
    with contextlib.suppress(RuntimeError):  # the event loop is closed: nobody waits any more
        loop.call_soon_threadsafe(settle, value)


async def until_aborted(work: Coroutine[Any, Any, T], signal: AbortSignal | None) -> T:
    """Run ``work``, and cancel it when the signal is aborted.

    :raises ToolError: it was aborted.
    """
    if signal is None:
        return await work
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)

    def cancel() -> None:
        loop.call_soon_threadsafe(task.cancel)

    forget = signal.on_abort(cancel)
    try:
        return await task
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if signal.aborted and (current is None or not current.cancelling()):
            raise ToolError(ABORTED) from None
        raise
    finally:
        forget()
