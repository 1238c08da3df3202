"""``python with_postgres.py COMMAND...``: run a command beside a PostgreSQL server of its own on loopback.

The command finds its address in ``PI_DURABLE_TEST_POSTGRES``. Where PostgreSQL is not installed, this is said and the
command runs without it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "PI_DURABLE_TEST_POSTGRES"


def programs() -> Path | None:
    """Return the folder of the newest server that is installed."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[4]))
    if debian:
        return debian[-1].parent
    found = shutil.which("initdb")
    return None if found is None else Path(found).resolve().parent


@contextmanager
def server(folder: Path, binaries: Path) -> Iterator[str]:
    """Start a server in a folder and end it afterwards; it does not run as root."""
    user: int | None = None
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres").pw_uid
        os.chown(folder, user, -1)
    data = folder / "data"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def call(program: str, *arguments: str) -> None:
        subprocess.run(
            [str(binaries / program), *arguments], user=user, cwd=folder, check=True, stdout=subprocess.DEVNULL
        )

    call("initdb", "-D", str(data), "-A", "trust", "-U", "pi", "--no-sync")
    settings = (
        f"-c port={port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c max_connections=300"
    )
    call("pg_ctl", "-D", str(data), "-w", "-l", str(folder / "log"), "-o", settings, "start")
    try:
        yield f"postgresql://pi@127.0.0.1:{port}/postgres"
    finally:
        call("pg_ctl", "-D", str(data), "-w", "-m", "immediate", "stop")


def main(command: list[str]) -> int:
    """Run the command and return its exit code."""
    binaries = programs()
    if os.environ.get(VARIABLE):
        return subprocess.call(command)
    if binaries is None:
        print("PostgreSQL is not installed (Debian: apt-get install postgresql): SQLite alone", file=sys.stderr)
        return subprocess.call(command)
    with tempfile.TemporaryDirectory(prefix="pi-postgres-") as folder, server(Path(folder), binaries) as address:
        return subprocess.call(command, env={**os.environ, VARIABLE: address})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
