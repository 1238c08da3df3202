"""The modes that run prompts one after another and print: the last answer, or every event as a JSON line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from pi_core import Build, ConfigError
from pi_plugins.coding_agent import AgentSession, Prepared, SessionOptions, create_session, prepare_session

from ._input import Prompt
from ._signals import stopping_on_signals
from ._stdout import records_only
from .output import JsonOutput, Output, PrintOutput


async def run_prompts(
    build: Build, options: SessionOptions, prompts: Sequence[Prompt], *, json: bool = False, trace: Path | None = None
) -> int:
    """Run prompts in a session, print, and return the exit code.

    :param json: print events instead of the last answer.
    :param trace: where calls of plugins are written.
    :raises ConfigError: there is no such session, model or tool, or the output cannot be written.
    """
    prepared = await prepare_session(options, build)
    session = await open_session(prepared, trace)
    if not json:
        return await _run(session, PrintOutput(session), prompts)
    with records_only() as descriptor:
        return await _run(session, JsonOutput(session, descriptor), prompts)


async def _run(session: AgentSession, output: Output, prompts: Sequence[Prompt]) -> int:
    session.subscribe(output.on_event)
    with stopping_on_signals(session.abort) as received:
        try:
            output.begin()
            for prompt in prompts:
                await session.prompt(prompt.text, prompt.images)
                last = session.last_answer
                failed = last is not None and last.stop_reason in ("error", "aborted")
                if received or failed or session.leaving.is_set():
                    break
        finally:
            await session.close()
        code = output.finish()
    return received[0] if received else code


async def open_session(
    prepared: Prepared, trace: Path | None = None, callables: dict[str, Callable[..., Any]] | None = None
) -> AgentSession:
    """Make the session of a mode, and say on stderr what was chosen without being named, and what is wrong.

    :param trace: where calls of plugins are written.
    :param callables: implementations of hooks by name.
    """
    try:
        session = await create_session(prepared=prepared, callables=callables)
    finally:
        for text in (*prepared.warnings, *prepared.notices):
            click.echo(f"pi: {text}", err=True)
    await begin_trace(session, trace)
    return session


async def begin_trace(session: AgentSession, trace: Path | None) -> None:
    """Write every call of a plugin in a session to a file.

    :param trace: the file; ``None`` traces nothing.
    :raises ConfigError: it cannot be written; the session is closed then.
    """
    if trace is None:
        return
    from pi_plugins.trace import TraceWriter

    def failed(error: OSError) -> None:
        click.echo(f"pi: --trace-hooks {trace}: {error.strerror or error}; no more is traced", err=True)

    try:
        session.agent.hooks.trace(TraceWriter(trace, failed=failed))
    except OSError as error:
        await session.close()
        raise ConfigError(f"--trace-hooks {trace}: {error.strerror or error}") from error
