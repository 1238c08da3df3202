"""Where configuration lives: the agent's own folder, a project's folder, and the names of their files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

AGENT_DIR_VARIABLE: Final = "PI_CODING_AGENT_DIR"
"""The environment variable that names the agent's folder."""

FOLDER: Final = ".pi"
"""The folder of a project's configuration; the agent's own is ``agent`` in that of the home directory."""

SETTINGS_FILE: Final = "settings.json"
TRUST_FILE: Final = "trust.json"
STATE_FILE: Final = "state.json"
PLUGINS_FOLDER: Final = "plugins"


def home_dir(environ: Mapping[str, str] | None = None) -> Path:
    """Return the user's home directory.

    :param environ: environment variables, the process's own by default.
    """
    home = (os.environ if environ is None else environ).get("HOME")
    return Path(home) if home else Path.home()


def expand(path: str, base: Path, environ: Mapping[str, str] | None = None) -> Path:
    """Return a path as an absolute one, without resolving links.

    :param path: absolute, relative to ``base``, or below the home directory when it starts with ``~/``.
    :param environ: environment variables, the process's own by default.
    """
    if path == "~" or path.startswith("~/"):
        return Path(os.path.normpath(home_dir(environ) / path[2:]))
    return Path(os.path.normpath(Path.cwd() / base / os.path.expanduser(path)))


def agent_dir(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of the user's own configuration: ``PI_CODING_AGENT_DIR``, else ``~/.pi/agent``.

    :param environ: environment variables, the process's own by default.
    """
    named = (os.environ if environ is None else environ).get(AGENT_DIR_VARIABLE)
    return expand(named, Path(), environ) if named else home_dir(environ) / FOLDER / "agent"


def project_dir(cwd: Path) -> Path:
    """Return the folder of a project's configuration.

    :param cwd: the folder that the agent works in.
    """
    return cwd / FOLDER


def user_settings_file(agent_dir: Path) -> Path:
    """Return the file of the user's settings."""
    return agent_dir / SETTINGS_FILE


def project_settings_file(cwd: Path, agent_dir: Path) -> Path | None:
    """Return the file of a project's settings; ``None`` where the project's folder is the user's own."""
    folder = project_dir(cwd)
    return None if os.path.realpath(folder) == os.path.realpath(agent_dir) else folder / SETTINGS_FILE


__all__ = [
    "AGENT_DIR_VARIABLE",
    "FOLDER",
    "PLUGINS_FOLDER",
    "SETTINGS_FILE",
    "STATE_FILE",
    "TRUST_FILE",
    "agent_dir",
    "expand",
    "home_dir",
    "project_dir",
    "project_settings_file",
    "user_settings_file",
]
