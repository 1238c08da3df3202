"""``pi worker`` and ``pi durable``."""

from __future__ import annotations

import json
import signal
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import click

from pi_core import AssistantMessage, user_message

from . import DbosOptions

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_BUILD = click.option("--build", "build", type=click.Path(path_type=Path), required=True, help="The build file.")
_OTHER_BUILD = click.option("--build", "build", type=click.Path(path_type=Path), help="Go on with this build.")


def _database(function: FunctionT) -> FunctionT:
    return click.option(
        "--database", help="sqlite:////FILE or postgresql://...; PI_DURABLE_DATABASE, or the user's file if absent."
    )(function)


def worker_command(options: DbosOptions) -> click.Command:
    """Make ``pi worker``.

    :param options: of the plugin; those in the build file come before them.
    """

    @click.command()
    @_BUILD
    @_database
    @click.option("--concurrency", type=click.IntRange(min=1), default=4, help="Most runs at a time; 4 if absent.")
    @click.option("--patience", type=click.FloatRange(min=0), default=30.0, help="Seconds to let runs end at SIGTERM.")
    def worker(build: Path, database: str | None, concurrency: int, patience: float) -> None:
        """Play durable runs of a build, also those of workers that died, until SIGINT or SIGTERM."""
        import os
        import sys

        from ._engine import database_url
        from ._worker import Worker

        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        url = database_url(database or options.database)
        made = Worker(build, url, options, concurrency=concurrency, say=lambda line: click.echo(line, err=True))
        made.work(stop, patience_seconds=patience)
        sys.stdout.flush()
        sys.stderr.flush()
        # Nothing of a run that is left may be undone on the way out: it ends here, and another worker has it.
        os._exit(0)

    return worker


def durable_commands(options: DbosOptions) -> click.Command:
    """Make ``pi durable``."""

    def opened(database: str | None, *, create: bool = False) -> Any:
        from ._engine import database_url
        from .runs import Runs

        return closing(Runs(database_url(database or options.database), create=create))

    @click.group(context_settings={"help_option_names": ["-h", "--help"]})
    def durable() -> None:
        """Runs that survive the death of the process that has them; 'pi worker' plays them."""

    @durable.command()
    @click.argument("prompt")
    @_BUILD
    @_database
    @click.option("--id", "run_id", help="Id of the run; starting the same one again changes nothing.")
    @click.option("--model", help="In place of the build's.")
    @click.option("--follow", is_flag=True, help="Print the events of the run as JSON lines until it ends.")
    def start(
        prompt: str, build: Path, database: str | None, run_id: str | None, model: str | None, follow: bool
    ) -> int:
        """Queue a run with a PROMPT and print its id."""
        from ._locks import locked_build

        locked = locked_build(build)
        with opened(database, create=True) as runs:
            started = runs.start([user_message(prompt)], locked, run_id=run_id, model=model, followed=follow)
            if follow:
                return _follow(runs, started)
        click.echo(started)
        return 0

    @durable.command()
    @click.argument("file", type=click.Path(path_type=Path))
    @_BUILD
    @_database
    @click.option("--name", help="Of the batch; the ids of its runs begin with it. The file's name if absent.")
    @click.option("--wait", is_flag=True, help="Print the progress until all have ended; 1 if one failed.")
    def batch(file: Path, build: Path, database: str | None, name: str | None, wait: bool) -> int:
        """Queue a run for each line of a JSONL FILE; again under the same name, only those that are new."""
        from ._locks import locked_build
        from .batches import read_tasks, start_batch, watch_batch

        tasks, locked = read_tasks(file), locked_build(build)
        with opened(database, create=True) as runs:
            batch_name = name or file.stem
            started = start_batch(runs, batch_name, tasks, locked)
            if not wait:
                click.echo("\n".join(started))
                return 0
            states = watch_batch(runs, batch_name, _print_progress)
        return 0 if states["done"] == sum(states.values()) else 1

    @durable.command("list")
    @_database
    @click.option("--prefix", help="Only runs whose id begins so, as those of a batch: NAME:")
    @click.option("--limit", type=click.IntRange(min=1), default=50, help="At most so many; 50 if absent.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
    def list_runs(database: str | None, prefix: str | None, limit: int, as_json: bool) -> None:
        """The runs, the newest first."""
        with opened(database) as runs:
            for run in runs.find(prefix=prefix, limit=limit):
                if as_json:
                    click.echo(json.dumps(run.to_json(), ensure_ascii=False))
                else:
                    click.echo(f"{run.id:<34} {run.state:<9} {run.error or ''}".rstrip())

    @durable.command()
    @click.argument("run_id", metavar="ID")
    @_database
    @click.option("--json", "as_json", is_flag=True, help="Print the run and its messages as one JSON object.")
    def show(run_id: str, database: str | None, as_json: bool) -> None:
        """What became of a run, and its transcript so far."""
        with opened(database) as runs:
            info, messages, undelivered = runs.info(run_id), runs.transcript(run_id), runs.undelivered(run_id)
        if as_json:
            data = {
                **info.to_json(),
                "messages": [message.to_json() for message in messages],
                "undelivered": [mail.to_json() for mail in undelivered],
            }
            click.echo(json.dumps(data, ensure_ascii=False))
            return
        click.echo(f"{info.id}: {info.state}, build {info.version}, taken over {info.rescues} times")
        if info.error:
            click.echo(info.error)
        for mail in undelivered:
            click.echo(f"not delivered: {mail.kind} {mail.text}")
        for message in messages:
            click.echo(f"\n{_shown(message)}")

    @durable.command()
    @click.argument("run_id", metavar="ID")
    @_database
    def follow(run_id: str, database: str | None) -> int:
        """The events of a run as JSON lines: its messages so far, then what happens, until it ends."""
        with opened(database) as runs:
            return _follow(runs, run_id)

    def sending(name: str, kind: Any, help_text: str, argument: str, *, required: bool) -> None:
        @durable.command(name, help=help_text)
        @click.argument("run_id", metavar="ID")
        @click.argument("text", metavar=argument, required=required, default=None if required else "")
        @_database
        def send(run_id: str, text: str, database: str | None) -> None:
            with opened(database) as runs:
                runs.send(run_id, kind, text)

    sending("steer", "steer", "Put a message in before the next request of a run.", "TEXT", required=True)
    sending("follow-up", "followUp", "Give a run a message for when it would stop.", "TEXT", required=True)
    sending(
        "abort", "abort", "End a run; REASON, a sentence, is the error of its last answer.", "REASON", required=False
    )

    @durable.command()
    @click.argument("run_id", metavar="ID")
    @_OTHER_BUILD
    @_database
    def resume(run_id: str, build: Path | None, database: str | None) -> None:
        """Give a run that waits, hangs or was given up to another worker; what it has done is not done again."""
        from ._locks import locked_build

        locked = None if build is None else locked_build(build)
        with opened(database) as runs:
            runs.resume(run_id, locked)

    @durable.command()
    @click.argument("run_id", metavar="ID")
    @_OTHER_BUILD
    @_database
    def retry(run_id: str, build: Path | None, database: str | None) -> None:
        """Let a run that failed or was aborted go on from before the request that ended it."""
        from ._locks import locked_build

        locked = None if build is None else locked_build(build)
        with opened(database) as runs:
            runs.retry(run_id, locked)

    return durable


def _follow(runs: Any, run_id: str) -> int:
    end: dict[str, Any] = {}
    for event in runs.follow(run_id):
        click.echo(json.dumps(event, ensure_ascii=False))
        end = event
    return 0 if end.get("state") == "done" else 1


def _print_progress(states: Counter[str]) -> None:
    over = sum(states[state] for state in ("done", "failed", "aborted", "given up"))
    click.echo(f"{over}/{sum(states.values())}: " + ", ".join(f"{count} {state}" for state, count in states.items()))


def _shown(message: Any) -> str:
    """A message for people."""
    if isinstance(message, AssistantMessage):
        calls = [f"[{call.name}] {json.dumps(call.arguments, ensure_ascii=False)}" for call in message.tool_calls]
        parts = [message.text, *calls, message.error_message or ""]
        return "assistant: " + "\n".join(part for part in parts if part)
    content = getattr(message, "content", None)
    if content is None:
        return str(message.to_text())
    blocks = content if isinstance(content, list) else [content]
    texts = [block if isinstance(block, str) else getattr(block, "text", f"[{block.type}]") for block in blocks]
    name = getattr(message, "tool_name", "")
    return f"{message.role}{' ' + name if name else ''}: " + "\n".join(texts)
