"""The default command: reads prompt and options, and runs the agent in the mode that was asked for."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, get_args

import click

from pi_core import Agent, Build, ConfigError, Model, SelectionContext, ThinkingLevel, UserMessage

from ._input import read_prompts
from .output import JsonOutput, Output, PrintOutput

DEFAULT_TOOLS = ("read", "bash", "edit", "write")
_EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129} if hasattr(signal, "SIGHUP") else {}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("words", nargs=-1, metavar="[@FILE]... [PROMPT]...")
@click.option("-p", "--print", "print_mode", is_flag=True, help="Run the prompts, print the last answer, exit.")
@click.option("--mode", type=click.Choice(["text", "json"]), default="text", help="json: print events as JSON lines.")
@click.option("--model", help="provider/id, or an id.")
@click.option("--base-url", help="Address of a server, such as http://127.0.0.1:8080/v1.")
@click.option("--api", help="Wire protocol of --base-url; openai-completions by default.")
@click.option("--api-key", help="Key for this run; the environment's otherwise.")
@click.option("--tools", "-t", help=f"Tools the model may call, with commas; {','.join(DEFAULT_TOOLS)} if absent.")
@click.option("--no-tools", "-nt", is_flag=True, help="No tools.")
@click.option("--system-prompt", help="Text, or a file that holds it.")
@click.option("--thinking", type=click.Choice(get_args(ThinkingLevel)), help="How much to think; off if absent.")
@click.option(
    "--trace-hooks",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Append a line of JSON to this file for every call of a plugin; pi trace show FILE reads it.",
)
@click.option("--max-tokens", type=click.IntRange(min=1), help="Most tokens of one answer.")
@click.pass_obj
def prompt(build: Build, /, print_mode: bool, **options: Any) -> int:
    """Run prompts: piped text, then @files, then the words, each further word a prompt of its own."""
    if options["mode"] == "text" and not print_mode and not options["words"] and sys.stdin and sys.stdin.isatty():
        raise click.UsageError('Nothing to do: give a prompt, as in pi -p "What is in this folder?"')
    for problem in build.problems():
        click.echo(f"pi: {problem}", err=True)
    try:
        _check_folder()
        # Before there is a loop: reading a pipe inside one could not be interrupted.
        prompts = read_prompts(options["words"])
        return asyncio.run(_run(build, prompts, options))
    except ConfigError as error:
        click.echo(f"pi: {error}", err=True)
        return 1


async def _run(build: Build, prompts: list[UserMessage], options: dict[str, Any]) -> int:
    selection = SelectionContext(environ=os.environ, base_url=options["base_url"], api=options["api"])
    model = await build.resolve_model(options["model"], selection)
    for notice in selection.notices:
        click.echo(f"pi: {notice}", err=True)
    agent = _agent(build, model, options)
    output: Output = JsonOutput(agent) if options["mode"] == "json" else PrintOutput(agent)
    agent.subscribe(output.on_event)
    with _stopping_on_signals(agent) as received:
        output.begin()
        for one in prompts:
            await agent.prompt([one])
            if received or agent.state.error_message:
                break
        code = output.finish()
    return received[0] if received else code


def _check_folder() -> None:
    try:
        Path.cwd()
    except OSError as error:
        raise ConfigError(f"The current directory cannot be used: {error.strerror}. Change to another one") from None


def _agent(build: Build, model: Model, options: dict[str, Any]) -> Agent:
    names: list[str] = []
    if not options["no_tools"]:
        given = options["tools"]
        registered = build.registry.tools
        if given is None and build.settings is not None:
            names = registered.names() if build.settings.tools is None else build.settings.tools
        elif given is None:
            names = [name for name in DEFAULT_TOOLS if registered.get(name) is not None]
        else:
            names = [name.strip() for name in given.split(",") if name.strip()]
    hooks: dict[str, Any] = {} if options["thinking"] is None else {"thinking_level": options["thinking"]}
    if options["api_key"]:
        hooks["get_api_key"] = lambda: options["api_key"]
    agent = build.agent(
        model=model,
        tools=names,
        system_prompt=_system_prompt(build, options["system_prompt"], names),
        **hooks,
    )
    agent.options = agent.options.replace(max_tokens=options["max_tokens"])
    if options["trace_hooks"] is not None:
        _trace(agent, options["trace_hooks"])
    return agent


def _trace(agent: Agent, path: Path) -> None:
    from pi_plugins.trace import TraceWriter

    try:
        agent.hooks.trace(TraceWriter(path))
    except OSError as error:
        raise ConfigError(f"--trace-hooks {path}: {error.strerror or error}") from error


def _system_prompt(build: Build, given: str | None, tools: list[str]) -> str:
    if given is not None:
        path = Path(given)
        try:
            return path.read_text(encoding="utf-8") if path.is_file() else given
        except OSError:
            return given
        except UnicodeDecodeError as error:
            raise ConfigError(f"--system-prompt {path} is not UTF-8 text (byte {error.start})") from None
    if build.settings is not None and build.settings.system_prompt is not None:
        return build.settings.system_prompt
    able = f" Use the tools ({', '.join(tools)}) to look at files and act instead of guessing." if tools else ""
    return f"You are a coding agent working in {Path.cwd()}.{able} Answer briefly and to the point."


@contextmanager
def _stopping_on_signals(agent: Agent) -> Iterator[list[int]]:
    """Abort the run on the first signal, and end the process at once on the second, even when nothing else goes on.

    Yields the exit code of the signal that came, in a list.
    """
    received: list[int] = []
    loop = asyncio.get_running_loop()

    def stop(number: int, frame: FrameType | None) -> None:
        code = _EXIT_CODES[signal.Signals(number)]
        if received:
            os._exit(code)
        received.append(code)
        loop.call_soon_threadsafe(agent.abort)

    before = {number: signal.signal(number, stop) for number in _EXIT_CODES}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
