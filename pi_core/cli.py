"""The command line: the core's own commands, those of plugins, and the default command.

``pi`` followed by something that is no command runs the default command, which the modes plugin registers.
"""

from __future__ import annotations

import inspect
import json
import logging
import os
from pathlib import Path
from typing import Any, Final

import click

from ._build_commands import build_commands
from ._click import failure_of, invoke, reported
from ._dispatch import Owner
from ._registry import DEFAULT
from .build import Build
from .commands import Command
from .errors import ConfigError, PiError, PluginError


def run(arguments: list[str]) -> int:
    """Run ``pi`` with arguments and return the exit code.

    ``--no-plugins`` and ``--verbose`` are taken anywhere before ``--``; ``--build FILE`` comes first.
    """
    built_in_only, arguments = _take("--no-plugins", arguments)
    verbose, arguments = _take("--verbose", arguments)
    if verbose:
        logging.basicConfig(level=logging.INFO, format="%(name)s: %(levelname)s: %(message)s")
    return reported(lambda: _run(arguments, built_in_only=built_in_only))


def _run(arguments: list[str], *, built_in_only: bool) -> int:
    if arguments[:1] == ["build"]:
        return invoke(build_commands, arguments[1:], run, "pi build")
    path, arguments = _take_build(arguments)
    if path is not None and built_in_only:
        raise ConfigError("--no-plugins and --build exclude each other: the build file says what is loaded")
    build = Build.from_environment(built_in_only=built_in_only) if path is None else Build.load(path)
    return _invoke(build, arguments)


def _take(flag: str, arguments: list[str]) -> tuple[bool, list[str]]:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [argument for argument in arguments[:end] if argument != flag]
    return len(kept) < end, kept + arguments[end:]


def _take_build(arguments: list[str]) -> tuple[str | None, list[str]]:
    option, equals, path = arguments[0].partition("=") if arguments else ("", "", "")
    if option != "--build":
        return None, arguments
    rest = arguments[1:]
    if not equals and rest:
        path, *rest = rest
    if not path:
        raise ConfigError("--build needs a file, as in: pi --build pi-build.toml")
    return path, rest


def _invoke(build: Build, arguments: list[str]) -> int:
    group = PiGroup(build)
    name = arguments[0] if arguments else ""
    if group.knows(name) or name in ("-h", "--help") or _completes_commands(group):
        command: click.Command = group
    else:
        name, command = group.default(name)
    try:
        return invoke(command, arguments, build, "pi")
    except PiError:
        raise
    except Exception as error:
        owner = build.registry.commands.owner(name)
        if owner is None:
            raise
        raise _failed(owner, name, error) from error


def _completes_commands(group: PiGroup) -> bool:
    """Whether a shell asks, with the variables that click reads, what may follow and a command can."""
    if "_PI_COMPLETE" not in os.environ:
        return False
    words = os.environ.get("COMP_WORDS", "").split()[1:]
    return not words or group.knows(words[0]) or (len(words) == 1 and not words[0].startswith("-"))


def _failed(owner: Owner, name: str, error: BaseException) -> PluginError:
    text = failure_of(str(owner), name, error)
    return PluginError(text, plugin=owner.plugin, distribution=owner.distribution)


class PiGroup(click.Group):
    """The commands of a build."""

    def __init__(self, build: Build) -> None:
        super().__init__(
            name="pi",
            help="An agent runtime in which every point of the run is a hook.",
            context_settings={"help_option_names": ["-h", "--help"]},
        )
        self._build = build
        self._registered = build.registry.commands

    def knows(self, name: str) -> bool:
        """Whether there is a command of a name, or of ``owner/name``.

        :raises PluginConflictError: two plugins own the name.
        """
        conflict = self._registered.conflict(name)
        if conflict is not None:
            raise conflict
        return name in _CORE or self._registered.get(name) is not None

    def default(self, typed: str) -> tuple[str, click.Command]:
        """Return the command that runs when none is named, and its name.

        :raises PluginError: it cannot be made, or two plugins want to be it.
        :raises ConfigError: there is none.
        """
        conflict = self._build.registry.defaults.conflict(DEFAULT)
        if conflict is not None:
            raise conflict
        found = self._build.registry.defaults.get(DEFAULT)
        if found is not None:
            return found.name, self._load(found)
        known = ", ".join(self.names())
        if typed:
            raise ConfigError(f"There is no command '{typed}', and no default command. Commands: {known}")
        raise ConfigError(
            f"There is no default command, which the plugin 'modes' has (pi plugins list). Commands: {known}"
        )

    def _load(self, command: Command) -> click.Command:
        try:
            return command.load()
        except (Exception, SystemExit) as error:
            owner = self._registered.owner(command.name) or self._build.registry.defaults.owner(DEFAULT)
            assert owner is not None
            raise _failed(owner, command.name, error) from error

    def names(self) -> list[str]:
        """The names of all commands."""
        return sorted({*_CORE, *self._registered.names()})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return self.names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Make a command."""
        if cmd_name in _CORE:
            return _CORE[cmd_name]
        found = self._registered.get(cmd_name)
        return None if found is None else self._load(found)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, then the options of the default command."""
        rows = []
        for name in self.names():
            found = self._registered.get(name)
            rows.append((name, found.help if found is not None else _CORE[name].get_short_help_str(80)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)
        with formatter.section("Without a command: pi [OPTIONS] [@FILE]... [PROMPT]..."):
            try:
                _, loaded = self.default("")
            except PiError as error:
                formatter.write_text(str(error))
            else:
                formatter.write_text(inspect.cleandoc(loaded.help or ""))
                loaded.format_options(click.Context(loaded), formatter)
        with formatter.section("With every command"):
            formatter.write_dl(
                [
                    ("--build FILE", "First of all: load the plugins of a build file, and no others."),
                    ("--no-plugins", "Load only the plugins that ship with the framework."),
                    ("--verbose", "Log to stderr, with the tracebacks of what failed."),
                    ("--version", "Print the version; nothing else beside it."),
                    ("PI_BLOCK=NAME,...", "Environment: plugins or distributions that are not imported."),
                ]
            )


@click.group()
def plugins() -> None:
    """What is installed, where things come from, what is wrong."""


@plugins.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def plugins_list(build: Build, as_json: bool) -> None:
    """Every offered plugin and what became of it, in call order."""
    if as_json:
        rows = [
            {
                "name": record.name,
                "target": record.target,
                "distribution": record.origin,
                "state": record.state,
                "reason": record.reason,
                "importMs": round(record.seconds * 1000, 1),
            }
            for record in build.plugins
        ]
        click.echo(json.dumps({"plugins": rows, "problems": build.problems()}, indent=2))
        return
    for record in build.plugins:
        line = f"{record.name:<20} {record.state:<9} {record.origin:<28} {record.target}"
        click.echo(f"{line}  {record.seconds * 1000:.0f} ms" if record.seconds else line)
        if record.reason:
            click.echo(f"    {record.reason}")
    for problem in build.problems():
        if problem not in {record.reason for record in build.plugins}:
            click.echo(f"problem: {problem}")


@plugins.command("why")
@click.argument("name")
@click.pass_obj
def plugins_why(build: Build, name: str) -> int:
    """Which plugin a tool, provider api, message role or command comes from, or why a plugin is not loaded."""
    said = False
    for kind in build.registry.kinds():
        owners = kind.owners(name)
        chosen = kind.owner(name)
        if chosen is not None:
            click.echo(f"{kind.kind} '{name}' comes from {chosen}")
        elif owners:
            click.echo(str(kind.conflict(name)))
        said = said or bool(owners) or chosen is not None
    for record in build.plugins:
        if record.name == name:
            said = True
            came = f" from {record.origin}" if record.origin else ""
            click.echo(f"plugin '{name}' ({record.target}{came}) is {record.state}" + _because(record.reason))
    if not said:
        click.echo(f"Nothing here is called '{name}': no plugin, tool, provider api, message role or command", err=True)
        return 1
    return 0


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""


@plugins.command("check")
@click.pass_obj
def plugins_check(build: Build) -> int:
    """Print every problem; exit 1 if there is one."""
    problems = build.problems()
    for problem in problems:
        click.echo(problem)
    if not problems:
        loaded = sum(record.state == "loaded" for record in build.plugins)
        click.echo(f"{loaded} plugins loaded, no problem")
    return 1 if problems else 0


@plugins.command("new")
@click.argument("name")
@click.option("--kind", default="tool", help="tool (if absent), provider, message, or hooks.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), default=".", help="Where to write it.")
def plugins_new(name: str, kind: str, folder: Path) -> None:
    """Write a plugin to start from: a distribution of its own, with tests that pass."""
    from ._scaffold import KINDS, write_plugin

    if kind not in KINDS:
        raise click.BadParameter(f"there is no kind '{kind}'; kinds: {', '.join(KINDS)}", param_hint="--kind")
    written = write_plugin(name, kind, folder)
    for path in written:
        click.echo(str(path))
    click.echo(f"Next: pip install -e {written[0].parent}, then: pi plugins list")


@click.group()
def hooks() -> None:
    """Who takes part in the run."""


@hooks.command("show")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def hooks_show(build: Build, name: str | None, as_json: bool) -> int:
    """Who implements each hook, or one, in call order, with its kind and what an exception does."""
    table = hook_table(build)
    if name is not None and name not in {row["hook"] for row in table}:
        click.echo(f"There is no hook '{name}'. Hooks: {', '.join(row['hook'] for row in table)}", err=True)
        return 1
    rows = [row for row in table if name in (None, row["hook"])]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return 0
    for row in rows:
        kind = f"{row['kind']}{'' if row['async'] else ', sync'}"
        offered = f", of {row['offeredBy']}" if row["offeredBy"] else ""
        click.echo(f"{row['hook']}({', '.join(row['arguments'])})  [{kind}{offered}]  an exception {row['onError']}")
        for position, found in enumerate(row["implementations"], 1):
            wrapper = "  wrapper" if found["wrapper"] else ""
            click.echo(f"    {position}. {found['plugin']:<20} {found['distribution']:<28} {found['place']}{wrapper}")
    return 0


def hook_table(build: Build) -> list[dict[str, Any]]:
    """Every hook of a build with its contract and implementations, as JSON."""
    rows = []
    for name, arguments, contract in build.hooks.specifications():
        implementations = [
            {
                "plugin": owner.plugin,
                "distribution": owner.distribution,
                "place": f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', repr(function))}",
                "wrapper": wrapper,
            }
            for owner, function, wrapper in build.hooks.implementations(name)
        ]
        rows.append(
            {
                "hook": name,
                "arguments": list(arguments),
                "kind": contract.kind.value,
                "async": contract.is_async,
                "onError": contract.on_error.value,
                "offeredBy": build.hooks.offered_by(name) or None,
                "implementations": implementations,
            }
        )
    return rows


_CORE: Final[dict[str, click.Command]] = {"build": build_commands, "plugins": plugins, "hooks": hooks}

__all__ = ["PiGroup", "hook_table", "run"]
