"""The database of the runs, and the engine on it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer
from sqlalchemy import create_engine, event
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from pi_core import ConfigError
from pi_plugins.config.paths import agent_dir

VARIABLE: Final = "PI_DURABLE_DATABASE"
APPLICATION: Final = "pi-durable"
"""The engine's name for everything here, so that other applications can share a database."""

RUNS: Final = "pi-runs"
"""The engine's queue of runs."""


def database_url(named: str | None = None, environ: Mapping[str, str] | None = None) -> URL:
    """Return the address of the database: the named one, that of ``PI_DURABLE_DATABASE``, or the user's SQLite file.

    :param environ: environment variables, the process's own by default.
    :raises ConfigError: it is no address of a SQLite or PostgreSQL database.
    """
    environ = os.environ if environ is None else environ
    text = named or environ.get(VARIABLE)
    if not text:
        return URL.create("sqlite", database=str(agent_dir(environ) / "durable.sqlite"))
    try:
        url = make_url(text)
    except ArgumentError:
        url = URL.create("none")
    kind = url.get_backend_name()
    if kind not in ("sqlite", "postgresql") or not url.database:
        raise ConfigError(
            "The database of durable runs is no address of one. Write it as sqlite:////absolute/path/runs.sqlite or "
            "postgresql://user:password@host:5432/name"
        )
    if kind == "sqlite":
        return url.set(database=str(Path(url.database).expanduser().absolute()))
    return url


def is_sqlite(url: URL) -> bool:
    """Whether the database is a SQLite file."""
    return url.get_backend_name() == "sqlite"


def shown(url: URL) -> str:
    """Return an address for people, without its password."""
    return url.render_as_string(hide_password=True)


def prepare(url: URL) -> None:
    """Let the engine create or upgrade its tables.

    :raises ConfigError: the database cannot be used.
    """
    try:
        if is_sqlite(url):
            assert url.database is not None
            Path(url.database).parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(url.database, timeout=30)) as connection:
                # Readers do not wait for the writer then, and a commit is one write to the disk. The file keeps it.
                connection.execute("PRAGMA journal_mode=WAL")
        DBOS.migrate(url.render_as_string(hide_password=False))
    except (OSError, sqlite3.Error, SQLAlchemyError) as error:
        raise _unusable(url, error) from None


def open_client(url: URL) -> DBOSClient:
    """Return a client of a database that has the engine's tables.

    :raises ConfigError: the database cannot be used, or is not there.
    """
    if is_sqlite(url) and not Path(url.database or "").is_file():
        raise ConfigError(f"There is no database {shown(url)} yet. 'pi durable start' and 'pi worker' make it")
    try:
        return DBOSClient(
            system_database_url=url.render_as_string(hide_password=False),
            serializer=DBOSPortableJSONSerializer(),
            application_name=APPLICATION,
        )
    except (OSError, SQLAlchemyError) as error:
        raise _unusable(url, error) from None


def launch(url: URL, *, version: str, executor: str) -> None:
    """Start the engine in this process.

    :param version: names the build; the engine gives a process runs of its own version only.
    :param executor: names the process.
    """
    config: DBOSConfig = {
        "name": APPLICATION,
        "system_database_url": url.render_as_string(hide_password=False),
        "application_version": version,
        "executor_id": executor,
        "serializer": DBOSPortableJSONSerializer(),
        "log_level": "ERROR",
    }
    if is_sqlite(url):
        config["system_database_engine"] = _serial(url)
        config["run_migrations"] = False
    DBOS(config=config)
    DBOS.launch()


def _serial(url: URL) -> Engine:
    """Make what the engine talks to SQLite with: each transaction has the database for itself from its beginning.

    Otherwise one would begin with its first change, and two workers that count what a limit leaves could both take it.
    """
    made = create_engine(url, pool_size=20, max_overflow=0, pool_timeout=30)

    @event.listens_for(made, "connect")
    def connected(connection: sqlite3.Connection, record: object) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA busy_timeout=30000")
        connection.execute("PRAGMA foreign_keys=ON")

    @event.listens_for(made, "begin")
    def begun(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return made


def _unusable(url: URL, error: Exception) -> ConfigError:
    cause = getattr(error, "orig", None) or error
    why = str(cause).strip()
    if url.password:
        why = why.replace(str(url.password), "***")
    return ConfigError(f"The database {shown(url)} cannot be used: {why}")
