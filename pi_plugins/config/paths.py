"""Where configuration lives: the agent's own folder, a project's folder, and the names of their files."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pi_core import ConfigError

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
    :raises ConfigError: nothing says where it is.
    """
    home = (os.environ if environ is None else environ).get("HOME")
    return Path(os.path.abspath(home)) if home else _home_of_account()


def current_dir() -> Path:
    """Return the current directory.

    :raises ConfigError: it is gone, or cannot be reached any more.
    """
    try:
        return Path.cwd()
    except OSError as error:
        raise ConfigError(f"The current directory cannot be used: {error.strerror}. Change to another one") from None


def expand(path: str, base: Path, environ: Mapping[str, str] | None = None) -> Path:
    """Return a path as an absolute one, without resolving links.

    :param path: absolute, relative to ``base``, or below the home directory when it starts with ``~/``.
    :param environ: environment variables, the process's own by default.
    """
    if path == "~" or path.startswith("~/"):
        return Path(os.path.normpath(home_dir(environ) / path[2:]))
    found = base / os.path.expanduser(path)
    return Path(os.path.normpath(found if found.is_absolute() else current_dir() / found))


def agent_dir(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of the user's own configuration: ``PI_CODING_AGENT_DIR``, else ``~/.pi/agent``.

    :param environ: environment variables, the process's own by default.
    :raises ConfigError: nothing says where the home directory is.
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


def _home_of_account() -> Path:
    try:
        if sys.platform == "win32":
            return Path.home()
        # Path.home() would take an empty HOME for the root folder.
        import pwd

        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except (KeyError, RuntimeError):
        raise ConfigError(
            f"Nothing says where the home directory is. Set HOME, or {AGENT_DIR_VARIABLE} to a folder"
        ) from None


__all__ = [
    "AGENT_DIR_VARIABLE",
    "FOLDER",
    "PLUGINS_FOLDER",
    "SETTINGS_FILE",
    "STATE_FILE",
    "TRUST_FILE",
    "agent_dir",
    "current_dir",
    "expand",
    "home_dir",
    "project_dir",
    "project_settings_file",
    "user_settings_file",
]
