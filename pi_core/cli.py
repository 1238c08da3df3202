"""The command line: the core's own commands, those of plugins, and the default command.

``pi`` followed by something that is no command runs the default command, which the modes plugin registers.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from .build import Build
from .errors import ConfigError, PiError

if TYPE_CHECKING:
    from .commands import Command


def run(arguments: list[str]) -> int:
    """Run ``pi`` with arguments and return the exit code."""
    built_in_only = "--no-plugins" in arguments[:1]
    if built_in_only:
        arguments = arguments[1:]
    try:
        build = Build.from_environment(built_in_only=built_in_only)
        return _invoke(_choose(build, arguments), build, arguments)
    except PiError as error:
        click.echo(f"pi: {error}", err=True)
        return 1


def _choose(build: Build, arguments: list[str]) -> click.Command:
    """The group when a command or help is named, else the default command."""
    group = PiGroup(build)
    first = arguments[0] if arguments else ""
    default = group.default()
    if first in group.list_commands_unbound() or first in ("-h", "--help"):
        return group
    if default is not None:
        return default.load()
    if not first:
        raise ConfigError("No default command: the plugin 'modes' that registers one is not loaded (pi plugins list)")
    raise ConfigError(f"There is no command '{first}'. Commands: {', '.join(group.list_commands_unbound())}")


def _invoke(command: click.Command, build: Build, arguments: list[str]) -> int:
    try:
        result = command.main(arguments, prog_name="pi", standalone_mode=False, obj=build)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.Abort:
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return result if isinstance(result, int) else 0


class PiGroup(click.Group):
    """The commands of a build."""

    def __init__(self, build: Build) -> None:
        super().__init__(name="pi", help="An agent runtime in which every point of the run is a hook.")
        self._build = build
        self._core: dict[str, click.Command] = {"plugins": plugins, "hooks": hooks}

    def default(self) -> Command | None:
        """The command that runs when none is named."""
        return next((command for _, command in self._build.registry.commands.items() if command.default), None)

    def list_commands_unbound(self) -> list[str]:
        """The names of all commands."""
        return sorted({*self._core, *self._build.registry.commands.names()})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return self.list_commands_unbound()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Make a command."""
        if cmd_name in self._core:
            return self._core[cmd_name]
        found = self._build.registry.commands.get(cmd_name)
        return None if found is None else found.load()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, then the options of the default command."""
        registered = self._build.registry.commands
        rows = []
        for name in self.list_commands_unbound():
            command = registered.get(name)
            core = self._core.get(name)
            text = core.get_short_help_str(80) if core is not None else command.help if command is not None else ""
            rows.append((name, text))
        with formatter.section("Commands"):
            formatter.write_dl(rows)
        default = self.default()
        if default is not None:
            with formatter.section("Without a command: pi [OPTIONS] [@FILE]... [PROMPT]..."):
                loaded = default.load()
                records = [record for parameter in loaded.params if (record := parameter.get_help_record(ctx))]
                formatter.write_dl(records)


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
        click.echo(json.dumps({"plugins": rows, "conflicts": build.problems()}, indent=2))
        return
    for record in build.plugins:
        line = f"{record.name:<20} {record.state:<9} {record.origin:<28} {record.target}"
        click.echo(f"{line}  {record.seconds * 1000:.0f} ms" if record.seconds else line)
        if record.reason:
            click.echo(f"    {record.reason}")
    for problem in build.problems():
        if problem not in {record.reason for record in build.plugins}:
            click.echo(f"conflict: {problem}")


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
            click.echo(next(str(conflict) for conflict in kind.conflicts() if f"'{name}'" in str(conflict)))
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
        click.echo(f"{row['hook']}({', '.join(row['arguments'])})  [{kind}]  an exception {row['onError']}")
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
                "place": f"{function.__module__}:{getattr(function, '__qualname__', repr(function))}",
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
                "implementations": implementations,
            }
        )
    return rows


__all__ = ["PiGroup", "hook_table", "run"]
