"""The commands ``pi build``: write, show, lock, check, freeze and run a build file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from .errors import BuildError

if TYPE_CHECKING:
    from ._build_file import BuildFile

_FILE: Final = click.argument("file", type=click.Path(path_type=Path), default=".")

Runner = Callable[[list[str]], int]
"""Runs ``pi`` with arguments; what ``pi build run`` hands its own to."""


@click.group("build")
def build_commands() -> None:
    """Configured builds: a file that says which agent a team runs. FILE is pi-build.toml by default."""


@build_commands.command("new")
@_FILE
@click.option("--name", help="Name of the build; that of the folder by default.")
def new(file: Path, name: str | None) -> None:
    """Write a build file with every installed plugin, to cut down."""
    from ._build_file import FILE_NAME

    if file.is_dir():
        file = file / FILE_NAME
    text = template(name or file.resolve().parent.name or "agent")
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise BuildError(f"{file} is there already, and stays as it is") from None
    except OSError as error:
        raise BuildError(f"{file}: {error.strerror or error}") from error
    click.echo(f"Wrote {file}. Take out what your team does not need, then: pi build lock {file}")


@build_commands.command("show")
@_FILE
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--requirements", is_flag=True, help="Print the locked versions as requirements for pip.")
def show(file: Path, as_json: bool, requirements: bool) -> int:
    """What a build is made of, and whether it is there; nothing is imported."""
    from ._build_file import read_build_file

    read = read_build_file(file)
    if requirements:
        for line in _requirements(read):
            click.echo(line)
        return 0
    table = build_table(read)
    if as_json:
        click.echo(json.dumps(table, indent=2, ensure_ascii=False))
    else:
        for line in _lines(table):
            click.echo(line)
    return 1 if any(plugin["fault"] for plugin in table["plugins"]) else 0


@build_commands.command("lock")
@_FILE
def lock(file: Path) -> None:
    """Write exact versions, hashes of files and the order of hooks into pi-build.lock."""
    from ._snapshot import write_lock

    path, altered = write_lock(file)
    for line in altered:
        click.echo(f"pi: {line}", err=True)
    click.echo(f"Wrote {path}")


@build_commands.command("check")
@_FILE
@click.option("--exact", is_flag=True, help="An installed plugin that the build does not name is a difference too.")
def check(file: Path, exact: bool) -> int:
    """Compare the build file and what is installed with the lock; print each difference, exit 1 if there is one."""
    from ._snapshot import compare

    found = compare(file)
    for line in found.differences:
        click.echo(line)
    for line in found.notes:
        click.echo(f"note: {line}")
    if not found.differences:
        click.echo("As locked")
    return 1 if found.differences or (exact and found.notes) else 0


@build_commands.command("freeze")
@click.argument("out", type=click.Path(path_type=Path, dir_okay=False))
@_FILE
def freeze(out: Path, file: Path) -> None:
    """Make OUT, one file that runs the build wherever there is a Python like this one."""
    from ._freeze import freeze as make

    wanted = make(file, out)
    click.echo(f"Wrote {out}, {out.stat().st_size / 1e6:.1f} MB, with {', '.join(wanted)} and what they need")


class _PassedOn(click.Command):
    """A command that passes its arguments on, with the ``--`` that click would take away."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Leave what follows ``--`` as it is."""
        end = args.index("--") if "--" in args else len(args)
        after = tuple(args[end:])
        left = super().parse_args(ctx, args[:end])
        ctx.params["arguments"] += after
        return left


@build_commands.command(
    "run", cls=_PassedOn, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[FILE] [ARGUMENTS]...")
@click.pass_obj
def run(runner: Runner, arguments: tuple[str, ...]) -> int:
    """Run pi with a build file and no other plugins: a prompt, or one of its commands.

    FILE ends with .toml, or is a folder with a pi-build.toml; without it that of this folder is taken.
    """
    from ._build_file import FILE_NAME

    rest = list(arguments)
    named = bool(rest) and (rest[0].endswith(".toml") or Path(rest[0], FILE_NAME).is_file())
    return runner(["--build", rest.pop(0) if named else ".", *rest])


def build_table(file: BuildFile) -> dict[str, Any]:
    """What a build file says and what is installed of it, as JSON."""
    from ._lock import read_lock
    from ._pinned import find_plugins

    lock = read_lock(file.lock_path)
    plugins = [
        {
            "name": pinned.entry.name,
            "wanted": pinned.entry.version or "",
            "distribution": pinned.offer.distribution if pinned.offer is not None else pinned.entry.distribution or "",
            "version": pinned.offer.version if pinned.offer is not None else "",
            "options": sorted(pinned.entry.options),
            "fault": pinned.fault,
        }
        for pinned in find_plugins(file, lock)
    ]
    settings = file.build.model_dump(exclude_none=True, exclude={"environment"})
    return {
        "file": str(file.path),
        "lock": str(file.lock_path) if lock is not None else None,
        "build": settings,
        "environment": {name: bool(os.environ.get(name)) for name in file.build.environment},
        "plugins": plugins,
        "block": sorted(file.block),
        "conflicts": dict(file.conflicts),
    }


def _lines(table: dict[str, Any]) -> Iterator[str]:
    yield f"{table['file']}, {'locked by ' + table['lock'] if table['lock'] else 'not locked'}"
    for key, value in table["build"].items():
        text = ", ".join(value) if isinstance(value, list) else str(value)
        first, *more = text.splitlines() or [""]
        yield f"{key:<18} {first}" + (f" ... ({len(more) + 1} lines)" if more else "")
    for name, is_set in table["environment"].items():
        yield f"{'environment':<18} {name}, {'set' if is_set else 'not set'}"
    yield "plugins, in call order"
    for number, plugin in enumerate(table["plugins"], 1):
        found = f"{plugin['distribution']} {plugin['version']}".strip()
        wanted = f"wanted {plugin['wanted']}" if plugin["wanted"] else ""
        options = f"options: {', '.join(plugin['options'])}" if plugin["options"] else ""
        yield f"  {number:>2}. {plugin['name']:<20} {found:<28} {'  '.join(filter(None, (wanted, options)))}".rstrip()
        if plugin["fault"]:
            yield f"      {plugin['fault']}"
    for name in table["block"]:
        yield f"{'blocked':<18} {name}"
    for name, plugin in table["conflicts"].items():
        yield f"{'conflict':<18} {name} is {plugin}'s"


def _requirements(file: BuildFile) -> Iterator[str]:
    from ._lock import read_lock

    lock = read_lock(file.lock_path)
    if lock is None:
        raise BuildError(f"There is no lock {file.lock_path}. Write it with: pi build lock {file.path}")
    versions = {name: found.version for name, found in lock.distributions.items()} | lock.requirements
    yield from sorted(f"{name}=={version}" for name, version in versions.items())


def template(name: str) -> str:
    """Return a build file with every installed plugin, each with a version specifier."""
    from ._build_file import LIMITS
    from ._loader import installed

    tables, seen = [], {LIMITS}
    for offer in installed():
        if offer.name in seen:
            continue
        seen.add(offer.name)
        lines = [f"name = {_quoted(offer.name)}", f"version = {_quoted(compatible(offer.version))}"]
        if not offer.built_in:
            lines.append(f"distribution = {_quoted(offer.distribution)}")
        tables.append("\n".join(["[[plugins]]", *lines]))
    return _TEMPLATE.format(name=_quoted(name), plugins="\n\n".join(tables))


def compatible(version: str) -> str:
    """Return a specifier for an installed version and its later releases of the same series."""
    from packaging.version import Version

    parsed = Version(version)
    if len(parsed.release) < 2 or parsed.local is not None:
        return f">={parsed.public}"
    return f"~={parsed}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


_TEMPLATE: Final = """\
# A build for `pi build run`. Nothing is imported but the plugins named here.

[build]
name = {name}
thinking = "off"
# model = "provider/id"                      # without it: a key in the environment, or a server that runs
# tools = ["read", "bash"]                   # without it: all tools of the plugins
# system_prompt_file = "system-prompt.md"    # or system_prompt = "..."
# environment = ["OPENAI_API_KEY"]           # names that must be set

# [limits]                                   # of one run
# turns = 50
# cost_usd = 2.0
# seconds = 900

# [conflicts]                                # who has a name that two plugins own
# read = "tools"

# Plugins in call order. A table [plugins.options] after one holds its own options.

{plugins}
"""
