"""The default command: reads options and prompts, and runs a session in the mode that was asked for."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import click

from pi_core import Build, ConfigError, HookError

from .options import session_options, with_options, write_options


class _PromptCommand(click.Command):
    """A command whose wrong usage ends with 1, as every other failure of it does, and whose options have headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings."""
        write_options(self, ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.show()
            raise click.exceptions.Exit(1) from error


@click.command(cls=_PromptCommand, context_settings={"help_option_names": ["-h", "--help"]})
@with_options
@click.pass_obj
def prompt(build: Build, /, **options: Any) -> int:
    """Talk with the agent on a terminal; with -p, or from a pipe, run prompts and print the answer.

    The first prompt is the piped text, then @files, then the first word; each further word is a prompt of its own.
    """
    if options["offline"]:
        os.environ["PI_OFFLINE"] = "1"
    try:
        if options["list_models"] is not None:
            return _list_models(options["list_models"])
        if options["export"] is not None:
            return _export(options["export"], options["words"])
        for problem in build.problems():
            click.echo(f"pi: {problem}", err=True)
        if options["show_prompt"] is not None:
            return _show_prompt(build, options)
        return _run(build, options)
    except HookError as error:
        click.echo(f"pi: {error}", err=True)
        return 1
    except click.UsageError as error:
        error.show()
        return 1


def _run(build: Build, options: dict[str, Any]) -> int:
    mode, words = options["mode"], options["words"]
    if mode == "rpc":
        from .rpc import run_rpc

        if words:
            raise click.UsageError("--mode rpc takes no prompt: send it as a command")
        return asyncio.run(run_rpc(build, session_options(options), trace=options["trace_hooks"]))
    if mode == "text" and not options["print_mode"] and _on_terminal():
        return _interactive(build, options)
    if options["resume"]:
        raise ConfigError("--resume asks which session, which needs a terminal: name it with --session, or use -c")
    from ._input import read_prompts
    from .printing import run_prompts

    # Before there is a loop: reading a pipe inside one could not be interrupted.
    prompts = read_prompts(words)
    wanted = session_options(options)
    wanted.source = "print"
    return asyncio.run(run_prompts(build, wanted, prompts, json=mode == "json", trace=options["trace_hooks"]))


def _interactive(build: Build, options: dict[str, Any]) -> int:
    from ._input import read_prompts
    from .interactive.run import run_interactive

    prompts = read_prompts(options["words"]) if options["words"] else []
    wanted = session_options(options)
    return asyncio.run(run_interactive(build, wanted, prompts, options["trace_hooks"], resume=options["resume"]))


def _on_terminal() -> bool:
    return all(stream is not None and not stream.closed and stream.isatty() for stream in (sys.stdin, sys.stdout))


def _list_models(search: str) -> int:
    from pi_plugins.models import list_models

    return list_models(search)


def _show_prompt(build: Build, options: dict[str, Any]) -> int:
    from ._show_prompt import show_prompt

    as_json = options["mode"] == "json"
    return asyncio.run(show_prompt(build, session_options(options), options["show_prompt"], as_json=as_json))


def _export(source: Path, words: tuple[str, ...]) -> int:
    from pi_plugins.sessions import export_session

    if len(words) > 1:
        raise click.UsageError("--export takes one file to write to")
    click.echo(str(export_session(source, Path(words[0]) if words else None)))
    return 0
