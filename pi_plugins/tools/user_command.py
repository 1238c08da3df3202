"""Commands of the user, run by what runs the model's."""

from __future__ import annotations

import codecs
import inspect
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pi_core import AbortSignal

from ._command import Command

if TYPE_CHECKING:
    from . import ToolsOptions


@dataclass(frozen=True, slots=True)
class UserCommandResult:
    """What came of a command of the user.

    :param output: the end of what it printed, within the limits of the options.
    :param exit_code: ``None`` when it was cancelled.
    :param cancelled: it was aborted.
    :param truncated: there was more than ``output``.
    :param full_output_path: the file that holds all of it, when there was more and it could be kept.
    """

    output: str
    exit_code: int | None
    cancelled: bool = False
    truncated: bool = False
    full_output_path: str | None = None


async def run_user_command(
    command: str,
    options: ToolsOptions | None = None,
    *,
    on_update: Callable[[str], Awaitable[None] | None] | None = None,
    signal: AbortSignal | None = None,
) -> UserCommandResult:
    """Run a command for the user: in the process's own environment, and without a time limit.

    :param options: directory, shell, prefix, variables and limits; the defaults of the plugin without them.
    :param on_update: gets all that is printed, in order, piece by piece; may be ``async``, and the command waits then.
    :param signal: ends the command when it is aborted.
    :raises PiError: the command cannot be started.
    """
    from . import ToolsOptions

    options = options or ToolsOptions()
    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    async def printed(chunk: bytes) -> None:
        text = decoder.decode(chunk)
        if on_update is None or not text:
            return
        waited = on_update(text)
        if inspect.isawaitable(waited):
            await waited

    run = Command(command, options, environment={**os.environ, **options.env}, listener=printed, signal=signal)
    end = await run.run()
    shown = run.output.truncation()
    cancelled = end.failure is not None
    return UserCommandResult(
        output=shown.content,
        exit_code=None if cancelled else end.code,
        cancelled=cancelled,
        truncated=shown.truncated,
        full_output_path=run.output.log_path,
    )
