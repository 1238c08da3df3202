"""Plain functions of tools, run beside the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Any


async def in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a daemon thread, which is left to itself when the wait for it is cancelled.

    The threads of a pool are joined when the process ends, so that a call that was given up could keep it from ending.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if outcome.done():
            return
        if error is None:
            outcome.set_result(value)
        elif isinstance(error, StopIteration):
            outcome.set_exception(RuntimeError("the tool raised StopIteration"))
        else:
            outcome.set_exception(error)

    def work() -> None:
        value, failure = None, None
        try:
            value = context.run(function, *arguments)
        except BaseException as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # the event loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, value, failure)

    threading.Thread(target=work, name=f"pi-tool-{getattr(function, '__name__', 'call')}", daemon=True).start()
    return await outcome
