"""The command ``pi sessions``."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from pi_core import ConfigError

from .branches import outline
from .export import FORMATS, export_session
from .files import find_session, sessions_dir
from .listing import SessionInfo, list_sessions
from .session import Session


class _Place:
    """Where the command looks.

    :param directory: what the command line names as the folder of all sessions.
    """

    def __init__(self, directory: str | None) -> None:
        from pi_plugins.config.loading import load_settings
        from pi_plugins.config.trust import saved_trust

        self.cwd = Path(os.path.realpath(Path.cwd()))
        loaded = load_settings(self.cwd, trusted=saved_trust(self.cwd) is True)
        for warning in loaded.warnings:
            click.echo(warning, err=True)
        self.directory = sessions_dir(self.cwd, loaded.settings, directory=directory)

    def find(self, text: str) -> Path:
        return find_session(text, self.cwd, self.directory)

    def open(self, text: str) -> Session:
        """Open a session for reading; what is wrong with its file goes to stderr."""
        session = Session.open(self.find(text), read_only=True)
        for problem in session.problems:
            click.echo(problem, err=True)
        return session


@click.group()
@click.option("--session-dir", metavar="DIR", help="The folder of all sessions.")
@click.pass_context
def sessions(ctx: click.Context, session_dir: str | None) -> None:
    """List, show, copy and remove sessions.

    SESSION is the beginning of an id, or the path of a session file.
    """
    ctx.obj = _Place(session_dir)


@sessions.command("list")
@click.option("--all", "everywhere", is_flag=True, help="Those of other folders too.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON for each.")
@click.pass_obj
def list_(place: _Place, everywhere: bool, as_json: bool) -> int:
    """List the sessions of this folder, the one written last first."""
    found = list_sessions(None if everywhere else place.cwd, place.directory)
    for info in found:
        click.echo(json.dumps(info.to_json(), ensure_ascii=False) if as_json else _line(info, everywhere))
    if not found and not as_json:
        click.echo(f"No session{'' if everywhere else f' of {place.cwd}'} is in {place.directory}", err=True)
    return 0


@sessions.command("path")
@click.argument("session")
@click.pass_obj
def path_(place: _Place, session: str) -> int:
    """Print the file of a session."""
    click.echo(place.find(session))
    return 0


@sessions.command()
@click.argument("session")
@click.option("--json", "as_json", is_flag=True, help="The entries of the present branch, a line of JSON each.")
@click.pass_obj
def show(place: _Place, session: str, as_json: bool) -> int:
    """Print what was said in a session."""
    found = place.open(session)
    if as_json:
        for entry in found.path_to():
            click.echo(json.dumps(entry.to_json(), ensure_ascii=False))
        return 0
    from ._markdown import to_markdown

    click.echo(to_markdown(found), nl=False)
    return 0


@sessions.command()
@click.argument("session")
@click.pass_obj
def tree(place: _Place, session: str) -> int:
    """Print the branches of a session; the present position is marked with *."""
    found = place.open(session)
    for row in outline(found):
        mark, label = "*" if row.is_leaf else " ", f" [{row.label}]" if row.label else ""
        click.echo(f"{mark} {row.entry.id} {'  ' * row.depth}{row.text}{label}")
    return 0


@sessions.command()
@click.argument("session")
@click.argument("target", required=False, type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(list(FORMATS)), help="Print it in this format.")
@click.pass_obj
def export(place: _Place, session: str, target: Path | None, form: str | None) -> int:
    """Write a session to a file that ends in .html, .md or .json, or print it."""
    if form is not None:
        if target is not None:
            raise click.UsageError("--format prints; with a TARGET its ending says the format")
        click.echo(FORMATS[form](place.open(session)), nl=False)
        return 0
    click.echo(export_session(place.find(session), target))
    return 0


@sessions.command()
@click.argument("session")
@click.option("--at", "entry_id", metavar="ENTRY", help="The last entry that is copied; the present one if absent.")
@click.option("--id", "session_id", metavar="ID", help="The id of the copy.")
@click.pass_obj
def fork(place: _Place, session: str, entry_id: str | None, session_id: str | None) -> int:
    """Copy a session into one of this folder and print its file."""
    source = place.open(session)
    entries = source.path_to(entry_id)
    with Session.fork(source, place.cwd, directory=place.directory, entries=entries, id=session_id) as made:
        if made.unsaved:
            raise ConfigError("Nothing was said before that entry: there is nothing to copy")
        click.echo(made.path)
    return 0


@sessions.command()
@click.argument("session", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def rm(place: _Place, session: tuple[str, ...], yes: bool) -> int:
    """Remove sessions for good. One that is being written stays."""
    paths = [place.find(text) for text in session]
    for path in paths:
        if yes or click.confirm(f"Remove {path}?", err=True):
            with Session.open(path):
                path.unlink()
    return 0


def _line(info: SessionInfo, everywhere: bool) -> str:
    when = info.to_json()["modified"][:16].replace("T", " ")
    where = f"  {info.ref.header.cwd}" if everywhere else ""
    return f"{info.ref.id}  {when}  {info.messages:>5}{where}  {info.title[:80]}"
