"""``pi config``: shows and changes settings, and says which projects are trusted."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from pi_core import Build, ConfigError

from . import paths
from .keys import all_keys, dotted, expected, split_key, value_at
from .loading import LoadedSettings, load_settings
from .saving import Scope, remove_setting, save_setting
from .secrets import masked
from .trust import Trust, decide_trust, needs_trust, save_trust, saved_trust, trust_decisions
from .typing_in import typed_value

F = TypeVar("F", bound=Callable[..., Any])


def _approval(function: F) -> F:
    yes = click.option("-a", "--approve", "flag", flag_value="yes", help="Take the project as trusted.")
    no = click.option("-na", "--no-approve", "flag", flag_value="no", help="Take it as not trusted.")
    return yes(no(function))


@click.group()
def config() -> None:
    """Show and change settings, and say which projects are trusted."""


@config.command("show")
@click.argument("key", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_approval
@click.pass_obj
def show(build: Build, key: str | None, as_json: bool, flag: str | None) -> None:
    """Print each setting, or those of KEY: its value, and where that comes from. Secrets are masked."""
    loaded, trust = _load(build, flag)
    data = masked(loaded.settings.model_dump(mode="json"))
    path = () if key is None else split_key(key)
    try:
        chosen = value_at(data, path)
    except LookupError:
        raise ConfigError(f"'{key}' is not set") from None
    rows = {name: (value_at(data, at), _origin(loaded, at)) for name, at in _rows(data, ()) if at[: len(path)] == path}
    if as_json:
        origins = {name: origin for name, (_, origin) in rows.items()}
        more = {"warnings": loaded.warnings, "unused": loaded.unused, "trust": trust.source}
        click.echo(_json({"value": chosen, "origins": origins, **more}, indent=2))
        return
    if path in all_keys():
        said = all_keys()[path].replace("``", "")
        click.echo(f"{said[:1].upper()}{said[1:]}\nExpected: {expected(path)}")
    width = max((len(name) for name in rows), default=0)
    for name, (value, origin) in rows.items():
        click.echo(f"{name:<{width}}  {_json(value)}  ({origin})")
    for text in [*loaded.warnings, *loaded.unused, *filter(None, [trust.notice])]:
        click.echo(text, err=True)


@config.command("set")
@click.argument("key")
@click.argument("value")
@click.option("--project", is_flag=True, help="In the project's settings, not the user's.")
@_approval
@click.pass_obj
def set_(build: Build, key: str, value: str, project: bool, flag: str | None) -> None:
    """Set KEY to VALUE: JSON or a plain text; a list also with commas."""
    path = split_key(key)
    taken, fault = typed_value(path, value)
    if fault is not None:
        raise ConfigError(str(fault))
    file = save_setting(key, taken, scope=_scope(project), trusted=project and _trust(build, flag).trusted)
    click.echo(f"{file}: {dotted(path)} = {_json(masked(taken, path[-1]))}")
    _tell_what_wins(build, path, file)


@config.command("unset")
@click.argument("key")
@click.option("--project", is_flag=True, help="In the project's settings, not the user's.")
@_approval
@click.pass_obj
def unset(build: Build, key: str, project: bool, flag: str | None) -> None:
    """Take KEY out, so that its default or another place counts again."""
    trusted = project and _trust(build, flag).trusted
    file, removed = remove_setting(key, scope=_scope(project), trusted=trusted)
    click.echo(f"{file}: {key} {'removed' if removed else 'was not set there'}")


@config.command("path")
def path() -> None:
    """Print the folders and files of the configuration, and whether they are there."""
    own, cwd = paths.agent_dir(), paths.current_dir()
    rows = [
        ("agent folder", own),
        ("user settings", paths.user_settings_file(own)),
        ("trusted projects", own / paths.TRUST_FILE),
        ("state", own / paths.STATE_FILE),
        ("user plugins", own / paths.PLUGINS_FOLDER),
        ("project folder", paths.project_dir(cwd)),
        ("project settings", paths.project_settings_file(cwd, own)),
        ("project plugins", paths.project_dir(cwd) / paths.PLUGINS_FOLDER),
    ]
    for name, found in rows:
        if found is not None:
            click.echo(f"{name:<17} {found}{_absence(found)}")


@config.command("trust")
@click.argument("folder", default=".", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--no", "refuse", is_flag=True, help="Never use its configuration.")
@click.option("--forget", is_flag=True, help="Forget what was decided.")
def trust(folder: Path, refuse: bool, forget: bool) -> None:
    """Use the configuration of FOLDER, which can run code, and of all folders below it."""
    if refuse and forget:
        raise click.UsageError("--no and --forget exclude each other")
    folder = Path(os.path.realpath(folder))
    changed = save_trust(folder, None if forget else not refuse)
    said = "forgotten" if forget else "not trusted" if refuse else "trusted"
    click.echo(f"{folder}: {said}{'' if changed else ', as before'}")
    if forget and (nearest := saved_trust(folder)) is not None:
        click.echo(f"A folder above it is {'trusted' if nearest else 'not trusted'}, which counts here too")
    for file in needs_trust(folder):
        click.echo(f"  {file}")


@config.command("trusted")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def trusted(as_json: bool) -> None:
    """List the folders that somebody decided about."""
    decisions = trust_decisions()
    if as_json:
        click.echo(_json(decisions, indent=2))
        return
    for folder, decision in decisions.items():
        click.echo(f"{'trusted' if decision else 'not trusted':<12} {folder}")


def _json(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON that can be printed, also one with half of a surrogate pair."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return text.encode(errors="backslashreplace").decode()


def _absence(path: Path) -> str:
    """What to say of a path that cannot be reached."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return "  (not there)"
    except OSError as error:
        return f"  ({error.strerror})"
    return ""


def _scope(project: bool) -> Scope:
    return "project" if project else "user"


def _trust(build: Build, flag: str | None) -> Trust:
    cwd = paths.current_dir()
    settings = load_settings(cwd).settings
    approved = None if flag is None else flag == "yes"
    return asyncio.run(decide_trust(cwd, settings=settings, hooks=build.hooks, flag=approved))


def _load(build: Build, flag: str | None) -> tuple[LoadedSettings, Trust]:
    trust = _trust(build, flag)
    return load_settings(paths.current_dir(), trusted=trust.trusted), trust


def _tell_what_wins(build: Build, path: tuple[str, ...], file: Path) -> None:
    """Tell when what was set does not count here."""
    loaded, trust = _load(build, None)
    origin = _origin(loaded, path)
    if str(file) in origin:
        return
    if file in trust.files and not trust.trusted:
        click.echo("It counts once the project is trusted: pi config trust", err=True)
    else:
        click.echo(f"It has no effect here: {origin} counts", err=True)


def _origin(loaded: LoadedSettings, path: tuple[str, ...]) -> str:
    return loaded.origins.get(dotted(path), "default")


def _rows(data: Mapping[str, Any], path: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    rows = []
    for key, value in data.items():
        here = (*path, key)
        rows += _rows(value, here) if isinstance(value, dict) and value else [(dotted(here), here)]
    return rows


__all__ = ["config"]
