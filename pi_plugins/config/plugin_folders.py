"""Plugins that are files: in the agent's folder, in a trusted project's, and those that settings name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from pi_core import ConfigError

from . import paths
from .settings import Settings


def plugin_files(
    cwd: Path,
    *,
    environ: Mapping[str, str] | None = None,
    agent_dir: Path | None = None,
    trusted: bool = False,
    settings: Settings | None = None,
) -> list[Path]:
    """Return the plugin files to load: those that settings name, the project's, the user's; each file once.

    In a folder ``plugins`` each ``.py`` file and each folder with an ``__init__.py`` is one, in the order of their
    names; what begins with ``.`` or ``_`` is not.

    :param cwd: the folder that the agent works in.
    :param environ: environment variables, the process's own by default.
    :param agent_dir: the agent's folder; as the environment says by default.
    :param trusted: whether the project's plugins are loaded.
    :param settings: what names further ones.
    :raises ConfigError: a folder cannot be read; what it holds may be what guards the agent.
    """
    own = paths.agent_dir(environ) if agent_dir is None else agent_dir
    found = [] if settings is None else [Path(name) for name in settings.plugin_files]
    if trusted:
        found += _plugins_in(paths.project_dir(cwd) / paths.PLUGINS_FOLDER)
    found += _plugins_in(own / paths.PLUGINS_FOLDER)
    return list({os.path.realpath(path): path for path in reversed(found)}.values())[::-1]


def _plugins_in(folder: Path) -> Iterator[Path]:
    try:
        names = sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise ConfigError(f"{folder}: {error.strerror or error}") from error
    for name in names:
        path = folder / name
        if not name.startswith((".", "_")) and (
            os.path.isfile(path / "__init__.py") or (name.endswith(".py") and os.path.isfile(path))
        ):
            yield path


__all__ = ["plugin_files"]
